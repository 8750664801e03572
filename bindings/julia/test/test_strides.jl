# Arrays with gaps: each argument of each operation, one after another, as a view of a larger array. Results are those of packed
# arrays, which the other tests hold against loops, and nothing is written into the gaps.
module Strides

using Test
using GGM
import ..POISON, ..new_routing, ..same, ..small

const TOKENS, TOP_K, EXPERTS, K, N = 5, 2, 3, 4, 6
const IDS = [0 2 1 -1 1; 2 2 -1 -1 0]
const COUNT = 7  # slots with an expert
const HANDLE = GGM.Handle(:host; host_threads=2)
const ROUTING = GGM.route!(HANDLE, new_routing(TOKENS, TOP_K, EXPERTS), IDS)
const WEIGHTS = Float32[1 2 1 1 0.5; 2 0.5 1 1 2]

"(larger array, view of it that holds `array`), with gaps behind its columns (axis 1) or, of three axes, its matrices (axis 2)."
function apart(array, axis)
    shape = [size(array)...]
    shape[axis] += 3
    larger = fill(convert(eltype(array), POISON), shape...)
    inside = view(larger, (a == axis ? (2:shape[a]-2) : Colon() for a in 1:ndims(array))...)
    inside .= array
    return larger, inside
end

"""
Runs operation(; arrays...) packed, then with gaps in one argument (or in those of `together`). Outputs are copied for each run.
Returns what differs.
"""
function sweep(operation, inputs, outputs; together=())
    copies() = map(copy, outputs)
    packed = copies()
    operation(; inputs..., packed...)
    faults, runs = [], 0
    for name in keys(merge(inputs, outputs))
        array = merge(inputs, outputs)[name]
        name === :d_routing_weights && continue  # that one must be packed
        name in together && name !== together[1] && continue
        for axis in 1:ndims(array)-1
            names = name in together ? together : (name,)
            pairs = Dict(n => apart(merge(inputs, outputs)[n], axis) for n in names)
            changed = merge(copies(), NamedTuple{names}(Tuple(pairs[n][2] for n in names)))
            operation(; merge(inputs, changed)...)
            runs += 1
            for n in keys(outputs)
                changed[n] == packed[n] || push!(faults, (gaps=names, axis=axis, result=n))
                haskey(pairs, n) && (pairs[n][1] == apart(packed[n], axis)[1] || push!(faults, (gaps=names, axis=axis, written=n)))
            end
        end
    end
    return runs > 0 ? faults : ["nothing was run"]
end

@testset "route" begin
    routing = new_routing(TOKENS, TOP_K, EXPERTS)
    # Its outputs must be packed, so that only ids have gaps.
    packed = GGM.route!(HANDLE, new_routing(TOKENS, TOP_K, EXPERTS), IDS)
    GGM.route!(HANDLE, routing, apart(IDS, 1)[2])
    @test all(getfield(packed, name) == getfield(routing, name) for name in fieldnames(GGM.Routing))
end

@testset "permutations" begin
    tokens, rows = Float32.(small(1, K, TOKENS)), Float32.(small(2, K, TOKENS * TOP_K))
    permute(; input, output) = GGM.permute!(HANDLE, output, ROUTING, input)
    @test sweep(permute, (input=tokens,), (output=rows,)) == []
    unpermute(; input, output, weights) = GGM.unpermute!(HANDLE, output, ROUTING, input; routing_weights=weights)
    @test sweep(unpermute, (input=rows, weights=WEIGHTS), (output=tokens,)) == []
    back(; dy, more...) = GGM.unpermute_backward!(HANDLE, ROUTING, dy; more...)
    @test sweep(back, (dy=tokens, rows=rows, routing_weights=WEIGHTS), (d_rows=0rows, d_routing_weights=0WEIGHTS);
                together=(:rows, :d_rows)) == []
end

@testset "grouped products" begin
    sizes = [3, 0, 4]
    b, c, d = small(3, K, N, EXPERTS), small(4, N, COUNT), fill(POISON, N, COUNT)
    gemm(options) = (; a, b, c, d) -> GGM.grouped_gemm!(HANDLE, d, a, b; c=c, beta=1, group_sizes=sizes, options...)
    for order in (:NK, :KN)
        stored = order === :NK ? b : permutedims(b, (2, 1, 3))
        @test sweep(gemm((b_order=order,)), (a=small(5, K, COUNT), b=stored, c=c), (d=d,)) == []
        @test sweep(gemm((b_order=order, layout=:masked)), (a=small(6, K, 4, EXPERTS), b=stored, c=small(7, N, 4, EXPERTS)),
                    (d=fill(POISON, N, 4, EXPERTS),)) == []
    end
    variable = gemm((layout=:variable_k,))
    a, b, one = small(8, K, COUNT), small(9, N, COUNT), small(1, N, K)
    outputs = (d=fill(POISON, N, K, EXPERTS),)
    @test sweep(variable, (a=a, b=b, c=small(1, N, K, EXPERTS)), outputs) == []
    shared, repeated = copy(outputs.d), copy(outputs.d)
    variable(a=a, b=b, c=GGM.shared(one, EXPERTS), d=shared)
    variable(a=a, b=b, c=repeat(one; outer=(1, 1, EXPERTS)), d=repeated)
    @test shared == repeated && !any(==(POISON), shared)
end

@testset "layer" begin
    for order in (:NK, :KN), rows_in in (:tokens, :grouped), rows_out in (:tokens, :grouped)
        lengths = map(rows -> rows === :grouped ? TOKENS * TOP_K : TOKENS, (rows_in, rows_out))
        weight = order === :NK ? small(2, K, N, EXPERTS) : permutedims(small(2, K, N, EXPERTS), (2, 1, 3))
        options = (weight_order=order, input_rows=rows_in, output_rows=rows_out)
        inputs = (x=small(1, K, lengths[1]), weight=weight, ids=IDS, routing_weights=Float64.(WEIGHTS), bias=small(3, N, EXPERTS))
        forward(; x, weight, y, more...) = GGM.moe_forward!(HANDLE, y, x, weight; options..., more...)
        @test sweep(forward, inputs, (y=fill(POISON, N, lengths[2]),)) == []
        backward(; dy, more...) = GGM.moe_backward!(HANDLE, dy; options..., more...)
        @test sweep(backward, merge(inputs, (dy=small(4, N, lengths[2]),)),
                    (dx=fill(POISON, K, lengths[1]), d_weight=fill(POISON, size(weight)), d_bias=fill(POISON, N, EXPERTS),
                     d_routing_weights=0WEIGHTS)) == []
    end
end

end
