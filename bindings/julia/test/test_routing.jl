# route!, permute!, unpermute! and unpermute_backward! on the host backend, exact, against plain loops.
module RoutingTests

using Test
using GGM
using GGM: BFloat16
import ..POISON, ..TYPES, ..encode, ..new_routing, ..poisoned, ..same, ..small, ..sorted_rows, ..throws

# 5 tokens, 3 slots, 4 experts; a column is a token.
const IDS = [0 2 3 -1 1; 2 2 0 -1 3; -1 1 3 -1 0]
const TOP_K, TOKENS = size(IDS)
const EXPERTS, FEATURES = 4, 5
const HANDLE = GGM.Handle(:host; host_threads=2)

"Whether a routing is what sorting says."
function routed(case, routing, ids, experts; max_rows=length(ids), first_expert=0, tokens=size(ids, 2))
    rows = sorted_rows(ids, experts; first_expert=first_expert, tokens=tokens)[1:min(end, max_rows)]
    assignments = [t * size(ids, 1) + j for (_, t, j) in rows]
    offsets = [count(row -> row[1] < e, rows) for e in 0:experts]
    place = fill(-1, size(ids))
    for (r, a) in enumerate(assignments)
        place[a+1] = r - 1  # assignments count as a matrix of (top_k, tokens) does
    end
    return same((case, :offsets), routing.group_offsets, offsets) &&
           same((case, :rows), routing.row_assignment, [assignments; fill(-1, max_rows - length(rows))]) &&
           same((case, :assignments), routing.assignment_row, place)
end

@testset "route" begin
    for T in (Int32, Int64)
        routing = new_routing(TOKENS, TOP_K, EXPERTS)
        @test GGM.route!(HANDLE, routing, T.(IDS)) === routing
        @test routed(T, routing, IDS, EXPERTS)
        made = GGM.Routing(T.(IDS), EXPERTS)
        @test routed("made", GGM.route!(HANDLE, made, T.(IDS); sm_limit=1), IDS, EXPERTS)
    end
    wide = fill(99, 7, TOKENS)
    wide[3:5, :] = IDS
    @test routed("a view", GGM.route!(HANDLE, new_routing(TOKENS, TOP_K, EXPERTS), view(wide, 3:5, :)), IDS, EXPERTS)
    none = GGM.route!(HANDLE, new_routing(0, 3, 2), zeros(Int32, 3, 0))
    @test none.group_offsets == [0, 0, 0]
end

@testset "route: the length of row_assignment bounds the rows, faults are counted" begin
    bad, faults = Int32.(IDS), zeros(UInt32, 8)
    bad[3, 1] = 9
    routing = GGM.route!(HANDLE, GGM.Routing(bad, EXPERTS; max_rows=6), bad; faults=faults)
    @test routed("bounded", routing, IDS, EXPERTS; max_rows=6)
    counts = GGM.fault_counts(faults)
    @test (counts.bad_id, counts.rows_dropped) == (1, 11 - 6)
end

@testset "route: local experts by range and by map, fewer tokens" begin
    routing = GGM.route!(HANDLE, new_routing(TOKENS, TOP_K, 2), IDS; experts_total=4, first_expert=1)
    @test routed("range", routing, IDS, 2; first_expert=1)
    map_ = Int32[1, -1, 0, -1]
    mapped = [e < 0 ? -1 : Int(map_[e+1]) for e in IDS]
    @test routed("map", GGM.route!(HANDLE, new_routing(TOKENS, TOP_K, 2), IDS; expert_map=map_), mapped, 2)
    @test throws(DimensionMismatch, "expert_map tells experts_total = 4, but the keyword experts_total tells 5",
                 () -> GGM.route!(HANDLE, new_routing(TOKENS, TOP_K, 2), IDS; expert_map=map_, experts_total=5))
    for num_tokens in (Int32[2], fill(Int32(2)))
        routing = GGM.route!(HANDLE, new_routing(TOKENS, TOP_K, EXPERTS), IDS; num_tokens=num_tokens)
        @test routed("2 tokens", routing, IDS, EXPERTS; tokens=2)
    end
end

