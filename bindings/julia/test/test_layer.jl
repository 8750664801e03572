# moe_forward! and moe_backward! on the host backend, exact, against plain loops.
module Layer

using Test
using GGM
using GGM: BFloat16, Raw
import ..POISON, ..TYPES, ..encode, ..new_routing, ..poisoned, ..same, ..small, ..sorted_rows, ..throws

const IDS = [0 2 3 -1 1; 2 2 -1 -1 3]  # (top_k, tokens)
const TOP_K, TOKENS = size(IDS)
const EXPERTS, K, N = 4, 5, 3
const FACTORS = [1 2 1 1 0.5; 2 0.5 1 1 2]
const ROWS = sorted_rows(IDS, EXPERTS)  # (expert, token, slot) from 0; seven of ten
const HANDLE = GGM.Handle(:host; host_threads=2)
const ROUTING = GGM.route!(HANDLE, new_routing(TOKENS, TOP_K, EXPERTS), IDS)

# The formulas of ggm.h as loops, in Float64 on numbers that every type holds exactly. weight is (K, N, EXPERTS).
Base.@kwdef struct Reference
    x::Matrix{Float64} = small(1, K, TOKENS)
    weight::Array{Float64,3} = small(2, K, N, EXPERTS)
    dy::Matrix{Float64} = small(3, N, TOKENS)
    factors::Union{Nothing,Matrix{Float64}} = nothing
    bias::Union{Nothing,Matrix{Float64}} = nothing
    rows = ROWS
    grouped_x::Bool = false   # whether a column of x is a row
    grouped_dy::Bool = false
end

factor(ref, t, j) = ref.factors === nothing ? 1.0 : ref.factors[j+1, t+1]
x_of(ref, r, t) = ref.x[:, ref.grouped_x ? r : t + 1]
dy_of(ref, r, t) = ref.dy[:, ref.grouped_dy ? r : t + 1]

function product(ref, e, x)
    return [sum(ref.weight[k, n, e+1] * x[k] for k in 1:K) + (ref.bias === nothing ? 0 : ref.bias[n, e+1]) for n in 1:N]
end

function forward(ref; grouped=false)
    y = zeros(N, grouped ? TOKENS * TOP_K : TOKENS)
    for (r, (e, t, j)) in enumerate(ref.rows)
        y[:, grouped ? r : t + 1] += factor(ref, t, j) * product(ref, e, x_of(ref, r, t))
    end
    return y
end

function backward(ref)
    dx, d_weight = zeros(K, ref.grouped_x ? TOKENS * TOP_K : TOKENS), zeros(K, N, EXPERTS)
    d_bias, d_factors = zeros(N, EXPERTS), zeros(TOP_K, TOKENS)
    for (r, (e, t, j)) in enumerate(ref.rows)
        x, dy, w = x_of(ref, r, t), dy_of(ref, r, t), factor(ref, t, j)
        q = [sum(dy[n] * ref.weight[k, n, e+1] for n in 1:N) for k in 1:K]
        dx[:, ref.grouped_x ? r : t + 1] += w * q
        for n in 1:N, k in 1:K
            d_weight[k, n, e+1] += w * dy[n] * x[k]
        end
        d_bias[:, e+1] += w * dy
        d_factors[j+1, t+1] = sum(q .* x) + (ref.bias === nothing ? 0 : sum(dy .* ref.bias[:, e+1]))
    end
    return (dx=dx, d_weight=d_weight, d_bias=d_bias, d_routing_weights=d_factors)
end

stored(w, order) = order === :NK ? w : permutedims(w, (2, 1, 3))
maybe(T, values) = values === nothing ? nothing : encode(T, values)

