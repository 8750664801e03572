"""grouped_gemm and grouped_gemm_array. The keywords that all operations share are explained in ggm.routing."""
from . import raw
from .arrays import describe
from .call import FLOATS, INDICES, Call
from .names import Flag, GroupForm, Layout, Order, choice
from .problems import GroupedGemmArrayProblem, GroupedGemmProblem


def weight_dims(order, argument, outer, n, k):
    """Axes of [groups, n, k] as they are stored."""
    order = choice(Order, order, argument)
    if order not in (Order.NK, Order.KN):
        raise ValueError(f"{argument} = {order!r}; it must be 'NK' (k contiguous) or 'KN' (n contiguous)")
    return order, (outer, n, k) if order == Order.NK else (outer, k, n)


def grouped_gemm(handle, a, b, d, *, c=None, layout="contiguous", b_order=None, group_sizes=None, group_offsets=None, group_ends=None,
                 group_starts=None, row_group=None, alpha=None, beta=0.0, compute_type="exact", keep_unused_rows=False, faults=None,
                 sm_limit=0, dtype=None, workspace=None, stream=None):
    """D_e = alpha * A_e @ B_e^T + beta * C_e for all groups e in one call (B as [n,k]). Returns d.

    layout        a               b                                             c, d
    "contiguous"  [m, k]          [groups, n, k] "NK" or [groups, k, n] "KN"    [m, n]
    "masked"      [groups, m, k]  [groups, n, k] "NK" or [groups, k, n] "KN"    [groups, m, n]
    "variable_k"  [k, m]          [k, n]; D_e = A_e^T @ B_e                     [groups, m, n]

    b_order   "NK" or "KN": how b is stored; required, but for variable_k not taken
    c         may be d itself; without beta it is not read
    Groups, as int32 or int64 arrays, in one of these forms (masked takes group_sizes alone):
      group_sizes [groups]; group_offsets [groups+1]; group_ends [groups]; group_starts [groups] with group_sizes [groups];
      row_group [rows], the group of each row, -1: none
    A stride of 0 between groups (numpy.broadcast_to, expand) is taken as one matrix that all groups share.
    Types: float32, bfloat16, float16, float64; a and b alike; c and d of that type, or float32 with 16-bit inputs.
    Rows of d that belong to no group become +0.0, or stay with keep_unused_rows or beta != 0.
    """
    layout = choice(Layout, layout, "layout")
    form, arrays = group_arrays(group_sizes, group_offsets, group_ends, group_starts, row_group)
    call = Call(handle, dict(a=a, b=b, c=c, d=d, **arrays, faults=faults), dtype, stream)
    call.require("a", "b", "d")
    problem = GroupedGemmProblem(layout=layout, group_form=form, beta=beta, compute_type=compute_type, sm_limit=sm_limit)
    rows = "k" if layout == Layout.VARIABLE_K else "m"
    if layout == Layout.VARIABLE_K:
        if b_order is not None:
            raise ValueError(f"b_order = {b_order!r}; with variable_k b is [k, n] and has no order")
        a_type = call.array("a", ("k", "m"), FLOATS, strides=("lda",))
        b_type = call.array("b", ("k", "n"), FLOATS, strides=("ldb",))
    else:
        if b_order is None:
            raise ValueError("b_order is missing; it must be 'NK' ([groups, n, k]) or 'KN' ([groups, k, n])")
        problem.b_order, dims = weight_dims(b_order, "b_order", "groups", "n", "k")
        b_type = call.array("b", dims, FLOATS, strides=("stride_b", "ldb"), shared=True)
        if layout == Layout.MASKED:
            a_type = call.array("a", ("groups", "m", "k"), FLOATS, strides=("stride_a", "lda"), shared=True)
        else:
            a_type = call.array("a", ("m", "k"), FLOATS, strides=("lda",))
    flat = layout == Layout.CONTIGUOUS
    out_dims = ("m", "n") if flat else ("groups", "m", "n")
    c_type = call.array("c", out_dims, FLOATS, strides=("ldc",) if flat else ("stride_c", "ldc"), shared=not flat)
    d_type = call.array("d", out_dims, FLOATS, strides=("ldd",) if flat else ("stride_d", "ldd"), out=True)
    problem.index_type = describe_groups(call, form, rows)
    call.extras()
    problem.a_type, problem.b_type, problem.c_type, problem.d_type = a_type, b_type, c_type, d_type
    call.fill(problem)
    set_alpha(problem, alpha)
    if keep_unused_rows:
        problem.flags |= Flag.KEEP_UNUSED_ROWS
    call.run("ggm_grouped_gemm", problem, raw.ggm_grouped_gemm_tensors_t(), workspace)
    return d