@testset "route: refusals name the argument" begin
    good = new_routing(TOKENS, TOP_K, EXPERTS)
    changed(; parts...) = GGM.Routing((get(parts, name, getfield(good, name)) for name in fieldnames(GGM.Routing))...)
    for (kind, text, routing, ids) in (
        (ArgumentError, "ids holds Float64; it must hold Int32 or Int64", good, Float64.(IDS)),
        (DimensionMismatch, "ids has size (15,); it must be (top_k, tokens)", good, vec(IDS)),
        (DimensionMismatch, "assignment_row tells tokens = 4, but ids tells 5", changed(assignment_row=zeros(Int32, 3, 4)), IDS),
        (DimensionMismatch, "assignment_row tells top_k = 2, but ids tells 3", changed(assignment_row=zeros(Int32, 2, 5)), IDS),
        (ArgumentError, "group_offsets holds Int64; it must hold Int32", changed(group_offsets=zeros(Int64, 5)), IDS),
        (DimensionMismatch, "row_assignment has 16 rows; more than tokens*top_k = 15", changed(row_assignment=zeros(Int32, 16)), IDS),
        (DimensionMismatch, "row_assignment has no rows; 0 would mean all", changed(row_assignment=zeros(Int32, 0)), IDS),
        (ArgumentError, "assignment_row has strides (1, 4); it must be packed", changed(assignment_row=view(zeros(Int32, 4, 5), 1:3, :)), IDS),
        (ArgumentError, "group_offsets is written, but the array is shared",
         changed(group_offsets=view(GGM.shared(zeros(Int32, 5), 2), :, 1)), IDS),
        (ArgumentError, "the elements of a column must follow each other", good, view(zeros(Int, 6, 5), 1:2:6, :)),
        (GGM.Error, "GGM_STATUS_ALIASING", changed(row_assignment=vec(good.assignment_row)), IDS),
    )
        @test throws(kind, text, () -> GGM.route!(HANDLE, routing, ids))
    end
    @test throws(DimensionMismatch, "faults has size (7,); it must be (8)", () -> GGM.route!(HANDLE, good, IDS; faults=zeros(UInt32, 7)))
    @test throws(ArgumentError, "num_tokens holds Int64; it must hold Int32", () -> GGM.route!(HANDLE, good, IDS; num_tokens=[2]))
    @test throws(DimensionMismatch, "num_tokens has size (2,); it must be (1)", () -> GGM.route!(HANDLE, good, IDS; num_tokens=Int32[1, 2]))
    @test throws(GGM.Error, "GGM_STATUS_INVALID_STREAM: stream = 0x10", () -> GGM.route!(HANDLE, good, IDS; stream=16))
    @test throws(GGM.Error, "sm_limit = -1", () -> GGM.route!(HANDLE, good, IDS; sm_limit=-1))
    @test all(==(-77), good.group_offsets)  # a refused call writes nothing
end

# ---- permutations --------------------------------------------------------------------------------------------------------------

const ROUTING = GGM.route!(HANDLE, new_routing(TOKENS, TOP_K, EXPERTS), IDS)
const SORTED = sorted_rows(IDS, EXPERTS)  # 11 of 15
const FACTORS = [1 2 0.5; 2 1 0.5; 1 1 2; 1 1 1; 0.5 1 2]'[:, :]  # (top_k, tokens)

@testset "permute in every type" begin
    x = small(1, FEATURES, TOKENS)
    want = zeros(FEATURES, 15)
    for (r, (_, t, _)) in enumerate(SORTED)
        want[:, r] = x[:, t+1]
    end
    for T in TYPES, R in (T === Float64 ? (T,) : unique((T, Float32)))
        out = poisoned(R, FEATURES, 15)
        @test GGM.permute!(HANDLE, out, ROUTING, encode(T, x)) === out
        @test same((T, R), out, want)
    end
    wide, larger = fill(Float32(POISON), FEATURES + 3, 15), fill(Float32(POISON), FEATURES + 2, TOKENS)
    larger[2:end-1, :] = x
    GGM.permute!(HANDLE, view(wide, 3:FEATURES+2, :), ROUTING, view(larger, 2:FEATURES+1, :); keep_unused_rows=true)
    kept = fill(POISON, FEATURES + 3, 15)
    kept[3:end-1, 1:11] = want[:, 1:11]
    @test same("views, and unused rows stay", wide, kept)
end

@testset "unpermute in every type" begin
    rows = small(2, FEATURES, 15)
    for T in TYPES, weights in (nothing, FACTORS), add in (false, true)
        out = encode(T, ones(FEATURES, TOKENS))
        given = weights === nothing ? nothing : encode(T, weights)
        @test GGM.unpermute!(HANDLE, out, ROUTING, encode(T, rows); routing_weights=given, add_to_y=add) === out
        want = fill(add ? 1.0 : 0.0, FEATURES, TOKENS)
        for (r, (_, t, j)) in enumerate(SORTED)
            want[:, t+1] += rows[:, r] * (weights === nothing ? 1 : weights[j+1, t+1])
        end
        @test same((T, weights === nothing, add), out, want)
    end
    out = fill(Float32(POISON), FEATURES, TOKENS)
    GGM.unpermute!(HANDLE, out, ROUTING, Float32.(rows); num_tokens=Int32[2], keep_unused_rows=true)
    want = fill(POISON, FEATURES, TOKENS)
    want[:, 1:2] .= 0
    for (r, (_, t, _)) in enumerate(SORTED)
        t < 2 && (want[:, t+1] += rows[:, r])
    end
    @test same("2 tokens", out, want)
