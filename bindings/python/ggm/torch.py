"""Differentiable operations on torch tensors, as custom operators: autograd sees them, torch.compile does not break at them.
Tensors on `cpu` run on the host backend, tensors on `cuda` on the CUDA backend, on torch's current stream and with a workspace
from its allocator.

Results of bfloat16 and float16 inputs are float32. Their gradients come in as float32 and are rounded to the type of the input
first, as the library takes no other. Nothing is saved for the backward but the inputs. There is no second derivative, and no
forward mode.
"""
import contextlib
import threading
from typing import Tuple

import torch
from torch import Tensor
from torch import library as operators
from torch.autograd import forward_ad

from .handle import Handle
from .layer import moe_backward, moe_forward
from .products import grouped_gemm as grouped_product

__all__ = ["grouped_gemm", "moe"]

# "ggm" for this package by its own name. A copy inside of another package has a namespace of its own, as a process may have both.
NAMESPACE = __package__.replace(".", "_")

_handles, _lock = {}, threading.Lock()


@contextlib.contextmanager
def _on(tensor):
    """The handle of the tensor's device, which is the current one meanwhile."""
    device = tensor.device
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f"the tensors lie on the device {device}; only cpu and cuda are served")
    with torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext():
        key = device.index if device.type == "cuda" else "host"
        with _lock:
            if key not in _handles:
                _handles[key] = Handle("host") if key == "host" else Handle("cuda", key)
            handle = _handles[key]
        yield handle


# ---- what the operators take, by the names of the functions --------------------------------------------------------------

def _check(name, tensor, axes):
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} is a {type(tensor).__name__}; it must be a tensor [{', '.join(axes)}]")
    if tensor.dim() != len(axes):
        raise ValueError(f"{name} has the shape {tuple(tensor.shape)}; it must be [{', '.join(axes)}]")


def _check_types(name, tensor, like_name, like, index_name, index):
    if tensor.dtype != like.dtype:
        raise TypeError(f"{name} holds {tensor.dtype}; it must hold {like.dtype}, as {like_name} does")
    if index.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"{index_name} holds {index.dtype}; it must hold torch.int64 or torch.int32")


def _check_same(size, name, length, other_name, other):
    if length != other:
        raise ValueError(f"{name} tells {size} = {length}, but {other_name} tells {other}")


def _check_moe(x, W, expert_ids, topk_weights):
    _check("x", x, ("tokens", "in_features"))
    _check("W", W, ("experts", "out_features", "in_features"))
    _check("expert_ids", expert_ids, ("tokens", "top_k"))
    _check("topk_weights", topk_weights, ("tokens", "top_k"))
    _check_types("W", W, "x", x, "expert_ids", expert_ids)
    _check_same("in_features", "x", x.shape[1], "W", W.shape[2])
    _check_same("tokens", "x", x.shape[0], "expert_ids", expert_ids.shape[0])
    _check_same("tokens", "topk_weights", topk_weights.shape[0], "expert_ids", expert_ids.shape[0])
    _check_same("top_k", "topk_weights", topk_weights.shape[1], "expert_ids", expert_ids.shape[1])


def _check_grouped(a, W, group_sizes):
    _check("a", a, ("rows", "k"))
    _check("W", W, ("groups", "n", "k"))
    _check("group_sizes", group_sizes, ("groups",))
    _check_types("W", W, "a", a, "group_sizes", group_sizes)
    _check_same("k", "a", a.shape[1], "W", W.shape[2])
    _check_same("groups", "group_sizes", group_sizes.shape[0], "W", W.shape[0])


def _refuse_tangents(name, *tensors):
    """torch drops the tangents of a custom operator without a word."""
    if torch.compiler.is_compiling():
        return
    if any(isinstance(t, Tensor) and t.is_floating_point() and forward_ad.unpack_dual(t).tangent is not None for t in tensors):
        raise NotImplementedError(f"{name} has no forward-mode derivative; use the backward")


def _result_type(tensor):
    return torch.float64 if tensor.dtype == torch.float64 else torch.float32


def _like(tensor, wanted):
    """A packed output, or an empty one for a gradient that nobody asks for."""
    return torch.empty(tensor.shape if wanted else (0,), dtype=tensor.dtype, device=tensor.device)


# ---- the layer -----------------------------------------------------------------------------------------------------------

@operators.custom_op(f"{NAMESPACE}::moe", mutates_args=())
def _moe(x: Tensor, weight: Tensor, expert_ids: Tensor, topk_weights: Tensor) -> Tensor:
    _check_moe(x, weight, expert_ids, topk_weights)
    y = torch.empty((x.shape[0], weight.shape[1]), dtype=_result_type(x), device=x.device)
    with _on(x) as handle:
        moe_forward(handle, x.contiguous(), weight.contiguous(), y, weight_order="NK", ids=expert_ids.contiguous(),
                    routing_weights=topk_weights.contiguous())
    return y


@_moe.register_fake
def _(x, weight, expert_ids, topk_weights):
    _check_moe(x, weight, expert_ids, topk_weights)
    return torch.empty((x.shape[0], weight.shape[1]), dtype=_result_type(x), device=x.device)


