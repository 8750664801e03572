"""
    GGM.moe_forward!(handle, y, x, weight; weight_order, ids, routing, routing_weights, bias, expert_map, experts_total,
                     first_expert = 0, max_rows, input_rows = :tokens, output_rows = :tokens, product_type, compute_type = :exact,
                     combine = :auto, add_to_y = false, keep_unused_rows = false, num_tokens, faults, sm_limit, workspace, stream) -> y

One product of a layer, routing included: `y[:, t] = sum over j of w[j, t] * (W_e * x[:, t] + bias[:, e])`, where e is the expert of slot
j of token t and `W_e` is `weight[:, :, e]` with weight_order `:KN`, its transpose with `:NK`. The keywords after `keep_unused_rows` are
explained at [`GGM`](@ref).

    x                (in_features, tokens); with input_rows = :grouped (in_features, max_rows) in sorted order
    weight           (in_features, out_features, experts) with weight_order :NK, (out_features, in_features, experts) with :KN
    y                (out_features, tokens), written (with add_to_y added to); with output_rows = :grouped (out_features, max_rows)
    ids              Int32 or Int64 (top_k, tokens), experts count from 0, -1: no expert; or
    routing          the Routing that `route!` filled; exactly one of the two
    routing_weights  (top_k, tokens) of Float32, BFloat16 or Float16 (Float64 with Float64); nothing: no factor
    bias             (out_features, experts) of Float32 or the type of x
    expert_map, experts_total, first_expert   as in `route!`; with ids only
    max_rows         bound on the rows with ids, where no grouped array tells it; nothing: tokens*top_k
    product_type     Float32: products are not rounded before they are combined; nothing: the type of y
    combine          :auto, :ordered, :two_step: the same bits, other workspace

Types: Float32, BFloat16, Float16, Float64; x and weight alike; y of that type, or Float32 with 16-bit inputs. `GGM.shared` gives one weight
or bias to all experts.
"""
function moe_forward!(handle::Handle, y, x, weight; weight_order=nothing, ids=nothing, routing=nothing, routing_weights=nothing, bias=nothing,
                      expert_map=nothing, experts_total=nothing, first_expert::Integer=0, max_rows=nothing, input_rows=:tokens,
                      output_rows=:tokens, product_type=nothing, compute_type=:exact, combine=:auto, add_to_y::Bool=false,
                      keep_unused_rows::Bool=false, num_tokens=nothing, faults=nothing, sm_limit::Integer=0, workspace=nothing,
                      stream=nothing)
    call = Call(handle, stream, Pair{Symbol,Any}[:x => x, :weight => weight, :y => y, :ids => ids,
        :routing_weights => routing_weights, :bias => bias, :expert_map => expert_map, :num_tokens => num_tokens,
        :faults => faults], routing)
    require(call, :x, :weight, :y)
    order, weight_axes = weight_dims(weight_order, :weight_order, :out_features, :in_features, :experts)
    weight_type = array!(call, :weight, weight_axes, FLOAT; steps=(:weight_ld, :weight_stride), group=true)
    layer = layer!(call, routing, experts_total, max_rows)
    x_type = array!(call, :x, (:in_features, row_axis(input_rows, :input_rows)), FLOAT; steps=(:x_ld,))
    y_type = array!(call, :y, (:out_features, row_axis(output_rows, :output_rows)), FLOAT; steps=(:y_ld,), out=true)
    extras!(call)
    check_max_rows(call)
    flags = addflag(addflag(0, Raw.GGM_FLAG_KEEP_UNUSED_ROWS, keep_unused_rows), Raw.GGM_FLAG_ADD_TO_Y, add_to_y)
    run!(call, Raw.ggm_moe_problem_t, Raw.ggm_moe_forward_workspace_size, Raw.ggm_moe_forward, Raw.ggm_moe_forward_tensors_t, workspace;
         layer..., weight_order=order, weight_type=weight_type, x_type=x_type, y_type=y_type, input_rows=input_rows,
         output_rows=output_rows, product_type=product_type, compute_type=compute_type, combine=combine, first_expert=first_expert,
         sm_limit=sm_limit, flags=flags)
    return y
end

