"""moe_forward and moe_backward: routing, products and combination in one call. The keywords that all operations share are
explained in ggm.routing."""
from . import raw
from .call import FLOATS, INDICES, Call
from .names import Flag, Gradient, Rows, choice
from .problems import MoeProblem
from .products import weight_dims
from .routing import describe_expert_map, describe_routing, given_routing, settle_assignments


def moe_forward(handle, x, weight, y, *, weight_order, ids=None, routing=None, routing_weights=None, bias=None, expert_map=None,
                experts_total=None, first_expert=0, top_k=None, max_rows=None, input_rows="tokens", output_rows="tokens", product_type=None,
                compute_type="exact", combine="auto", add_to_y=False, keep_unused_rows=False, num_tokens=None, faults=None, sm_limit=0,
                dtype=None, workspace=None, stream=None):
    """y[t] = sum_j w[t,j] * (x[t] @ W_e^T + bias_e) with e the expert of slot (t,j). Returns y.

    x                [tokens, in_features]; with input_rows="grouped" [max_rows, in_features] in sorted order
    weight           [experts, out_features, in_features] with weight_order "NK", [experts, in_features, out_features] with "KN"
    y                [tokens, out_features], written (with add_to_y added to); with output_rows="grouped" [max_rows, out_features]
    ids              int32 or int64 [tokens, top_k], -1: no expert; or
    routing          the Routing that `route` filled; exactly one of the two
    routing_weights  [tokens, top_k] of float32, bfloat16 or float16 (float64 with float64); None: no factor
    bias             [experts, out_features] of float32 or the type of x
    expert_map, experts_total, first_expert   as in `route`; with ids only
    top_k            needed only where assignment_row is flat and no other array tells it
    max_rows         bound on the rows with ids, where no grouped array tells it; None: tokens*top_k
    product_type     "float32": products are not rounded before they are combined; None: the type of y
    combine          "auto", "ordered", "two_step": the same bits, other workspace

    Types: float32, bfloat16, float16, float64; x and weight alike; y of that type, or float32 with 16-bit inputs. A stride of 0
    between experts (numpy.broadcast_to, expand) in weight and bias is taken as one that all share.
    """
    arrays = dict(x=x, weight=weight, y=y, ids=ids, **given_routing(routing), routing_weights=routing_weights, bias=bias,
                  expert_map=expert_map, num_tokens=num_tokens, faults=faults)
    call = Call(handle, arrays, dtype, stream)
    call.require("x", "weight", "y")
    problem = MoeProblem(input_rows=input_rows, output_rows=output_rows, product_type=product_type, compute_type=compute_type,
                         combine=combine, first_expert=first_expert, sm_limit=sm_limit)
    problem.weight_order, weight_axes = weight_dims(weight_order, "weight_order", "experts", "out_features", "in_features")
    problem.weight_type = call.array("weight", weight_axes, FLOATS, strides=("weight_stride", "weight_ld"), shared=True)
    describe_layer(call, problem, routing, experts_total, top_k, max_rows)
    problem.x_type = call.array("x", (row_axis(input_rows, "input_rows"), "in_features"), FLOATS, strides=("x_ld",))
    problem.y_type = call.array("y", (row_axis(output_rows, "output_rows"), "out_features"), FLOATS, strides=("y_ld",), out=True)
    finish(call, problem)
    set_flags(problem, ADD_TO_Y=add_to_y, KEEP_UNUSED_ROWS=keep_unused_rows)
    call.run("ggm_moe_forward", problem, raw.ggm_moe_forward_tensors_t(), workspace)
    return y