end

@testset "unpermute_backward in every type, each gradient alone" begin
    dy, rows = small(3, FEATURES, TOKENS), small(4, FEATURES, 15)
    want_rows, want_weights = zeros(FEATURES, 15), zeros(TOP_K, TOKENS)
    for (r, (_, t, j)) in enumerate(SORTED)
        want_rows[:, r] = FACTORS[j+1, t+1] * dy[:, t+1]
        want_weights[j+1, t+1] = sum(dy[i, t+1] * rows[i, r] for i in 1:FEATURES)
    end
    for T in TYPES, (both, weights) in ((true, true), (true, false), (false, true))
        d_rows = both ? poisoned(T, FEATURES, 15) : nothing
        d_weights = weights ? fill(Float32(POISON), TOP_K, TOKENS) : nothing
        GGM.unpermute_backward!(HANDLE, ROUTING, encode(T, dy); rows=weights ? encode(T, rows) : nothing,
                                routing_weights=encode(T, FACTORS), d_rows=d_rows, d_routing_weights=d_weights)
        both && @test same((T, both, weights), d_rows, want_rows)
        weights && @test same((T, both, weights), d_weights, want_weights)
    end
end

@testset "bad routing is counted" begin
    broken = GGM.Routing(ROUTING.group_offsets, copy(ROUTING.row_assignment), ROUTING.assignment_row)
    broken.row_assignment[1] = 99
    faults = zeros(UInt32, 8)
    GGM.permute!(HANDLE, zeros(Float32, 2, 15), broken, zeros(Float32, 2, TOKENS); faults=faults)
    @test GGM.fault_counts(faults).bad_routing == 1
end

@testset "permutations: refusals name the argument" begin
    x, rows = zeros(Float32, FEATURES, TOKENS), zeros(Float32, FEATURES, 15)
    permute(out, in) = () -> GGM.permute!(HANDLE, out, ROUTING, in)
    @test throws(ArgumentError, "input holds Int32; it must hold Float32, GGM.BFloat16, Float16 or Float64", permute(rows, Int32.(x)))
    @test throws(ArgumentError, "input holds UInt16; if those are the bits of bfloat16 give reinterpret(GGM.BFloat16, input)",
                 permute(rows, zeros(UInt16, FEATURES, TOKENS)))
    @test throws(DimensionMismatch, "output tells features = 6, but input tells 5", permute(zeros(Float32, 6, 15), x))
    @test throws(DimensionMismatch, "row_assignment tells max_rows = 15, but output tells 14", permute(zeros(Float32, FEATURES, 14), x))
    @test throws(ArgumentError, "input has the stride -5 on axis 2", permute(rows, view(x, :, TOKENS:-1:1)))
    @test throws(ArgumentError, "input has the stride 0 on axis 2", permute(rows, GGM.shared(x[:, 1], TOKENS)))
    @test throws(GGM.Error, "GGM_STATUS_ALIASING", permute(rows, view(rows, :, 1:TOKENS)))
    backward(; options...) = () -> GGM.unpermute_backward!(HANDLE, ROUTING, x; options...)
    d_weights = zeros(Float32, TOP_K, TOKENS)
    @test throws(ArgumentError, "d_rows holds Float64; it must hold Float32, as rows does",
                 backward(rows=rows, d_rows=Float64.(rows), d_routing_weights=d_weights))
    @test throws(GGM.Error, "GGM_STATUS_NULL_POINTER", backward())
    @test throws(ArgumentError, "d_routing_weights has strides (1, 4); it must be packed",
                 backward(rows=rows, d_routing_weights=view(zeros(Float32, 4, TOKENS), 1:3, :)))
    @test throws(DimensionMismatch, "d_rows tells row_ld = 8, but rows tells 5",
                 backward(rows=rows, d_rows=view(zeros(Float32, 8, 15), 1:5, :), d_routing_weights=d_weights))
    @test all(iszero, rows)  # a refused call writes nothing
end

@testset "workspace sizes" begin
    problem = GGM.PermuteProblem(tokens=TOKENS, top_k=TOP_K, experts=EXPERTS, features=FEATURES, token_type=BFloat16)
    for query in (GGM.permute_workspace_size, GGM.unpermute_workspace_size, GGM.unpermute_backward_workspace_size)
        @test query(HANDLE, problem) >= 0
        @test throws(MethodError, "no method matching", () -> query(HANDLE, GGM.RouteProblem()))
        @test throws(GGM.Error, "top_k = 0", () -> query(HANDLE, GGM.PermuteProblem(experts=1, token_type=:float32)))
    end
    @test GGM.route_workspace_size(HANDLE, GGM.RouteProblem(tokens=TOKENS, top_k=TOP_K, experts=EXPERTS, id_type=Int64)) > 0
end

end
