# grouped_gemm! and grouped_gemm_array! on the host backend, exact, against plain loops.
module Products

using Test
using GGM
using GGM: Raw
import ..POISON, ..TYPES, ..encode, ..poisoned, ..same, ..small, ..throws

# A column is a row of ggm.h: d (n, m) = transpose(b) * a with a (k, m) and b (k, n).
const M, N, K, GROUPS = 8, 4, 5, 3
const SIZES = [3, 0, 4]  # the last of the eight belongs to no group
const A, B = small(1, K, M), small(2, K, N, GROUPS)
const OF_ROW = [0, 0, 0, 2, 2, 2, 2, -1]
const HANDLE = GGM.Handle(:host; host_threads=2)

product(a, b) = [sum(Float64[b[k, n] * a[k, m] for k in 1:size(a, 1)]) for n in 1:size(b, 2), m in 1:size(a, 2)]
stored(b, order) = order === :NK ? b : permutedims(b, ndims(b) == 3 ? (2, 1, 3) : (2, 1))

function want(groups)
    d = zeros(N, M)
    for (m, e) in enumerate(groups)
        e < 0 || (d[:, m] = product(A[:, m:m], B[:, :, e+1]))
    end
    return d
end

@testset "contiguous: every type and order" begin
    for T in TYPES, order in (:NK, :KN), D in (T === Float64 ? (T,) : unique((T, Float32)))
        d = poisoned(D, N, M)
        @test GGM.grouped_gemm!(HANDLE, d, encode(T, A), encode(T, stored(B, order)); b_order=order, group_sizes=SIZES) === d
        @test same((T, order, D), d, want(OF_ROW))
    end
end

@testset "contiguous: every form of groups" begin
    a, b = Float32.(A), Float32.(B)
    for I in (Int32, Int64), (name, given, of_row) in (
        ("sizes", (group_sizes=I.(SIZES),), OF_ROW),
        ("offsets", (group_offsets=I[1, 3, 3, 8],), [-1, 0, 0, 2, 2, 2, 2, 2]),
        ("ends", (group_ends=I[3, 3, 7],), OF_ROW),
        ("starts and sizes", (group_starts=I[5, 0, 2], group_sizes=I[3, 1, 2]), [1, -1, 2, 2, -1, 0, 0, 0]),
        ("row_group", (row_group=I[2, 0, -1, 1, 0, 2, 2, 1],), [2, 0, -1, 1, 0, 2, 2, 1]),
    )
        d = fill(Float32(POISON), N, M)
        GGM.grouped_gemm!(HANDLE, d, a, b; b_order=:NK, given...)
        @test same((I, name), d, want(of_row))
    end
end

@testset "contiguous: alpha, beta, c, shared weights, views" begin
    b = GGM.shared(B[:, :, 2], GROUPS)
    d = fill(POISON, N + 2, M)
    GGM.grouped_gemm!(HANDLE, view(d, 1:N, :), A, b; b_order=:NK, group_sizes=SIZES, alpha=2, keep_unused_rows=true)
    expected = fill(POISON, N + 2, M)
    expected[1:N, 1:7] = 2 * product(A[:, 1:7], B[:, :, 2])
    @test same("shared weights", d, expected)
    c = small(3, N, M)
    for itself in (false, true)
        d = itself ? copy(c) : fill(POISON, N, M)
        GGM.grouped_gemm!(HANDLE, d, A, B; b_order=:NK, group_sizes=SIZES, c=itself ? d : c, beta=-3)
        @test same(("c", itself), d[:, 1:7], (want(OF_ROW)-3c)[:, 1:7])
        @test same("the row of no group stays", d[:, 8], itself ? c[:, 8] : fill(POISON, N))
    end
    faults = zeros(UInt32, 8)
    d = fill(POISON, N, M)
    GGM.grouped_gemm!(HANDLE, d, A, B; b_order=:NK, group_sizes=[3, -5, 400], faults=faults, sm_limit=1)
    @test GGM.fault_counts(faults).size_clamped == 2
    @test same("clamped", d, want([0, 0, 0, 2, 2, 2, 2, 2]))
    empty = GGM.grouped_gemm!(HANDLE, zeros(N, 0), zeros(K, 0), B; b_order=:NK, group_sizes=SIZES)
    @test size(empty) == (N, 0)
end

@testset "masked" begin
    a, sizes = small(4, K, 4, GROUPS), [2, 0, 4]
    for T in TYPES, order in (:NK, :KN)
        d = poisoned(T, N, 4, GROUPS)
        GGM.grouped_gemm!(HANDLE, d, encode(T, a), encode(T, stored(B, order)); layout=:masked, b_order=order, group_sizes=sizes)
        expected = zeros(N, 4, GROUPS)
        for e in 1:GROUPS
            expected[:, 1:sizes[e], e] = product(a[:, 1:sizes[e], e], B[:, :, e])
        end
        @test same((T, order), d, expected)
    end
    d = fill(POISON, N + 1, 6, GROUPS)
    GGM.grouped_gemm!(HANDLE, view(d, 1:N, 2:5, :), GGM.shared(a[:, :, 1], GROUPS), B; layout=:masked, b_order=:NK, group_sizes=[4, 1, 2],
                      keep_unused_rows=true)
    expected = fill(POISON, N + 1, 6, GROUPS)
    for (e, size) in enumerate([4, 1, 2])
        expected[1:N, 2:1+size, e] = product(a[:, 1:size, 1], B[:, :, e])
    end
    @test same("one input for all groups, outputs apart", d, expected)
