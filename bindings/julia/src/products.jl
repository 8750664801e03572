"The axes of a weight as Julia has them."
function weight_dims(order, argument::Symbol, n::Symbol, k::Symbol, outer::Symbol)
    order === nothing && throw(ArgumentError("$argument is missing; it must be :NK, ($k, $n, $outer), or :KN, ($n, $k, $outer)"))
    number = choice(ORDERS, order, argument)
    number in (Raw.GGM_ORDER_NK, Raw.GGM_ORDER_KN) ||
        throw(ArgumentError("$argument = $number; it must be :NK, ($k, $n, $outer), or :KN, ($n, $k, $outer)"))
    return number, number == Raw.GGM_ORDER_NK ? (k, n, outer) : (n, k, outer)
end

"""
    GGM.grouped_gemm!(handle, d, a, b; layout = :contiguous, b_order, group_sizes, group_offsets, group_ends, group_starts, row_group,
                      c, alpha, beta = 0, compute_type = :exact, keep_unused_rows = false, faults, sm_limit, workspace, stream) -> d

The products of all groups e in one call. In Julia's terms, with `a_e`, `d_e` the columns of group e:

    layout        a               b                                            c, d             d_e
    :contiguous   (k, m)          (k, n, groups) :NK or (n, k, groups) :KN     (n, m)           alpha * transpose(b_e) * a_e + beta * c_e with :NK,
    :masked       (k, m, groups)  (k, n, groups) :NK or (n, k, groups) :KN     (n, m, groups)   alpha * b_e * a_e + beta * c_e with :KN
    :variable_k   (m, k)          (n, k)                                       (n, m, groups)   alpha * b_e * transpose(a_e) + beta * c_e

`m` counts the rows of ggm.h in the first two layouts, `k` does in the third.

    b_order   :NK or :KN; required, but for :variable_k not taken
    c         may be d itself; with beta = 0 it is not read
    alpha     nothing: 1
    Groups, as Int32 or Int64 arrays that count from 0, in one of these forms (:masked takes group_sizes alone):
      group_sizes (groups,); group_offsets (groups+1,); group_ends (groups,); group_starts (groups,) with group_sizes (groups,);
      row_group (rows,), the group of each row, -1: none

`GGM.shared(array, groups)` gives one matrix to all groups. Types: Float32, BFloat16, Float16, Float64; a and b alike; c and d of that
type, or Float32 with 16-bit inputs. Rows of d that belong to no group become +0.0, or stay with keep_unused_rows or beta != 0.
"""
function grouped_gemm!(handle::Handle, d, a, b; layout=:contiguous, b_order=nothing, group_sizes=nothing, group_offsets=nothing,
                       group_ends=nothing, group_starts=nothing, row_group=nothing, c=nothing, alpha=nothing, beta::Real=0,
                       compute_type=:exact, keep_unused_rows::Bool=false, faults=nothing, sm_limit::Integer=0, workspace=nothing,
                       stream=nothing)
    layout = choice(LAYOUTS, layout, :layout)
    form, offsets = group_form(; group_sizes=group_sizes, group_offsets=group_offsets, group_ends=group_ends,
                               group_starts=group_starts, row_group=row_group)
    call = Call(handle, stream, Pair{Symbol,Any}[:a => a, :b => b, :c => c, :d => d, :group_sizes => group_sizes,
        :group_offsets => offsets, :row_group => row_group, :faults => faults])
    require(call, :a, :b, :d)
    variable = layout == Raw.GGM_LAYOUT_VARIABLE_K
    flat = !variable && layout != Raw.GGM_LAYOUT_MASKED
    if variable
        b_order === nothing || throw(ArgumentError("b_order = $(repr(b_order)); with :variable_k b is (n, k) and has no order"))
        order = 0
        a_type = array!(call, :a, (:m, :k), FLOAT; steps=(:lda,))
        b_type = array!(call, :b, (:n, :k), FLOAT; steps=(:ldb,))
    else
        order, dims = weight_dims(b_order, :b_order, :n, :k, :groups)
        b_type = array!(call, :b, dims, FLOAT; steps=(:ldb, :stride_b), group=true)
        a_type = flat ? array!(call, :a, (:k, :m), FLOAT; steps=(:lda,)) :
                 array!(call, :a, (:k, :m, :groups), FLOAT; steps=(:lda, :stride_a), group=true)
    end
    out = flat ? (:n, :m) : (:n, :m, :groups)
    c_type = array!(call, :c, out, FLOAT; steps=flat ? (:ldc,) : (:ldc, :stride_c), group=!flat)
    d_type = array!(call, :d, out, FLOAT; steps=flat ? (:ldd,) : (:ldd, :stride_d), out=true)
    index_types = (vector!(call, :group_sizes, :groups, INDEX),
                   vector!(call, :group_offsets, form == Raw.GGM_GROUPS_OFFSETS ? Dim(:groups, 1) : :groups, INDEX),
                   vector!(call, :row_group, variable ? :k : :m, INDEX))
    extras!(call)
    flags = addflag(alpha_flag(alpha), Raw.GGM_FLAG_KEEP_UNUSED_ROWS, keep_unused_rows)
    run!(call, Raw.ggm_grouped_gemm_problem_t, Raw.ggm_grouped_gemm_workspace_size, Raw.ggm_grouped_gemm, Raw.ggm_grouped_gemm_tensors_t, workspace;
         layout=layout, group_form=form, index_type=one_type(index_types, "group_sizes and group_starts"), b_order=order, a_type=a_type,
         b_type=b_type, c_type=c_type, d_type=d_type, compute_type=compute_type, sm_limit=sm_limit, flags=flags,
         alpha=something(alpha, 0), beta=beta)
    return d