@testset "forward: every type, order and combine" begin
    for T in TYPES, order in (:NK, :KN), combine in (:ordered, :two_step), bias in (nothing, small(4, N, EXPERTS))
        ref, y = Reference(factors=FACTORS, bias=bias), poisoned(T, N, TOKENS)
        @test GGM.moe_forward!(HANDLE, y, encode(T, ref.x), encode(T, stored(ref.weight, order)); weight_order=order, ids=IDS,
                               routing_weights=encode(T, FACTORS), bias=maybe(T, bias), combine=combine) === y
        @test same((T, order, combine, bias === nothing), y, forward(ref))
    end
end

@testset "forward: from ids of both types and from routing" begin
    ref = Reference()
    for (case, given) in (("Int32", (ids=Int32.(IDS),)), ("Int64", (ids=IDS,)), ("routing", (routing=ROUTING,)))
        y = fill(Float32(POISON), N, TOKENS)
        GGM.moe_forward!(HANDLE, y, Float32.(ref.x), Float32.(ref.weight); weight_order=:NK, given...)
        @test same(case, y, forward(ref))
    end
end

@testset "forward: grouped rows in and out" begin
    rows = small(5, K, 10)
    for T in (Float32, BFloat16)
        common = (weight_order=:NK, routing_weights=Float32.(FACTORS))
        ref, y = Reference(factors=FACTORS), poisoned(T, N, 10)
        GGM.moe_forward!(HANDLE, y, encode(T, ref.x), encode(T, ref.weight); ids=IDS, output_rows=:grouped, common...)
        @test same((T, "out"), y, forward(ref; grouped=true))
        ref, y = Reference(factors=FACTORS, x=rows, grouped_x=true), poisoned(T, N, TOKENS)
        GGM.moe_forward!(HANDLE, y, encode(T, rows), encode(T, ref.weight); routing=ROUTING, input_rows=:grouped, common...)
        @test same((T, "in"), y, forward(ref))
        y = poisoned(T, N, 10)
        GGM.moe_forward!(HANDLE, y, encode(T, rows), encode(T, ref.weight); routing=ROUTING, input_rows=:grouped, output_rows=:grouped,
                         common...)
        @test same((T, "in and out"), y, forward(ref; grouped=true))
    end
    y = fill(POISON, N, 6)
    ref = Reference()
    GGM.moe_forward!(HANDLE, y, ref.x, ref.weight; weight_order=:NK, ids=IDS, output_rows=:grouped)
    @test same("six of seven rows", y, forward(ref; grouped=true)[:, 1:6])
end

@testset "forward: add_to_y, views, shared weights, Float32 results" begin
    one = small(2, K, N)
    ref = Reference(factors=FACTORS, weight=repeat(one; outer=(1, 1, EXPERTS)), bias=ones(N, EXPERTS))
    x, y = fill(Float16(POISON), K + 2, TOKENS), fill(1.0f0, N + 1, TOKENS)
    x[2:end-1, :] = ref.x
    GGM.moe_forward!(HANDLE, view(y, 1:N, :), view(x, 2:K+1, :), GGM.shared(Float16.(one), EXPERTS); weight_order=:NK, ids=IDS,
                     routing_weights=Float16.(FACTORS), bias=GGM.shared(ones(Float32, N), EXPERTS), product_type=Float32, add_to_y=true)
    want = ones(N + 1, TOKENS)
    want[1:N, :] += forward(ref)
    @test same("added", y, want)
end

