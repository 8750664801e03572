"""libggm: grouped GEMM for Mixture-of-Experts layers, with the token permutation fused into the products.

    handle = ggm.Handle("host")
    ggm.moe_forward(handle, x, weight, y, weight_order="NK", ids=ids, routing_weights=routing_weights)

Operations write arrays of the caller: numpy and everything with a buffer on the host backend; torch tensors, objects with
__cuda_array_interface__ and DLPack producers on CUDA. `ggm.routing` explains the arguments that all share. `ggm.raw` is the C
interface itself.
"""
from . import raw
from .errors import ArgumentError, Error, UnsupportedError
from .handle import Handle, Info
from .layer import moe_backward, moe_forward
from .names import (
    FAULT_WORDS, STRIDE_SHARED, WORKSPACE_ALIGNMENT, Backend, Combine, Compute, Fault, Flag, Gradient, GroupForm, Index, Kernels, Layout,
    LogLevel, Order, Rows, Status, Type,
)
from .problems import (
    GroupedGemmArrayProblem, GroupedGemmProblem, MoeProblem, PermuteProblem, RouteProblem, grouped_gemm_array_workspace_size,
    grouped_gemm_workspace_size, moe_backward_workspace_size, moe_forward_workspace_size, permute_workspace_size, route_workspace_size,
    unpermute_backward_workspace_size, unpermute_workspace_size,
)
from .products import addresses, grouped_gemm, grouped_gemm_array
from .routing import Routing, permute, route, unpermute, unpermute_backward
from .version import __version__
from .workspace import Workspace

__all__ = [
    "ArgumentError", "Backend", "Combine", "Compute", "Error", "FAULT_WORDS", "Fault", "Flag", "Gradient", "GroupForm",
    "GroupedGemmArrayProblem", "GroupedGemmProblem", "Handle", "Index", "Info", "Kernels", "Layout", "LogLevel", "MoeProblem",
    "Order", "PermuteProblem", "RouteProblem", "Routing", "Rows", "STRIDE_SHARED", "Status", "Type", "UnsupportedError",
    "WORKSPACE_ALIGNMENT", "Workspace", "__version__", "addresses", "build_info", "grouped_gemm", "grouped_gemm_array",
    "grouped_gemm_array_workspace_size", "grouped_gemm_workspace_size", "last_error", "loaded_version", "moe_backward",
    "moe_backward_workspace_size", "moe_forward", "moe_forward_workspace_size", "permute", "permute_workspace_size", "raw", "route",
    "route_workspace_size", "status_string", "unpermute", "unpermute_backward", "unpermute_backward_workspace_size",
    "unpermute_workspace_size",
]


def loaded_version():
    """(major, minor, patch) of the loaded library."""
    number = raw.ggm_version()
    return number // 10000, number // 100 % 100, number % 100


def build_info():
    """One line about the loaded library: version, commit, CUDA version and architectures, host kernels."""
    return raw.ggm_build_info().decode()


def status_string(status):
    """The name of a status number, "unknown status" for others."""
    return raw.ggm_status_string(status).decode()


def last_error():
    """The text of the last call of this thread that failed; "" when none did. Exceptions carry it already."""
    return raw.ggm_last_error().decode("utf-8", "replace")
