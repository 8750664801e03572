"""
    GGM.route!(handle, routing, ids; expert_map, experts_total, first_expert, num_tokens, faults, sm_limit, workspace, stream) -> routing

Sorts expert ids into rows by (expert, token, slot): fills the arrays of `routing`. The keywords after `first_expert` are explained at
[`GGM`](@ref).

    ids            Int32 or Int64 (top_k, tokens); experts count from 0, -1: no expert
    routing        a Routing, written; the length of its row_assignment bounds the rows
    expert_map     Int32 (experts_total,): local expert of each global one, -1: elsewhere
    experts_total, first_expert   which ids are local, without a map: first_expert .. first_expert+experts-1
"""
function route!(handle::Handle, routing::Routing, ids; expert_map=nothing, experts_total=nothing, first_expert::Integer=0,
                num_tokens=nothing, faults=nothing, sm_limit::Integer=0, workspace=nothing, stream=nothing)
    call = Call(handle, stream, Pair{Symbol,Any}[:ids => ids, :expert_map => expert_map, :num_tokens => num_tokens,
        :faults => faults], routing)
    require(call, :ids)
    id_type = array!(call, :ids, (:top_k, :tokens), INDEX; steps=(:ids_ld,))
    routing!(call; out=true)
    expert_map!(call, experts_total)
    extras!(call)
    check_max_rows(call)
    run!(call, Raw.ggm_route_problem_t, Raw.ggm_route_workspace_size, Raw.ggm_route, Raw.ggm_route_tensors_t, workspace;
         id_type=id_type, first_expert=first_expert, sm_limit=sm_limit)
    return routing
end

"""
    GGM.permute!(handle, output, routing, input; keep_unused_rows = false, num_tokens, faults, sm_limit, workspace, stream) -> output

`output[:, r] = input[:, token of row r]`, converted to output's type.

    input   (features, tokens) of Float32, BFloat16, Float16 or Float64
    output  (features, max_rows), written; unused rows become +0.0, or stay with keep_unused_rows
"""
function permute!(handle::Handle, output, routing::Routing, input; keep_unused_rows::Bool=false, num_tokens=nothing, faults=nothing,
                  sm_limit::Integer=0, workspace=nothing, stream=nothing)
    call = Call(handle, stream, Pair{Symbol,Any}[:input => input, :output => output, :num_tokens => num_tokens,
        :faults => faults], routing)
    require(call, :input, :output)
    token_type = array!(call, :input, (:features, :tokens), FLOAT; steps=(:token_ld,))
    row_type = array!(call, :output, (:features, :max_rows), FLOAT; steps=(:row_ld,), out=true)
    finish_permutation!(call)
    run!(call, Raw.ggm_permute_problem_t, Raw.ggm_permute_workspace_size, Raw.ggm_permute, Raw.ggm_permute_tensors_t, workspace;
         token_type=token_type, row_type=row_type, sm_limit=sm_limit,
         flags=addflag(0, Raw.GGM_FLAG_KEEP_UNUSED_ROWS, keep_unused_rows))
    return output
end