@testset "forward: local experts, max_rows, num_tokens, faults" begin
    ref, faults, bad = Reference(), zeros(UInt32, 8), copy(IDS)
    bad[1, 4] = 44
    y = fill(POISON, N, TOKENS)
    GGM.moe_forward!(HANDLE, y, ref.x, ref.weight[:, :, 2:3]; weight_order=:NK, ids=bad, experts_total=4, first_expert=1, max_rows=2,
                     num_tokens=Int32[4], keep_unused_rows=true, faults=faults)
    want = zeros(N, TOKENS)
    for (e, t, _) in [row for row in ROWS if row[1] in (1, 2) && row[2] < 4][1:2]
        want[:, t+1] += product(ref, e, ref.x[:, t+1])
    end
    want[:, 5] .= POISON
    @test same("local experts", y, want)
    counts = GGM.fault_counts(faults)
    @test (counts.bad_id, counts.rows_dropped) == (1, 1)
    GGM.moe_forward!(HANDLE, y, ref.x, ref.weight[:, :, 2:3]; weight_order=:NK, ids=IDS, expert_map=Int32[-1, 0, 1, -1], sm_limit=1)
    want = zeros(N, TOKENS)
    for (e, t, _) in ROWS
        e in (1, 2) && (want[:, t+1] += product(ref, e, ref.x[:, t+1]))
    end
    @test same("map", y, want)
    none = GGM.moe_forward!(HANDLE, zeros(N, 0), zeros(K, 0), ref.weight; weight_order=:NK, ids=zeros(Int, 2, 0))
    @test size(none) == (N, 0)
end

# ---- backward ------------------------------------------------------------------------------------------------------------------

function outputs(T; dx=(K, TOKENS), order=:NK, start=POISON)
    weight = order === :NK ? (K, N, EXPERTS) : (N, K, EXPERTS)
    return (dx=encode(T, fill(start, dx)), d_weight=encode(T, fill(start, weight)), d_bias=encode(T, fill(start, N, EXPERTS)),
            d_routing_weights=fill(Float32(POISON), TOP_K, TOKENS))
end

function check(case, out, ref; order=:NK, plus=0)
    want = backward(ref)
    return all(same((case, name), out[name], name === :d_routing_weights ? want[name] : (name === :d_weight ? stored(want[name], order) :
                                                                                        want[name]) .+ plus) for name in keys(out))
end

@testset "backward: every type and order, set and added" begin
    for T in TYPES, order in (:NK, :KN), add in (false, true)
        ref = Reference(factors=FACTORS, bias=small(4, N, EXPERTS))
        out = outputs(T; order=order, start=add ? 1.0 : POISON)
        GGM.moe_backward!(HANDLE, encode(T, ref.dy); weight_order=order, x=encode(T, ref.x), weight=encode(T, stored(ref.weight, order)),
                          ids=IDS, routing_weights=encode(T, FACTORS), bias=encode(T, ref.bias), add_to_dx=add, add_to_d_weight=add,
                          add_to_d_bias=add, out...)
        @test check((T, order, add), out, ref; order=order, plus=add ? 1 : 0)
    end
end

@testset "backward: one gradient at a time, without what it does not need" begin
    ref = Reference(factors=FACTORS)
    for T in (Float32, BFloat16)
        x, weight, dy = encode(T, ref.x), encode(T, ref.weight), encode(T, ref.dy)
        for (name, needs) in ((:dx, (weight=weight,)), (:d_weight, (x=x,)), (:d_bias, NamedTuple()), (:d_routing_weights, (x=x, weight=weight)))
            out = NamedTuple{(name,)}((outputs(T)[name],))
            GGM.moe_backward!(HANDLE, dy; weight_order=:NK, routing=ROUTING, routing_weights=encode(T, FACTORS), needs..., out...)
            @test check((T, name), out, ref)
        end
    end
end

@testset "backward: Float32 gradients of 16-bit tensors" begin
    ref = Reference(factors=FACTORS)
    for T in (BFloat16, Float16)
        out = outputs(Float32)
        GGM.moe_backward!(HANDLE, encode(T, ref.dy); weight_order=:NK, x=encode(T, ref.x), weight=encode(T, ref.weight), ids=IDS,
                          routing_weights=Float32.(FACTORS), product_type=Float32, combine=:ordered, out...)
        @test check(T, out, ref)
    end
end