end

alpha_flag(alpha) = addflag(UInt32(0), Raw.GGM_FLAG_ALPHA, alpha !== nothing)

"The group form that the given arrays make, and the one that goes into group_offsets."
function group_form(; given...)
    names = Symbol[name for (name, array) in given if array !== nothing]
    form = names == [:group_sizes] ? Raw.GGM_GROUPS_SIZES : names == [:group_offsets] ? Raw.GGM_GROUPS_OFFSETS :
           names == [:group_ends] ? Raw.GGM_GROUPS_ENDS : names == [:group_sizes, :group_starts] ? Raw.GGM_GROUPS_STARTS_SIZES :
           names == [:row_group] ? Raw.GGM_GROUPS_ROW_GROUP : nothing
    form === nothing && throw(ArgumentError(
        "groups are given by $(isempty(names) ? "nothing" : join(names, ", ")); they must be given by group_sizes, group_offsets, " *
        "group_ends, group_starts with group_sizes, or row_group"))
    found = [given[name] for name in (:group_offsets, :group_ends, :group_starts) if given[name] !== nothing]
    return form, isempty(found) ? nothing : only(found)
end

function one_type(types, names::String)
    found = unique(type for type in types if type != 0)
    length(found) > 1 && throw(ArgumentError("$names hold Int32 and Int64; they must hold one type"))
    return isempty(found) ? 0 : found[1]
end

"""
    GGM.addresses(arrays) -> Vector{UInt64}

The addresses of arrays, for [`grouped_gemm_array!`](@ref). They stay true only as long as the arrays live: hold them with
`GC.@preserve` until the work is done.
"""
addresses(arrays) = UInt64[describe(Symbol("arrays[$i]"), array).place.address for (i, array) in enumerate(arrays)]

const POINTERS = (UInt64, Int64)

"""
    GGM.grouped_gemm_array!(handle, d, a, b; max_m, max_n, max_k, a_type, b_type = a_type, c_type, d_type, a_order = :MK, b_order,
                            m, n, k, lda, ldb, ldc, ldd, c, alpha, beta = 0, compute_type = :exact, min_alignment = 0, faults, sm_limit,
                            workspace, stream) -> d

Groups of any shape, where sizes, leading dimensions and addresses are arrays. Of group i, in Julia's terms:

    d_i (n, m) = alpha * op(b_i) * op(a_i) + beta * c_i
    op(a_i) is a_i (k, m) with a_order :MK, transpose(a_i) of an a_i (m, k) with :KM
    op(b_i) is transpose(b_i) of a b_i (k, n) with b_order :NK, b_i (n, k) with :KN

    a, b, c, d     UInt64 or Int64 (groups,): the address of each group's matrix, in the handle's memory (see `addresses`); the
                   array d is read, the matrices behind it are written
    max_m, max_n, max_k   bounds of the sizes
    m, n, k        Int32 or Int64 (groups,); nothing: the bound for every group
    lda .. ldd     of the same type (groups,), elements between columns; nothing: packed by the group's own sizes
    a_type .. d_type   element types; d_type nothing: a_type; c_type exactly with c
    min_alignment  bytes that all addresses and leading dimensions keep, 0: of the element

What lies behind the addresses cannot be checked, neither here nor by the library: a wrong one reads or writes other memory.
"""
function grouped_gemm_array!(handle::Handle, d, a, b; max_m::Integer, max_n::Integer, max_k::Integer, a_type, b_type=a_type, c_type=nothing,
                             d_type=nothing, a_order=:MK, b_order, m=nothing, n=nothing, k=nothing, lda=nothing, ldb=nothing, ldc=nothing,
                             ldd=nothing, c=nothing, alpha=nothing, beta::Real=0, compute_type=:exact, min_alignment::Integer=0,
                             faults=nothing, sm_limit::Integer=0, workspace=nothing, stream=nothing)
    call = Call(handle, stream, Pair{Symbol,Any}[:m => m, :n => n, :k => k, :lda => lda, :ldb => ldb, :ldc => ldc, :ldd => ldd,
        :a => a, :b => b, :c => c, :d => d, :faults => faults])
    for name in (:a, :b, :c, :d)
        vector!(call, name, :groups, POINTERS)
    end
    index_types = [vector!(call, name, :groups, INDEX) for name in (:m, :n, :k, :lda, :ldb, :ldc, :ldd)]
    extras!(call)
    run!(call, Raw.ggm_grouped_gemm_array_problem_t, Raw.ggm_grouped_gemm_array_workspace_size, Raw.ggm_grouped_gemm_array,
         Raw.ggm_grouped_gemm_array_tensors_t, workspace; max_m=max_m, max_n=max_n, max_k=max_k,
         index_type=one_type(index_types, "sizes and leading dimensions"), a_order=a_order, b_order=b_order, a_type=a_type, b_type=b_type,
         c_type=c_type, d_type=d_type, compute_type=compute_type, min_alignment=min_alignment, sm_limit=sm_limit,
         flags=alpha_flag(alpha), alpha=something(alpha, 0), beta=beta)
    return d
end