"""
    GGM.unpermute!(handle, output, routing, input; routing_weights, add_to_y = false, keep_unused_rows = false, num_tokens, faults,
                   sm_limit, workspace, stream) -> output

`output[:, t] = sum of w[j, t] * input[:, r]` over the rows r of token t, ascending.

    input            (features, max_rows) of Float32, BFloat16, Float16 or Float64
    output           (features, tokens), written; with add_to_y added to
    routing_weights  (top_k, tokens) of Float32, BFloat16 or Float16 (Float64 with Float64 arrays); nothing: no factor
"""
function unpermute!(handle::Handle, output, routing::Routing, input; routing_weights=nothing, add_to_y::Bool=false,
                    keep_unused_rows::Bool=false, num_tokens=nothing, faults=nothing, sm_limit::Integer=0, workspace=nothing, stream=nothing)
    call = Call(handle, stream, Pair{Symbol,Any}[:routing_weights => routing_weights, :input => input, :output => output,
        :num_tokens => num_tokens, :faults => faults], routing)
    require(call, :input, :output)
    row_type = array!(call, :input, (:features, :max_rows), FLOAT; steps=(:row_ld,))
    token_type = array!(call, :output, (:features, :tokens), FLOAT; steps=(:token_ld,), out=true)
    weight_type = array!(call, :routing_weights, (:top_k, :tokens), FLOAT; steps=(:routing_weights_ld,))
    finish_permutation!(call)
    run!(call, Raw.ggm_permute_problem_t, Raw.ggm_unpermute_workspace_size, Raw.ggm_unpermute, Raw.ggm_permute_tensors_t, workspace;
         token_type=token_type, row_type=row_type, routing_weight_type=weight_type, sm_limit=sm_limit,
         flags=addflag(addflag(0, Raw.GGM_FLAG_KEEP_UNUSED_ROWS, keep_unused_rows), Raw.GGM_FLAG_ADD_TO_Y, add_to_y))
    return output
end

"""
    GGM.unpermute_backward!(handle, routing, dy; rows, routing_weights, d_rows, d_routing_weights, keep_unused_rows = false,
                            num_tokens, faults, sm_limit, workspace, stream)

The gradients of [`unpermute!`](@ref): `d_rows[:, r] = round(w[j, t] * dy[:, t])` and `d_routing_weights[j, t] = <dy[:, t], rows[:, r]>`.
Those of the two outputs are computed that are given; at least one is.

    dy                 (features, tokens) of Float32, BFloat16, Float16 or Float64
    rows               (features, max_rows), the input of unpermute!; exactly when d_routing_weights is given
    routing_weights    (top_k, tokens), as in unpermute!
    d_rows             (features, max_rows), written; of the type of rows
    d_routing_weights  Float32 (top_k, tokens), packed, written
"""
function unpermute_backward!(handle::Handle, routing::Routing, dy; rows=nothing, routing_weights=nothing, d_rows=nothing,
                             d_routing_weights=nothing, keep_unused_rows::Bool=false, num_tokens=nothing, faults=nothing,
                             sm_limit::Integer=0, workspace=nothing, stream=nothing)
    call = Call(handle, stream, Pair{Symbol,Any}[:routing_weights => routing_weights, :rows => rows, :dy => dy,
        :d_rows => d_rows, :d_routing_weights => d_routing_weights, :num_tokens => num_tokens, :faults => faults], routing)
    require(call, :dy)
    token_type = array!(call, :dy, (:features, :tokens), FLOAT; steps=(:token_ld,))
    row_type = array!(call, :rows, (:features, :max_rows), FLOAT; steps=(:row_ld,))
    d_row_type = array!(call, :d_rows, (:features, :max_rows), FLOAT; steps=(:row_ld,), out=true)
    row_type != 0 && d_row_type != 0 && row_type != d_row_type &&
        throw(ArgumentError("d_rows holds $(eltype(d_rows)); it must hold $(eltype(rows)), as rows does"))
    weight_type = array!(call, :routing_weights, (:top_k, :tokens), FLOAT; steps=(:routing_weights_ld,))
    array!(call, :d_routing_weights, (:top_k, :tokens), (Float32,); out=true)
    finish_permutation!(call)
    run!(call, Raw.ggm_permute_problem_t, Raw.ggm_unpermute_backward_workspace_size, Raw.ggm_unpermute_backward,
         Raw.ggm_unpermute_backward_tensors_t, workspace; token_type=token_type, row_type=max(row_type, d_row_type),
         routing_weight_type=weight_type, sm_limit=sm_limit, flags=addflag(0, Raw.GGM_FLAG_KEEP_UNUSED_ROWS, keep_unused_rows))
    return
end

function finish_permutation!(call::Call)
    routing!(call)
    extras!(call)
    check_max_rows(call)
end