@testset "backward: grouped rows, fewer tokens" begin
    common = (weight_order=:NK, weight=Float32.(Reference().weight), routing_weights=Float32.(FACTORS))
    ref = Reference(factors=FACTORS, x=small(5, K, 10), grouped_x=true)
    out = outputs(Float32; dx=(K, 10))
    GGM.moe_backward!(HANDLE, Float32.(ref.dy); x=Float32.(ref.x), routing=ROUTING, input_rows=:grouped, common..., out...)
    @test check("grouped x", out, ref)
    ref = Reference(factors=FACTORS, dy=small(6, N, 10), grouped_dy=true)
    out = outputs(Float32)
    GGM.moe_backward!(HANDLE, Float32.(ref.dy); x=Float32.(ref.x), routing=ROUTING, output_rows=:grouped, common..., out...)
    @test check("grouped dy", out, ref)
    faults = zeros(UInt32, 8)
    ref = Reference(factors=FACTORS, rows=[row for row in ROWS if row[2] < 2])
    out = outputs(Float32)
    GGM.moe_backward!(HANDLE, Float32.(ref.dy); x=Float32.(ref.x), ids=IDS, num_tokens=Int32[2], faults=faults, common..., out...)
    @test check("2 tokens", out, ref) && all(iszero, faults)
    kept = outputs(Float32)
    GGM.moe_backward!(HANDLE, Float32.(ref.dy); x=Float32.(ref.x), ids=IDS, num_tokens=Int32[2], keep_unused_rows=true, common..., dx=kept.dx)
    @test same("unused rows stay", kept.dx, hcat(out.dx[:, 1:2], fill(POISON, K, 3)))
end

@testset "backward: local experts by range and by map" begin
    ref = Reference(factors=FACTORS)
    want = backward(Reference(factors=FACTORS, rows=[row for row in ROWS if row[1] in (1, 2)]))
    for given in ((experts_total=4, first_expert=1), (expert_map=Int32[-1, 0, 1, -1], max_rows=10, sm_limit=1))
        dx, d_weight = fill(POISON, K, TOKENS), fill(POISON, K, N, 2)
        GGM.moe_backward!(HANDLE, ref.dy; weight_order=:NK, x=ref.x, weight=ref.weight[:, :, 2:3], ids=IDS, routing_weights=FACTORS, dx=dx,
                          d_weight=d_weight, given...)
        @test same((keys(given), :dx), dx, want.dx)
        @test same((keys(given), :d_weight), d_weight, want.d_weight[:, :, 2:3])
    end
end

# ---- refusals ------------------------------------------------------------------------------------------------------------------

@testset "forward: refusals name the argument" begin
    ref, y = Reference(), fill(POISON, N, TOKENS)
    function run(; changes...)
        given = merge((x=ref.x, weight=ref.weight, y=y, weight_order=:NK, ids=IDS), values(changes))
        GGM.moe_forward!(HANDLE, given.y, given.x, given.weight; Base.structdiff(given, NamedTuple{(:x, :weight, :y)})...)
    end
    for (kind, text, changes) in (
        (ArgumentError, "weight_order is missing; it must be :NK, (in_features, out_features, experts)", (weight_order=nothing,)),
        (ArgumentError, "weight_order = :KM2; known are", (weight_order=:KM2,)),
        (ArgumentError, "exactly one of ids and routing must be given", (ids=nothing,)),
        (ArgumentError, "exactly one of ids and routing must be given", (routing=ROUTING,)),
        (DimensionMismatch, "x tells in_features = 4, but weight tells 5", (x=zeros(4, TOKENS),)),
        (DimensionMismatch, "x tells tokens = 4, but ids tells 5", (x=zeros(K, 4),)),
        (DimensionMismatch, "routing_weights tells top_k = 3, but ids tells 2", (routing_weights=zeros(3, TOKENS),)),
        (DimensionMismatch, "bias tells experts = 3, but weight tells 4", (bias=zeros(N, 3),)),
        (DimensionMismatch, "x tells in_features = 5, but weight tells 3", (weight_order=:KN,)),
        (GGM.Error, "weight_type", (weight=Float32.(ref.weight),)),
        (ArgumentError, "input_rows = :sorted; known are :tokens, :grouped", (input_rows=:sorted,)),
        (GGM.Error, "combine = 9", (combine=9,)),
        (ArgumentError, "weight is missing", (weight=nothing,)),
        (DimensionMismatch, "expert_map has no entries", (expert_map=Int32[],)),
        (DimensionMismatch, "y has no rows; 0 would mean all of", (output_rows=:grouped, y=zeros(N, 0), max_rows=0)),
        (DimensionMismatch, "y has 20 rows; more than", (output_rows=:grouped, y=zeros(N, 20), max_rows=20)),
        (GGM.Error, "product_type = 3 (float16)", (product_type=Float16,)),
        (DimensionMismatch, "y has 11 rows; more than tokens*top_k = 10", (output_rows=:grouped, y=zeros(N, 11))),
        (DimensionMismatch, "y tells max_rows = 4, but the keyword max_rows tells 3", (output_rows=:grouped, y=zeros(N, 4), max_rows=3)),
        (GGM.Error, "GGM_STATUS_ALIASING", (y=view(ref.x, 1:N, :),)),
        (GGM.Error, "GGM_STATUS_INVALID_STREAM: stream", (stream=16,)),
    )
        @test throws(kind, text, () -> run(; changes...))
    end
    @test all(==(POISON), y)  # a refused call writes nothing
    run()
    @test !any(==(POISON), y)