def moe_backward(handle, dy, *, weight_order, x=None, weight=None, ids=None, routing=None, routing_weights=None, bias=None, dx=None,
                 d_weight=None, d_bias=None, d_routing_weights=None, expert_map=None, experts_total=None, first_expert=0, top_k=None,
                 max_rows=None, input_rows="tokens", output_rows="tokens", product_type=None, compute_type="exact", combine="auto",
                 add_to_dx=False, add_to_d_weight=False, add_to_d_bias=False, keep_unused_rows=False, num_tokens=None, faults=None, sm_limit=0,
                 dtype=None, workspace=None, stream=None):
    """The gradients of `moe_forward`; those are computed whose arrays are given, at least one, in one call or several with the
    same bits. Arguments as there, and:

    dy                 as y, of the type of x
    dx                 as x, written; of the type of x, or float32 with 16-bit x. Needs weight
    d_weight           as weight, written; of its type, or float32 with 16-bit weights. Needs x
    d_bias             [experts, out_features], written; of the type of x or float32
    d_routing_weights  float32 [tokens, top_k], packed, written. Needs x and weight, and bias if the forward had one
    add_to_dx, add_to_d_weight, add_to_d_bias   add to what the array holds

    x and weight may be left out where no gradient needs them. The forward saves nothing: the same ids or routing go in.
    """
    arrays = dict(x=x, weight=weight, dy=dy, ids=ids, **given_routing(routing), routing_weights=routing_weights, bias=bias, dx=dx,
                  d_weight=d_weight, d_bias=d_bias, d_routing_weights=d_routing_weights, expert_map=expert_map, num_tokens=num_tokens,
                  faults=faults)
    call = Call(handle, arrays, dtype, stream)
    call.require("dy")
    for gradient in ("dx", "d_routing_weights"):
        if gradient in call.given:
            call.require("weight", needed_by=gradient)
    problem = MoeProblem(input_rows=input_rows, output_rows=output_rows, product_type=product_type, compute_type=compute_type,
                         combine=combine, first_expert=first_expert, sm_limit=sm_limit)
    problem.weight_order, weight_axes = weight_dims(weight_order, "weight_order", "experts", "out_features", "in_features")
    weight_type = call.array("weight", weight_axes, FLOATS, strides=("weight_stride", "weight_ld"), shared=True)
    problem.d_weight_type = call.array("d_weight", weight_axes, FLOATS, strides=("d_weight_stride", "d_weight_ld"), out=True)
    problem.d_bias_type = call.array("d_bias", ("experts", "out_features"), FLOATS, strides=("d_bias_stride",), out=True)
    describe_layer(call, problem, routing, experts_total, top_k, max_rows)
    x_axes = (row_axis(input_rows, "input_rows"), "in_features")
    x_type = call.array("x", x_axes, FLOATS, strides=("x_ld",))
    problem.dx_type = call.array("dx", x_axes, FLOATS, strides=("dx_ld",), out=True)
    problem.dy_type = dy_type = call.array("dy", (row_axis(output_rows, "output_rows"), "out_features"), FLOATS, strides=("dy_ld",))
    call.array("d_routing_weights", ("tokens", "top_k"), ("float32",), out=True)
    # Both are required; a gradient that needs neither x nor weight has the type of dy, which is that of x.
    problem.x_type = x_type or weight_type or dy_type
    problem.weight_type = weight_type or problem.x_type
    for name, bit in (("dx", Gradient.X), ("d_weight", Gradient.WEIGHT), ("d_routing_weights", Gradient.ROUTING_WEIGHTS),
                      ("d_bias", Gradient.BIAS)):
        if name in call.given:
            problem.gradients |= bit
    finish(call, problem)
    set_flags(problem, ADD_TO_DX=add_to_dx, ADD_TO_DWEIGHT=add_to_d_weight, ADD_TO_DBIAS=add_to_d_bias, KEEP_UNUSED_ROWS=keep_unused_rows)
    call.run("ggm_moe_backward", problem, raw.ggm_moe_backward_tensors_t(), workspace)


def row_axis(rows, argument):
    return "max_rows" if choice(Rows, rows, argument) == Rows.GROUPED else "tokens"


def describe_layer(call, problem, routing, experts_total, top_k, max_rows):
    """Ids or routing arrays, routing weights and bias."""
    if ("ids" in call.given) == (routing is not None):
        raise ValueError("exactly one of ids and routing must be given")
    call.option("top_k", top_k)
    call.option("max_rows", max_rows)
    problem.id_type = call.array("ids", ("tokens", "top_k"), INDICES, strides=("ids_ld",))
    if routing is not None:
        describe_routing(call)
    describe_expert_map(call, experts_total)
    problem.routing_weight_type = call.array("routing_weights", ("tokens", "top_k"), FLOATS, strides=("routing_weights_ld",))
    problem.bias_type = call.array("bias", ("experts", "out_features"), FLOATS, strides=("bias_stride",), shared=True)


def finish(call, problem):
    call.extras()
    settle_assignments(call)
    call.fill(problem)


def set_flags(problem, **flags):
    for name, wanted in flags.items():
        if wanted:
            problem.flags |= Flag[name]
