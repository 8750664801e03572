"""route, permute, unpermute, unpermute_backward.

Common to all operations of this package: `handle` is a Handle; arrays are those of `ggm.arrays` and lie in the handle's memory
(host memory on the host backend, device memory on CUDA); shapes are given in brackets; rows may lie apart (a slice of columns),
but the elements of a row follow each other. Common keywords:

    num_tokens  int32 [1] in the handle's memory: the real tokens, when fewer than the arrays hold
    faults      uint32 (or int32) [8]: counts of bad device data are added, see Fault
    sm_limit    multiprocessors (host: threads) the call may use, 0: all
    dtype       "bfloat16" when arrays of uint16 hold its bits
    workspace   None: made for the call; an array of at least so many bytes, aligned to 256; or a function from bytes to one
    stream      CUDA: a stream of torch, CuPy or __cuda_stream__, or a number; None: torch's current one, or the one that
                __cuda_array_interface__ names, else the default stream. Host: None.

On CUDA a call returns when the work is on the stream; keep its arrays until the stream has done it. Raises ggm.Error for what
the library refuses, ValueError and TypeError for arrays that do not fit each other; then nothing was written.
"""
import typing

from . import raw
from .call import FLOATS, INDICES, INT32, Call
from .names import Flag
from .problems import PermuteProblem, RouteProblem


class Routing(typing.NamedTuple):
    """The three int32 arrays that `route` fills and the other operations read.

    group_offsets   [experts+1]       rows of expert e are group_offsets[e] .. group_offsets[e+1]-1
    row_assignment  [max_rows]        the assignment t*top_k + j of each row, -1 in unused rows; at most tokens*top_k long
    assignment_row  [tokens, top_k]   the row of each assignment, -1 where there is none; flat [tokens*top_k] is taken too
    """

    group_offsets: object
    row_assignment: object
    assignment_row: object


def given_routing(routing):
    return {} if routing is None else Routing(*routing)._asdict()


def describe_routing(call, out=False):
    call.require(*Routing._fields)
    call.vector("group_offsets", ("experts", 1), INT32, out)
    call.vector("row_assignment", "max_rows", INT32, out)
    if len(call.describe("assignment_row").shape) == 1:
        call.vector("assignment_row", "assignments", INT32, out)
    else:
        call.array("assignment_row", ("tokens", "top_k"), INT32, out=out)


def describe_expert_map(call, experts_total):
    call.option("experts_total", experts_total)
    call.vector("expert_map", "experts_total", INT32)
    if "expert_map" in call.given and call.get("experts_total") == 0:
        raise ValueError("expert_map has no entries; to the library 0 would mean first_expert + experts")


def settle_assignments(call):
    """Finds tokens and top_k when a flat assignment_row tells their product alone, and checks max_rows against it."""
    assignments, source = call.sizes.get("assignments", (None, None))
    tokens, top_k = call.get("tokens", None), call.get("top_k", None)
    if assignments is not None:
        if tokens is None and top_k:
            tokens = assignments // top_k
            call.tell("tokens", tokens, source)
        elif top_k is None and tokens is not None:
            top_k = assignments // tokens if tokens else 1
            call.tell("top_k", top_k, source)
    if tokens is None or top_k is None:
        raise ValueError("top_k is told by no array; give top_k=, or an assignment_row of shape [tokens, top_k]")
    if assignments is not None and assignments != tokens * top_k:
        raise ValueError(f"{source} has {assignments} elements; it must have tokens*top_k = {tokens}*{top_k}")
    if "max_rows" in call.axes:
        max_rows, source = call.get("max_rows"), call.axes["max_rows"]
        if max_rows > tokens * top_k:
            raise ValueError(f"{source} has {max_rows} rows; more than tokens*top_k = {tokens * top_k} cannot be filled, so give a slice")
        if max_rows == 0 and tokens * top_k > 0:
            raise ValueError(f"{source} has no rows; 0 would mean all of tokens*top_k = {tokens * top_k}")


def route(handle, ids, routing, *, expert_map=None, experts_total=None, first_expert=0, num_tokens=None, faults=None, sm_limit=0,
          workspace=None, stream=None):
    """Sorts expert ids into rows: fills the arrays of `routing`, and returns it.

    ids            int32 or int64 [tokens, top_k]; -1: no expert
    routing        a Routing, written; the length of its row_assignment bounds the rows
    expert_map     int32 [experts_total]: local expert of each global one, -1: elsewhere
    experts_total, first_expert   which ids are local, without a map: first_expert .. first_expert+experts-1
    """
    arrays = dict(ids=ids, **given_routing(routing), expert_map=expert_map, num_tokens=num_tokens, faults=faults)
    call = Call(handle, arrays, None, stream)
    call.require("ids")
    id_type = call.array("ids", ("tokens", "top_k"), INDICES, strides=("ids_ld",))
    describe_routing(call, out=True)
    describe_expert_map(call, experts_total)
    call.extras()
    settle_assignments(call)
    problem = RouteProblem(id_type=id_type, first_expert=first_expert, sm_limit=sm_limit)
    call.fill(problem)
    call.run("ggm_route", problem, raw.ggm_route_tensors_t(), workspace)
    return routing