@operators.custom_op(f"{NAMESPACE}::moe_backward", mutates_args=())
def _moe_backward(dy: Tensor, x: Tensor, weight: Tensor, expert_ids: Tensor, topk_weights: Tensor, need_x: bool, need_weight: bool,
                  need_topk_weights: bool) -> Tuple[Tensor, Tensor, Tensor]:
    dx, d_weight = _like(x, need_x), _like(weight, need_weight)
    d_topk_weights = torch.empty(topk_weights.shape if need_topk_weights else (0,), dtype=torch.float32, device=x.device)
    with _on(x) as handle:
        moe_backward(handle, dy.to(x.dtype).contiguous(), weight_order="NK", x=x.contiguous(), weight=weight.contiguous(),
                     ids=expert_ids.contiguous(), routing_weights=topk_weights.contiguous(), dx=dx if need_x else None,
                     d_weight=d_weight if need_weight else None, d_routing_weights=d_topk_weights if need_topk_weights else None)
    return dx, d_weight, d_topk_weights


@_moe_backward.register_fake
def _(dy, x, weight, expert_ids, topk_weights, need_x, need_weight, need_topk_weights):
    shape = topk_weights.shape if need_topk_weights else (0,)
    return _like(x, need_x), _like(weight, need_weight), torch.empty(shape, dtype=torch.float32, device=x.device)


def _moe_save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _moe_gradient(ctx, dy):
    x, weight, expert_ids, topk_weights = ctx.saved_tensors
    need_x, need_weight, _, need_topk_weights = ctx.needs_input_grad
    dx, d_weight, d_topk_weights = _moe_backward(dy, x, weight, expert_ids, topk_weights, need_x, need_weight, need_topk_weights)
    return (dx if need_x else None, d_weight if need_weight else None, None,
            d_topk_weights.to(topk_weights.dtype) if need_topk_weights else None)


_moe.register_autograd(_moe_gradient, setup_context=_moe_save)


def moe(x, W, expert_ids, topk_weights):
    """y[t] = sum_j topk_weights[t,j] * (x[t] @ W[expert_ids[t,j]]^T), differentiable in x, W and topk_weights.

    x             [tokens, in_features] of float32, bfloat16, float16 or float64
    W             [experts, out_features, in_features], of the type of x
    expert_ids    int64 (or int32) [tokens, top_k]; -1: no expert
    topk_weights  [tokens, top_k] of float32, bfloat16 or float16; float64 with float64
    Returns y [tokens, out_features], float32 (float64 with float64)."""
    _refuse_tangents("moe", x, W, topk_weights)
    return _moe(x, W, expert_ids, topk_weights)


# ---- the grouped product -------------------------------------------------------------------------------------------------

@operators.custom_op(f"{NAMESPACE}::grouped_gemm", mutates_args=())
def _grouped_gemm(a: Tensor, weight: Tensor, group_sizes: Tensor) -> Tensor:
    _check_grouped(a, weight, group_sizes)
    d = torch.empty((a.shape[0], weight.shape[1]), dtype=_result_type(a), device=a.device)
    with _on(a) as handle:
        grouped_product(handle, a.contiguous(), weight.contiguous(), d, b_order="NK", group_sizes=group_sizes.contiguous())
    return d


@_grouped_gemm.register_fake
def _(a, weight, group_sizes):
    _check_grouped(a, weight, group_sizes)
    return torch.empty((a.shape[0], weight.shape[1]), dtype=_result_type(a), device=a.device)


@operators.custom_op(f"{NAMESPACE}::grouped_gemm_backward", mutates_args=())
def _grouped_gemm_backward(dd: Tensor, a: Tensor, weight: Tensor, group_sizes: Tensor, need_a: bool,
                           need_weight: bool) -> Tuple[Tensor, Tensor]:
    da, d_weight = _like(a, need_a), _like(weight, need_weight)
    dd, sizes = dd.to(a.dtype).contiguous(), group_sizes.contiguous()
    with _on(a) as handle:
        if need_a:
            grouped_product(handle, dd, weight.contiguous(), da, b_order="KN", group_sizes=sizes)
        if need_weight:
            grouped_product(handle, dd, a.contiguous(), d_weight, layout="variable_k", group_sizes=sizes)
    return da, d_weight


@_grouped_gemm_backward.register_fake
def _(dd, a, weight, group_sizes, need_a, need_weight):
    return _like(a, need_a), _like(weight, need_weight)


def _grouped_gemm_save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def _grouped_gemm_gradient(ctx, dd):
    a, weight, group_sizes = ctx.saved_tensors
    need_a, need_weight, _ = ctx.needs_input_grad
    da, d_weight = _grouped_gemm_backward(dd, a, weight, group_sizes, need_a, need_weight)
    return da if need_a else None, d_weight if need_weight else None, None


_grouped_gemm.register_autograd(_grouped_gemm_gradient, setup_context=_grouped_gemm_save)


def grouped_gemm(a, W, group_sizes):
    """d = a @ W[e]^T for the rows of each group e, differentiable in a and W.

    a            [rows, k] of float32, bfloat16, float16 or float64; rows of a group follow each other, from row 0
    W            [groups, n, k], of the type of a
    group_sizes  int64 (or int32) [groups]; rows beyond the last group give 0
    Returns d [rows, n], float32 (float64 with float64)."""
    _refuse_tangents("grouped_gemm", a, W)
    return _grouped_gemm(a, W, group_sizes)