end

@testset "variable k" begin
    a, b = small(5, 3, M), small(6, N, M)
    for T in TYPES, accumulate in (false, true)
        d = encode(T, ones(N, 3, GROUPS))
        added = accumulate ? (c=d, beta=1) : NamedTuple()
        GGM.grouped_gemm!(HANDLE, d, encode(T, a), encode(T, b); layout=:variable_k, group_sizes=SIZES, added...)
        expected = fill(accumulate ? 1.0 : 0.0, N, 3, GROUPS)
        for (e, rows) in ((1, 1:3), (3, 4:7)), r in rows, i in 1:3, n in 1:N
            expected[n, i, e] += a[i, r] * b[n, r]
        end
        @test same((T, accumulate), d, expected)
    end
end

@testset "refusals name the argument" begin
    d = fill(POISON, N, M)
    run(; changes...) = (given = merge((a=A, b=B, d=d, b_order=:NK, group_sizes=SIZES), values(changes));
                         GGM.grouped_gemm!(HANDLE, given.d, given.a, given.b; Base.structdiff(given, NamedTuple{(:a, :b, :d)})...))
    for (kind, text, changes) in (
        (ArgumentError, "b_order is missing; it must be :NK, (k, n, groups), or :KN, (n, k, groups)", (b_order=nothing,)),
        (ArgumentError, "b_order = :NN; known are", (b_order=:NN,)),
        (ArgumentError, "b_order = 7; it must be :NK", (b_order=7,)),
        (ArgumentError, "layout = :flat; known are :contiguous, :masked, :variable_k", (layout=:flat,)),
        (ArgumentError, "groups are given by nothing", (group_sizes=nothing,)),
        (ArgumentError, "groups are given by group_sizes, row_group", (row_group=zeros(Int32, M),)),
        (DimensionMismatch, "group_offsets tells groups = 2, but b tells 3", (group_sizes=nothing, group_offsets=zeros(Int32, 3))),
        (DimensionMismatch, "a tells k = 4, but b tells 5", (a=A[1:4, :],)),
        (DimensionMismatch, "b has size (5, 4); it must be (k, n, groups)", (b=B[:, :, 1],)),
        (DimensionMismatch, "d tells m = 7, but a tells 8", (d=zeros(N, 7),)),
        (ArgumentError, "d is written, but the array is shared", (d=GGM.shared(zeros(N), M),)),
        (GGM.Error, "b_type", (b=Float32.(B),)),
        (ArgumentError, "group_sizes and group_starts hold Int32 and Int64", (group_starts=zeros(Int32, GROUPS),)),
        (DimensionMismatch, "c tells n = 3, but b tells 4", (c=zeros(3, M), beta=1)),
        (GGM.Error, "c_type", (beta=1,)),
        (GGM.Error, "GGM_STATUS_UNSUPPORTED: compute_type", (compute_type=:tf32,)),
        (GGM.Error, "sm_limit = -1", (sm_limit=-1,)),
        (ArgumentError, "b_order = :NK; with :variable_k b is (n, k)", (layout=:variable_k,)),
        (ArgumentError, "a is a Tuple{Int64,Int64}, which is no array", (a=(1, 2),)),
        (DimensionMismatch, "a has size (5, 8); it must be (k, m, groups)", (layout=:masked,)),
    )
        @test throws(kind, replace(text, "Int64,Int64" => string(typeof((1, 2)))[7:end-1]), () -> run(; changes...))
    end
    @test all(==(POISON), d)  # a refused call writes nothing
    run()
    @test !any(==(POISON), d)
end

# ---- arrays of addresses -------------------------------------------------------------------------------------------------------

const SHAPES = [(2, 3, 4), (0, 3, 4), (1, 2, 0), (3, 1, 2)]  # m, n, k of each group

function run_groups(T, a_order, b_order; I=Int32, options...)
    a = [small(i, k, m) for (i, (m, _, k)) in enumerate(SHAPES)]
    b = [small(8 + i, k, n) for (i, (_, n, k)) in enumerate(SHAPES)]
    stored_a = [encode(T, a_order === :MK ? x : permutedims(x)) for x in a]
    stored_b = [encode(T, stored(x, b_order)) for x in b]
    d = [encode(T, ones(n, m)) for (m, n, _) in SHAPES]
    added = haskey(options, :beta) ? (c=Int64.(GGM.addresses(d)), c_type=T) : NamedTuple()
    m, n, k = (I[shape[i] for shape in SHAPES] for i in 1:3)
    pointers = GGM.addresses(d)
    GC.@preserve stored_a stored_b d begin
        result = GGM.grouped_gemm_array!(HANDLE, pointers, GGM.addresses(stored_a), GGM.addresses(stored_b); max_m=3, max_n=3, max_k=4,
                                         a_type=T, a_order=a_order, b_order=b_order, m=m, n=n, k=k, added..., options...)
    end
    expected = [get(options, :alpha, 1) * product(x, y) .+ get(options, :beta, 0) for (x, y) in zip(a, b)]
    return result === pointers && all(same((T, a_order, b_order, options, i), d[i], expected[i]) for i in 1:length(SHAPES))