end

@testset "backward: refusals name the argument" begin
    ref, d_weight = Reference(), fill(POISON, K, N, EXPERTS)
    function run(; changes...)
        given = merge((weight_order=:NK, x=ref.x, weight=ref.weight, ids=IDS, d_weight=d_weight), values(changes))
        GGM.moe_backward!(HANDLE, ref.dy; given...)
    end
    for (kind, text, changes) in (
        (GGM.Error, "gradients", (d_weight=nothing,)),
        (GGM.Error, "x is NULL", (x=nothing,)),
        (ArgumentError, "weight is missing; dx needs it", (dx=zeros(K, TOKENS), d_weight=nothing, weight=nothing)),
        (ArgumentError, "weight is missing; d_routing_weights needs it",
         (d_routing_weights=zeros(Float32, TOP_K, TOKENS), d_weight=nothing, weight=nothing)),
        (DimensionMismatch, "d_weight tells in_features = 3, but weight tells 5", (d_weight=zeros(N, K, EXPERTS),)),
        (ArgumentError, "d_routing_weights has strides (1, 3); it must be packed", (d_routing_weights=view(zeros(Float32, 3, TOKENS), 1:2, :),)),
        (ArgumentError, "d_routing_weights holds Float64; it must hold Float32", (d_routing_weights=zeros(TOP_K, TOKENS),)),
        (ArgumentError, "d_bias is written, but the array is shared", (d_bias=GGM.shared(zeros(N), EXPERTS),)),
    )
        @test throws(kind, text, () -> run(; changes...))
    end
    @test all(==(POISON), d_weight)
    run()
    @test !any(==(POISON), d_weight)
end

@testset "workspace sizes" begin
    problem(; more...) = GGM.MoeProblem(; tokens=TOKENS, top_k=TOP_K, experts=EXPERTS, in_features=K, out_features=N, id_type=Int32,
                                        x_type=BFloat16, weight_type=:bfloat16, weight_order=:NK, routing_weight_type=Float32, more...)
    @test GGM.moe_forward_workspace_size(HANDLE, problem()) > 0
    @test GGM.moe_backward_workspace_size(HANDLE, problem(gradients=Raw.GGM_GRADIENT_X | Raw.GGM_GRADIENT_WEIGHT)) > 0
    @test throws(GGM.Error, "gradients", () -> GGM.moe_backward_workspace_size(HANDLE, problem()))
    @test throws(GGM.Error, "top_k = 0", () -> GGM.moe_forward_workspace_size(HANDLE, problem(top_k=0)))
end

end
