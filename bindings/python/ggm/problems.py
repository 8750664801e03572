"""Problems: the sizes, types and orders of an operation, without arrays. For sizing workspaces ahead and for asking what is
supported; the operations make their problem from the arrays that they get.

    problem = ggm.MoeProblem(tokens=4096, top_k=8, experts=64, in_features=2048, out_features=768, id_type="int32",
                             x_type="bfloat16", weight_type="bfloat16", weight_order="NK", routing_weight_type="float32")
    arena_bytes = ggm.moe_forward_workspace_size(handle, problem)

Fields are those of the struct in ggm.h, which says what each means; what is not given is 0, the default. Choices are taken as
in ggm.names: by member, by name, by number.
"""
import ctypes

from . import raw
from .errors import check
from .names import Combine, Compute, GroupForm, Index, Layout, Order, Rows, Type, choice

CHOICES = {
    "layout": Layout, "group_form": GroupForm, "combine": Combine, "compute_type": Compute, "input_rows": Rows, "output_rows": Rows,
    "id_type": Index, "index_type": Index, "a_order": Order, "b_order": Order, "weight_order": Order,
}


class _Problem:
    """Takes choices by their names."""

    __slots__ = ()

    def __setattr__(self, name, value):
        kind = CHOICES.get(name) or (Type if name.endswith("_type") else None)
        super().__setattr__(name, choice(kind, value, name) if kind else value)


class RouteProblem(_Problem, raw.ggm_route_problem_t):
    """ggm_route_problem_t. Required: top_k, experts, id_type."""

    __slots__ = ()


class PermuteProblem(_Problem, raw.ggm_permute_problem_t):
    """ggm_permute_problem_t, of permute, unpermute and unpermute_backward. Required: top_k, experts, token_type."""

    __slots__ = ()


class GroupedGemmProblem(_Problem, raw.ggm_grouped_gemm_problem_t):
    """ggm_grouped_gemm_problem_t. Required: a_type, b_type, and b_order unless the layout is variable_k."""

    __slots__ = ()


class GroupedGemmArrayProblem(_Problem, raw.ggm_grouped_gemm_array_problem_t):
    """ggm_grouped_gemm_array_problem_t. Required: a_order, b_order, a_type, b_type."""

    __slots__ = ()


class MoeProblem(_Problem, raw.ggm_moe_problem_t):
    """ggm_moe_problem_t, of moe_forward and moe_backward. Required: top_k, experts, x_type, weight_type, weight_order; for
    the backward also gradients."""

    __slots__ = ()


def workspace_size(handle, operation, problem):
    """Bytes that `operation`, such as "ggm_route", needs for `problem`."""
    query, size = getattr(handle.loaded, operation + "_workspace_size"), ctypes.c_size_t()
    with handle.in_use() as pointer:
        check(handle.loaded, query(pointer, ctypes.byref(problem), ctypes.byref(size)))
    return size.value


def _query(operation, kind):
    def query(handle, problem):
        if not isinstance(problem, kind):
            raise TypeError(f"problem is a {type(problem).__name__}; a {kind.__name__} is needed")
        return workspace_size(handle, operation, problem)

    query.__name__ = query.__qualname__ = operation[len("ggm_"):] + "_workspace_size"
    query.__doc__ = f"""Bytes of workspace that `{operation[len("ggm_"):]}` needs for a {kind.__name__}: 0 or more, enough for every routing and for
    fewer tokens and rows. It validates the whole problem: what it accepts the call accepts. Raises ggm.Error."""
    return query


route_workspace_size = _query("ggm_route", RouteProblem)
permute_workspace_size = _query("ggm_permute", PermuteProblem)
unpermute_workspace_size = _query("ggm_unpermute", PermuteProblem)
unpermute_backward_workspace_size = _query("ggm_unpermute_backward", PermuteProblem)
grouped_gemm_workspace_size = _query("ggm_grouped_gemm", GroupedGemmProblem)
grouped_gemm_array_workspace_size = _query("ggm_grouped_gemm_array", GroupedGemmArrayProblem)
moe_forward_workspace_size = _query("ggm_moe_forward", MoeProblem)
moe_backward_workspace_size = _query("ggm_moe_backward", MoeProblem)