"""
    GGM.moe_backward!(handle, dy; weight_order, x, weight, dx, d_weight, d_bias, d_routing_weights, ids, routing, routing_weights, bias,
                      expert_map, experts_total, first_expert = 0, max_rows, input_rows = :tokens, output_rows = :tokens, product_type,
                      compute_type = :exact, combine = :auto, add_to_dx = false, add_to_d_weight = false, add_to_d_bias = false,
                      keep_unused_rows = false, num_tokens, faults, sm_limit, workspace, stream)

The gradients of [`moe_forward!`](@ref); those are computed whose arrays are given, at least one, in one call or several with the same
bits. Arguments as there, and:

    dy                 as y, of the type of x
    dx                 as x, written; of the type of x, or Float32 with 16-bit x. Needs weight
    d_weight           as weight, written; of its type, or Float32 with 16-bit weights. Needs x
    d_bias             (out_features, experts), written; of the type of x or Float32
    d_routing_weights  Float32 (top_k, tokens), packed, written. Needs x and weight, and bias if the forward had one
    add_to_dx, add_to_d_weight, add_to_d_bias   add to what the array holds

x and weight may be left out where no gradient needs them. The forward saves nothing: the same ids or routing go in.
"""
function moe_backward!(handle::Handle, dy; weight_order=nothing, x=nothing, weight=nothing, dx=nothing, d_weight=nothing, d_bias=nothing,
                       d_routing_weights=nothing, ids=nothing, routing=nothing, routing_weights=nothing, bias=nothing, expert_map=nothing,
                       experts_total=nothing, first_expert::Integer=0, max_rows=nothing, input_rows=:tokens, output_rows=:tokens,
                       product_type=nothing, compute_type=:exact, combine=:auto, add_to_dx::Bool=false, add_to_d_weight::Bool=false,
                       add_to_d_bias::Bool=false, keep_unused_rows::Bool=false, num_tokens=nothing, faults=nothing, sm_limit::Integer=0,
                       workspace=nothing, stream=nothing)
    call = Call(handle, stream, Pair{Symbol,Any}[:x => x, :weight => weight, :dy => dy, :ids => ids,
        :routing_weights => routing_weights, :bias => bias, :dx => dx, :d_weight => d_weight, :d_bias => d_bias,
        :d_routing_weights => d_routing_weights, :expert_map => expert_map, :num_tokens => num_tokens, :faults => faults], routing)
    require(call, :dy)
    for gradient in (:dx, :d_routing_weights)
        haskey(call.given, gradient) && require(call, :weight; needed_by=gradient)
    end
    order, weight_axes = weight_dims(weight_order, :weight_order, :out_features, :in_features, :experts)
    weight_type = array!(call, :weight, weight_axes, FLOAT; steps=(:weight_ld, :weight_stride), group=true)
    d_weight_type = array!(call, :d_weight, weight_axes, FLOAT; steps=(:d_weight_ld, :d_weight_stride), out=true)
    d_bias_type = array!(call, :d_bias, (:out_features, :experts), FLOAT; steps=(:d_bias_stride,), out=true)
    layer = layer!(call, routing, experts_total, max_rows)
    x_axes = (:in_features, row_axis(input_rows, :input_rows))
    x_type = array!(call, :x, x_axes, FLOAT; steps=(:x_ld,))
    dx_type = array!(call, :dx, x_axes, FLOAT; steps=(:dx_ld,), out=true)
    dy_type = array!(call, :dy, (:out_features, row_axis(output_rows, :output_rows)), FLOAT; steps=(:dy_ld,))
    array!(call, :d_routing_weights, (:top_k, :tokens), (Float32,); out=true)
    extras!(call)
    check_max_rows(call)
    # Both are required; a gradient that needs neither x nor weight has the type of dy, which is that of x.
    x_type = x_type != 0 ? x_type : weight_type != 0 ? weight_type : dy_type
    weight_type = weight_type != 0 ? weight_type : x_type
    gradients = Int32(0)
    for (name, bit) in ((:dx, Raw.GGM_GRADIENT_X), (:d_weight, Raw.GGM_GRADIENT_WEIGHT), (:d_bias, Raw.GGM_GRADIENT_BIAS),
                        (:d_routing_weights, Raw.GGM_GRADIENT_ROUTING_WEIGHTS))
        gradients = addflag(gradients, bit, haskey(call.given, name))
    end
    flags = addflag(0, Raw.GGM_FLAG_KEEP_UNUSED_ROWS, keep_unused_rows)
    flags = addflag(flags, Raw.GGM_FLAG_ADD_TO_DX, add_to_dx)
    flags = addflag(flags, Raw.GGM_FLAG_ADD_TO_DWEIGHT, add_to_d_weight)
    flags = addflag(flags, Raw.GGM_FLAG_ADD_TO_DBIAS, add_to_d_bias)
    run!(call, Raw.ggm_moe_problem_t, Raw.ggm_moe_backward_workspace_size, Raw.ggm_moe_backward, Raw.ggm_moe_backward_tensors_t, workspace;
         layer..., weight_order=order, weight_type=weight_type, x_type=x_type, dx_type=dx_type, dy_type=dy_type,
         d_weight_type=d_weight_type, d_bias_type=d_bias_type, gradients=gradients, input_rows=input_rows, output_rows=output_rows,
         product_type=product_type, compute_type=compute_type, combine=combine, first_expert=first_expert, sm_limit=sm_limit, flags=flags)
    return
end

row_axis(rows, argument::Symbol) = choice(ROWS, rows, argument) == Raw.GGM_ROWS_GROUPED ? :max_rows : :tokens

"Ids or routing arrays, routing weights and bias; returns the fields that they make."
function layer!(call::Call, routing, experts_total, max_rows)
    haskey(call.given, :ids) == (routing !== nothing) && throw(ArgumentError("exactly one of ids and routing must be given"))
    option!(call, :max_rows, max_rows)
    id_type = array!(call, :ids, (:top_k, :tokens), INDEX; steps=(:ids_ld,))
    routing === nothing || routing!(call)
    expert_map!(call, experts_total)
    factor_type = array!(call, :routing_weights, (:top_k, :tokens), FLOAT; steps=(:routing_weights_ld,))
    bias_type = array!(call, :bias, (:out_features, :experts), FLOAT; steps=(:bias_stride,), group=true)
    return (id_type=id_type, routing_weight_type=factor_type, bias_type=bias_type)
end