end

@testset "groups by addresses: every type and order" begin
    for T in TYPES, a_order in (:MK, :KM), b_order in (:NK, :KN)
        @test run_groups(T, a_order, b_order)
    end
    @test run_groups(Float32, :MK, :NK; alpha=2, beta=-3, I=Int64)
end

@testset "groups by addresses: bounds as sizes, leading dimensions, another output type" begin
    a, b, d = Float16.(small(1, 6, 3, 2)), Float16.(small(2, 4, 2, 2)), fill(Float32(POISON), 5, 3, 2)
    parts(x) = [view(x, :, :, i) for i in 1:2]
    GC.@preserve a b d GGM.grouped_gemm_array!(
        HANDLE, GGM.addresses(parts(d)), GGM.addresses(parts(a)), GGM.addresses(parts(b)); max_m=3, max_n=2, max_k=4, a_type=Float16,
        d_type=:float32, b_order=:NK, lda=Int32[6, 6], ldb=Int32[4, 4], ldd=Int32[5, 5], min_alignment=2, workspace=GGM.workspace)
    expected = fill(POISON, 5, 3, 2)
    for i in 1:2
        expected[1:2, :, i] = product(Float64.(a[1:4, :, i]), Float64.(b[:, :, i]))
    end
    @test same("leading dimensions", d, expected)
end

@testset "groups by addresses: one that is not aligned is skipped and counted" begin
    memory, faults, x = fill(Float32(POISON), 40), zeros(UInt32, 8), ones(Float32, 4)
    start = Int(-(UInt(pointer(memory)) ÷ 4) % 16) + 2  # four bytes behind a multiple of 64
    d = view(memory, start:start+3)
    GC.@preserve x memory GGM.grouped_gemm_array!(HANDLE, GGM.addresses([d]), GGM.addresses([x]), GGM.addresses([x]); max_m=2, max_n=2,
                                                  max_k=2, a_type=Float32, b_order=:NK, min_alignment=64, faults=faults)
    @test GGM.fault_counts(faults).misaligned_group == 1
    @test all(==(POISON), memory)
end

@testset "groups by addresses: refusals name the argument" begin
    three = zeros(UInt64, 3)
    run(; changes...) = (given = merge((a=three, b=three, d=three, max_m=0, max_n=1, max_k=1, a_type=Float32, b_order=:NK), values(changes));
                         GGM.grouped_gemm_array!(HANDLE, given.d, given.a, given.b; Base.structdiff(given, NamedTuple{(:a, :b, :d)})...))
    for (kind, text, changes) in (
        (ArgumentError, "a holds Float64; it must hold UInt64 or Int64", (a=zeros(3),)),
        (DimensionMismatch, "b tells groups = 2, but a tells 3", (b=three[1:2],)),
        (ArgumentError, "sizes and leading dimensions hold Int32 and Int64", (m=zeros(Int32, 3), k=zeros(Int64, 3))),
        (ArgumentError, "a_type = :half; known are", (a_type=:half,)),
        (GGM.Error, "max_m = -1", (max_m=-1,)),
        (GGM.Error, "c_type", (c=three,)),
        (ArgumentError, "b_order = :up; known are", (b_order=:up,)),
    )
        @test throws(kind, text, () -> run(; changes...))
    end
    @test run() === three  # no rows: nothing is looked at
    @test throws(ArgumentError, "arrays[2] is a Int64, which is no array", () -> GGM.addresses([zeros(1), 3]))
end

@testset "workspace sizes" begin
    of_addresses = GGM.GroupedGemmArrayProblem(groups=3, max_m=2, max_n=2, max_k=2, a_type=:bfloat16, b_type=:bfloat16, a_order=:KM, b_order=:KN)
    @test GGM.grouped_gemm_array_workspace_size(HANDLE, of_addresses) >= 0
    @test throws(GGM.Error, "a_order = 0", () -> GGM.grouped_gemm_array_workspace_size(HANDLE, GGM.GroupedGemmArrayProblem()))
    problem(groups) = GGM.GroupedGemmProblem(groups=groups, m=8, n=4, k=5, a_type=Float32, b_type=Float32, b_order=:NK, group_form=:ends)
    @test GGM.grouped_gemm_workspace_size(HANDLE, problem(3)) >= 0
    @test throws(GGM.Error, "groups = -1", () -> GGM.grouped_gemm_workspace_size(HANDLE, problem(-1)))
end

end