def permute(handle, routing, input, output, *, top_k=None, keep_unused_rows=False, num_tokens=None, faults=None, sm_limit=0, dtype=None,
            workspace=None, stream=None):
    """output[r] = input[token of row r], converted to output's type. Returns output.

    input   [tokens, features] of float32, bfloat16, float16 or float64
    output  [max_rows, features], written; unused rows become +0.0, or stay with keep_unused_rows
    top_k   needed only where assignment_row is flat and there are no tokens to tell it
    """
    arrays = dict(**given_routing(routing), input=input, output=output, num_tokens=num_tokens, faults=faults)
    call = Call(handle, arrays, dtype, stream)
    call.require("input", "output")
    token_type = call.array("input", ("tokens", "features"), FLOATS, strides=("token_ld",))
    row_type = call.array("output", ("max_rows", "features"), FLOATS, strides=("row_ld",), out=True)
    problem = permute_problem(call, token_type, row_type, None, top_k, sm_limit, keep_unused_rows)
    call.run("ggm_permute", problem, raw.ggm_permute_tensors_t(), workspace)
    return output


def unpermute(handle, routing, input, output, *, routing_weights=None, top_k=None, add_to_y=False, keep_unused_rows=False, num_tokens=None,
              faults=None, sm_limit=0, dtype=None, workspace=None, stream=None):
    """output[t] = sum of w[t,j] * input[r] over the rows r of token t, ascending. Returns output.

    input            [max_rows, features] of float32, bfloat16, float16 or float64
    output           [tokens, features], written; with add_to_y added to
    routing_weights  [tokens, top_k] of float32, bfloat16 or float16 (float64 with float64 arrays); None: no factor
    top_k            needed only where assignment_row is flat and there are no tokens to tell it
    """
    arrays = dict(**given_routing(routing), routing_weights=routing_weights, input=input, output=output, num_tokens=num_tokens, faults=faults)
    call = Call(handle, arrays, dtype, stream)
    call.require("input", "output")
    row_type = call.array("input", ("max_rows", "features"), FLOATS, strides=("row_ld",))
    token_type = call.array("output", ("tokens", "features"), FLOATS, strides=("token_ld",), out=True)
    weight_type = call.array("routing_weights", ("tokens", "top_k"), FLOATS, strides=("routing_weights_ld",))
    problem = permute_problem(call, token_type, row_type, weight_type, top_k, sm_limit, keep_unused_rows)
    if add_to_y:
        problem.flags |= Flag.ADD_TO_Y
    call.run("ggm_unpermute", problem, raw.ggm_permute_tensors_t(), workspace)
    return output


def unpermute_backward(handle, routing, dy, *, rows=None, routing_weights=None, d_rows=None, d_routing_weights=None, top_k=None,
                       keep_unused_rows=False, num_tokens=None, faults=None, sm_limit=0, dtype=None, workspace=None, stream=None):
    """The gradients of `unpermute`: d_rows[r] = round(w[t,j] * dy[t]) and d_routing_weights[t,j] = <dy[t], rows[r]>. Those of
    the two outputs are computed that are given; at least one is.

    dy                 [tokens, features] of float32, bfloat16, float16 or float64
    rows               [max_rows, features], the input of unpermute; exactly when d_routing_weights is given
    routing_weights    [tokens, top_k], as in unpermute
    d_rows             [max_rows, features], written; the type of rows
    d_routing_weights  float32 [tokens, top_k], packed, written
    """
    arrays = dict(**given_routing(routing), routing_weights=routing_weights, rows=rows, dy=dy, d_rows=d_rows,
                  d_routing_weights=d_routing_weights, num_tokens=num_tokens, faults=faults)
    call = Call(handle, arrays, dtype, stream)
    call.require("dy")
    token_type = call.array("dy", ("tokens", "features"), FLOATS, strides=("token_ld",))
    row_type = call.array("rows", ("max_rows", "features"), FLOATS, strides=("row_ld",))
    d_row_type = call.array("d_rows", ("max_rows", "features"), FLOATS, strides=("row_ld",), out=True)
    if row_type and d_row_type and row_type != d_row_type:
        raise TypeError(f"d_rows holds {d_row_type}; it must hold {row_type}, as rows does")
    weight_type = call.array("routing_weights", ("tokens", "top_k"), FLOATS, strides=("routing_weights_ld",))
    call.array("d_routing_weights", ("tokens", "top_k"), ("float32",), out=True)
    problem = permute_problem(call, token_type, row_type or d_row_type, weight_type, top_k, sm_limit, keep_unused_rows)
    call.run("ggm_unpermute_backward", problem, raw.ggm_unpermute_backward_tensors_t(), workspace)


def permute_problem(call, token_type, row_type, weight_type, top_k, sm_limit, keep_unused_rows):
    call.option("top_k", top_k)
    describe_routing(call)
    call.extras()
    settle_assignments(call)
    problem = PermuteProblem(token_type=token_type, row_type=row_type, routing_weight_type=weight_type, sm_limit=sm_limit)
    call.fill(problem)
    if keep_unused_rows:
        problem.flags |= Flag.KEEP_UNUSED_ROWS
    return problem