def set_alpha(problem, alpha):
    if alpha is not None:
        problem.flags |= Flag.ALPHA
        problem.alpha = alpha


def group_arrays(sizes, offsets, ends, starts, row_group):
    """The group form that the given arrays make, and the arrays under the names of the tensors' fields."""
    given = {"group_sizes": sizes, "group_offsets": offsets, "group_ends": ends, "group_starts": starts, "row_group": row_group}
    names = {name for name, array in given.items() if array is not None}
    forms = {
        frozenset(["group_sizes"]): GroupForm.SIZES,
        frozenset(["group_offsets"]): GroupForm.OFFSETS,
        frozenset(["group_ends"]): GroupForm.ENDS,
        frozenset(["group_starts", "group_sizes"]): GroupForm.STARTS_SIZES,
        frozenset(["row_group"]): GroupForm.ROW_GROUP,
    }
    form = forms.get(frozenset(names))
    if form is None:
        raise ValueError(
            f"groups are given by {', '.join(sorted(names)) or 'nothing'}; they must be given by group_sizes, group_offsets, group_ends, "
            "group_starts with group_sizes, or row_group"
        )
    arrays = {"group_sizes": sizes, "row_group": row_group}
    arrays["group_offsets"] = next((array for array in (offsets, ends, starts) if array is not None), None)
    return form, arrays


def describe_groups(call, form, rows):
    types = [
        call.vector("group_sizes", "groups", INDICES),
        call.vector("group_offsets", ("groups", 1) if form == GroupForm.OFFSETS else "groups", INDICES),
        call.vector("row_group", rows, INDICES),
    ]
    return one_type([kind for kind in types if kind], "group_sizes and group_starts")


def one_type(types, names):
    if len(set(types)) > 1:
        raise TypeError(f"{names} hold {' and '.join(sorted(set(types)))}; they must hold one type")
    return types[0] if types else None


POINTERS = ("uint64", "int64")


def addresses(arrays):
    """The addresses of arrays, as a list of int: for the arrays of pointers of `grouped_gemm_array`. They stay true only as
    long as the arrays live."""
    return [describe(f"arrays[{i}]", array).address for i, array in enumerate(arrays)]


def grouped_gemm_array(handle, a, b, d, *, c=None, max_m, max_n, max_k, a_type, b_type=None, c_type=None, d_type=None, a_order="MK", b_order,
                       m=None, n=None, k=None, lda=None, ldb=None, ldc=None, ldd=None, alpha=None, beta=0.0, compute_type="exact",
                       min_alignment=0, faults=None, sm_limit=0, workspace=None, stream=None):
    """D_i = alpha * op(A_i) @ op(B_i) + beta * C_i, where sizes, leading dimensions and addresses are arrays. Returns d.

    a, b, c, d     uint64 or int64 [groups]: the address of each group's matrix, in the handle's memory (see `addresses`); the
                   array d is read, the matrices behind it are written
    max_m, max_n, max_k   bounds of the sizes
    m, n, k        int32 or int64 [groups]; None: the bound for every group
    lda .. ldd     of the same type [groups], in elements; None: packed by the group's own sizes
    a_order        "MK" [M,K] or "KM" [K,M];   b_order: "NK" [N,K] or "KN" [K,N]
    a_type .. d_type   element types, such as "bfloat16"; b_type None: a_type; d_type None: a_type; c_type exactly with c
    min_alignment  bytes that all addresses and leading dimensions keep, 0: of the element

    What lies behind the addresses cannot be checked, neither here nor by the library: a wrong one reads or writes other memory.
    """
    arrays = dict(m=m, n=n, k=k, lda=lda, ldb=ldb, ldc=ldc, ldd=ldd, a=a, b=b, c=c, d=d, faults=faults)
    call = Call(handle, arrays, None, stream)
    call.require("a", "b", "d")
    for name in "abcd":
        call.vector(name, "groups", POINTERS)
    types = [call.vector(name, "groups", INDICES) for name in ("m", "n", "k", "lda", "ldb", "ldc", "ldd")]
    call.extras()
    problem = GroupedGemmArrayProblem(
        max_m=max_m, max_n=max_n, max_k=max_k, beta=beta, index_type=one_type([t for t in types if t], "sizes"),
        a_order=a_order, b_order=b_order, a_type=a_type, b_type=a_type if b_type is None else b_type, c_type=c_type, d_type=d_type,
        compute_type=compute_type, min_alignment=min_alignment, sm_limit=sm_limit,
    )
    call.fill(problem)
    set_alpha(problem, alpha)
    call.run("ggm_grouped_gemm_array", problem, raw.ggm_grouped_gemm_array_tensors_t(), workspace)
    return d
