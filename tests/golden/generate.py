#!/usr/bin/env python3
"""Writes golden.txt: calls of every operation on small integers, and what they must give.

    generate.py            writes the file again
    generate.py --check    exits with 1 when the file is not what this script writes

Nothing here knows the library: the results are plain loops over Python's integers. Every number, and every sum on the way to it,
is an integer of at most 256 in magnitude, so that all element types hold it exactly, and no order of a sum matters. README.md has
the format.
"""
import pathlib
import sys

FILE = pathlib.Path(__file__).resolve().parent / "golden.txt"

# The numbers of ggm.h.
FLOAT32, BFLOAT16, FLOAT16, FLOAT64 = 1, 2, 3, 4
NAMES = {FLOAT32: "float32", BFLOAT16: "bfloat16", FLOAT16: "float16", FLOAT64: "float64"}
INT32, INT64 = 1, 2
INDEX_NAMES = {INT32: "int32", INT64: "int64"}
NK, KN = MK, KM = 1, 2
ORDER_NAMES = {NK: "NK", KN: "KN"}
CONTIGUOUS, MASKED, VARIABLE_K = 0, 1, 2
SIZES, OFFSETS, ENDS, STARTS_SIZES, ROW_GROUP = range(5)
FORM_NAMES = ["sizes", "offsets", "ends", "starts and sizes", "row_group"]
TOKENS, GROUPED = 0, 1
COMBINE_NAMES = ["auto", "ordered", "two_step"]
KEEP_UNUSED_ROWS, ALPHA, ADD_TO_Y, ADD_TO_DX, ADD_TO_DWEIGHT, ADD_TO_DBIAS = 1, 2, 4, 8, 16, 32
GRADIENT_X, GRADIENT_WEIGHT, GRADIENT_ROUTING_WEIGHTS, GRADIENT_BIAS = 1, 2, 4, 8
BAD_ID, SIZE_CLAMPED, ROWS_DROPPED, BAD_ROUTING = 0, 1, 2, 3
FAULT_WORDS = 8

# Output rows that must stay as they are hold this before the call.
OLD = 100


# ---- the file ------------------------------------------------------------------------------------------------------------

def flat(values):
    """Numbers of nested lists, in order."""
    return [number for value in values for number in flat(value)] if isinstance(values, list) else [values]


def shape(values):
    return [len(values), *(shape(values[0]) if values else [])] if isinstance(values, list) else []


class Case:
    """One call. Fields of the problem that are 0 are left out."""

    def __init__(self, operation, title, **problem):
        self.lines = [f"case {operation}: {title}", f"operation {operation}"]
        self.lines += [f"set {field} {value}" for field, value in problem.items() if value != 0]

    def tensor(self, direction, field, kind, values, dims=None):
        """dims: where the nesting of the list does not tell them."""
        dims = "x".join(map(str, dims or shape(values)))
        numbers = flat(values)
        assert all(isinstance(n, int) and abs(n) <= 256 for n in numbers), (self.lines[0], field, numbers)
        self.lines.append(" ".join([direction, field, NAMES.get(kind, kind), dims, *map(str, numbers)]))
        return self

    def given(self, field, kind, values, dims=None):
        return self.tensor("in", field, kind, values, dims)

    def wanted(self, field, kind, values, dims=None):
        return self.tensor("out", field, kind, values, dims)

    def counted(self, **words):
        """The array of faults, zeros before the call."""
        after = [0] * FAULT_WORDS
        for word, count in words.items():
            after[globals()[word]] = count
        return self.given("faults", "uint32", [0] * FAULT_WORDS).wanted("faults", "uint32", after)

    def text(self):
        return "\n".join([*self.lines, "end", ""])


class Numbers:
    """Integers from a rule, so that a file is always the same: the upper bits of a linear congruence (Knuth's constants)."""

    def __init__(self, seed):
        self.state = 2 * seed + 1

    def next(self, low, high):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return low + (self.state >> 33) % (high - low + 1)

    def array(self, *dims, low=-2, high=2):
        if len(dims) == 0:
            return self.next(low, high)
        return [self.array(*dims[1:], low=low, high=high) for _ in range(dims[0])]


def transposed(matrix):
    return [list(column) for column in zip(*matrix)]


def stored(matrices, order):
    """Matrices [n][k] as the order keeps them."""
    return matrices if order == NK else [transposed(m) for m in matrices]


# ---- routing -------------------------------------------------------------------------------------------------------------

class Routing:
    """The arrays of ggm_route, from ids [tokens][top_k]."""

    def __init__(self, ids, experts, experts_total=0, first_expert=0, expert_map=None, max_rows=0, num_tokens=None):
        total = experts_total or first_expert + experts
        self.top_k, self.experts = len(ids[0]), experts
        slots = len(ids) * self.top_k
        self.max_rows = max_rows or slots
        self.bad_ids, found = 0, []
        for t, row in enumerate(ids[:num_tokens]):
            for j, expert in enumerate(row):
                if expert < -1 or expert >= total:
                    self.bad_ids += 1
                elif expert >= 0:
                    local = expert_map[expert] if expert_map else expert - first_expert
                    if expert_map and not -1 <= local < experts:
                        self.bad_ids += 1
                    elif 0 <= local < experts:
                        found.append((local, t * self.top_k + j))
        found.sort()
        self.dropped = max(0, len(found) - self.max_rows)
        self.rows = [(e, a // self.top_k, a % self.top_k) for e, a in found[:self.max_rows]]  # (expert, token, slot)
        self.group_offsets = [sum(e < expert for e, _, _ in self.rows) for expert in range(experts + 1)]
        self.row_assignment = [t * self.top_k + j for _, t, j in self.rows] + [-1] * (self.max_rows - len(self.rows))
        self.assignment_row = [[-1] * self.top_k for _ in ids]
        for r, (_, t, j) in enumerate(self.rows):
            self.assignment_row[t][j] = r

    def put(self, case, direction):
        for name in ("group_offsets", "row_assignment", "assignment_row"):
            case.tensor(direction, name, "int32", getattr(self, name))
        return case


IDS = [[0, 2], [2, 2], [1, -1], [-1, -1], [2, 0]]  # an expert twice, slots without one, a token without any
WEIGHTS = [[1, 2], [-1, 1], [2, 1], [1, 1], [-2, 1]]
T, TOP_K, EXPERTS = len(IDS), 2, 4  # expert 3 has no rows


def route_cases():
    for index in (INT32, INT64):
        case = Case("route", f"{INDEX_NAMES[index]} ids", tokens=T, top_k=TOP_K, experts=EXPERTS, id_type=index)
        yield Routing(IDS, EXPERTS).put(case.given("ids", INDEX_NAMES[index], IDS), "out")
    everywhere = [[5, 0], [3, 4], [4, 1], [2, 5], [-1, 4], [3, 3]]
    case = Case("route", "experts 2 to 4 of 6 are local", tokens=6, top_k=2, experts=3, experts_total=6, first_expert=2, id_type=INT32)
    yield Routing(everywhere, 3, 6, 2).put(case.given("ids", "int32", everywhere), "out")
    expert_map = [2, -1, 0, 1, -1, 2]
    case = Case("route", "an expert_map", tokens=6, top_k=2, experts=3, experts_total=6, id_type=INT64)
    case.given("ids", "int64", everywhere).given("expert_map", "int32", expert_map)
    yield Routing(everywhere, 3, 6, expert_map=expert_map).put(case, "out")
    bad = [[0, 7], [-2, 1], [1, 0], [0, 1]]
    routing = Routing(bad, 2, max_rows=3, num_tokens=3)
    case = Case("route", "bad ids, more rows than max_rows, fewer tokens than the arrays hold", tokens=4, top_k=2, experts=2, max_rows=3,
                id_type=INT32)
    case.given("ids", "int32", bad).given("num_tokens", "int32", [3])
    yield routing.put(case.counted(BAD_ID=routing.bad_ids, ROWS_DROPPED=routing.dropped), "out")


# ---- permutations --------------------------------------------------------------------------------------------------------

def with_float32(types=(FLOAT32, BFLOAT16, FLOAT16, FLOAT64)):
    """(type, type of results): each by itself, and the 16-bit ones with float32."""
    return [(kind, kind) for kind in types] + [(kind, FLOAT32) for kind in types if kind in (BFLOAT16, FLOAT16)]


def pair_name(kind, other):
    return NAMES[kind] if kind == other else f"{NAMES[kind]} and {NAMES[other]}"


def type_or_0(kind, usual):
    """0, the default, where it means the same."""
    return 0 if kind == usual else kind


def combined(routing, rows, weights, start):
    """sum of w * rows[r] over the rows of each token."""
    result = [list(row) for row in start]
    for r, (_, t, j) in enumerate(routing.rows):
        for i, value in enumerate(rows[r]):
            result[t][i] += (weights[t][j] if weights else 1) * value
    return result


def permute_cases():
    features, routing = 3, Routing(IDS, EXPERTS)
    sizes = dict(tokens=T, top_k=TOP_K, experts=EXPERTS, features=features)
    slots = T * TOP_K
    for number, (token, row) in enumerate(with_float32()):
        draw = Numbers(100 + number)
        tokens, rows, dy = draw.array(T, features), draw.array(slots, features), draw.array(T, features)
        kinds = dict(token_type=token, row_type=type_or_0(row, token))
        weight = FLOAT64 if token == FLOAT64 else FLOAT32 if row == FLOAT32 else token
        name = f"tokens and rows of {NAMES[token]}" if token == row else f"tokens of {NAMES[token]}, rows of {NAMES[row]}"

        want = [list(tokens[t]) for _, t, _ in routing.rows]
        case = routing.put(Case("permute", name, **sizes, **kinds), "in")
        yield case.given("input", token, tokens).wanted("output", row, want + [[0] * features] * (slots - len(want)))
        case = routing.put(Case("permute", f"{name}, unused rows stay", flags=KEEP_UNUSED_ROWS, **sizes, **kinds), "in")
        case.given("input", token, tokens).given("output", row, [[OLD] * features] * slots)
        yield case.wanted("output", row, want + [[OLD] * features] * (slots - len(want)))

        for weights, add in ((None, False), (WEIGHTS, False), (WEIGHTS, True)):
            title = f"{name}{', weights' if weights else ''}{', added to y' if add else ''}"
            case = routing.put(Case("unpermute", title, flags=ADD_TO_Y if add else 0, routing_weight_type=weight if weights else 0, **sizes,
                                    **kinds), "in")
            if weights:
                case.given("routing_weights", weight, weights)
            case.given("input", row, rows)
            if add:
                case.given("output", token, tokens)
            yield case.wanted("output", token, combined(routing, rows, weights, tokens if add else [[0] * features] * T))

        d_rows, d_weights = [[0] * features for _ in range(slots)], [[0] * TOP_K for _ in range(T)]
        for r, (_, t, j) in enumerate(routing.rows):
            d_rows[r] = [WEIGHTS[t][j] * value for value in dy[t]]
            d_weights[t][j] = sum(a * b for a, b in zip(dy[t], rows[r]))
        case = routing.put(Case("unpermute_backward", name, routing_weight_type=weight, **sizes, **kinds), "in")
        case.given("routing_weights", weight, WEIGHTS).given("rows", row, rows).given("dy", token, dy)
        yield case.wanted("d_rows", row, d_rows).wanted("d_routing_weights", FLOAT32, d_weights)


# ---- grouped products ----------------------------------------------------------------------------------------------------

def product(a, b):
    """[m][k] times [n][k]: the dot product of each pair of rows."""
    return [[sum(x * y for x, y in zip(row, column)) for column in b] for row in a]


def result(sums, c, alpha, beta):
    """alpha * sums + beta * c of one row."""
    return [alpha * s + (beta * old if beta else 0) for s, old in zip(sums, c)]


def group_arrays(case, form, index, starts, sizes, rows):
    """Puts the arrays of the form; the groups lie at starts."""
    kind = INDEX_NAMES[index]
    ends = [start + size for start, size in zip(starts, sizes)]
    if form in (SIZES, STARTS_SIZES):
        case.given("group_sizes", kind, sizes)
    if form == OFFSETS:
        case.given("group_offsets", kind, [*starts, ends[-1]])
    if form == ENDS:
        case.given("group_offsets", kind, ends)
    if form == STARTS_SIZES:
        case.given("group_offsets", kind, starts)
    if form == ROW_GROUP:
        group = [-1] * rows
        for e, (start, end) in enumerate(zip(starts, ends)):
            for row in range(start, end):
                group[row] = e
        case.given("row_group", kind, group)


def group_places(form):
    """Starts and sizes of four groups within nine rows; where the form allows it, apart and in another order."""
    if form in (STARTS_SIZES, ROW_GROUP):
        return [6, 0, 4, 1], [2, 0, 1, 2]
    return [0, 3, 3, 5], [3, 0, 2, 3]


def contiguous_case(draw, types, order, form, index, alpha=1, beta=0, keep=False):
    """Nine rows, of which the groups take eight or fewer."""
    kind, out = types
    m, n, k, groups = 9, 3, 5, 4
    starts, sizes = group_places(form)
    a, b, c = draw.array(m, k), draw.array(groups, n, k), draw.array(m, n)
    title = f"contiguous, {pair_name(kind, out)}, {ORDER_NAMES[order]}, {FORM_NAMES[form]} of {INDEX_NAMES[index]}"
    title += (f", alpha = {alpha}, beta = {beta}" if beta else "") + (", unused rows stay" if keep else "")
    flags = (KEEP_UNUSED_ROWS if keep else 0) | (ALPHA if alpha != 1 else 0)
    case = Case("grouped_gemm", title, flags=flags, groups=groups, m=m, n=n, k=k, alpha=alpha if alpha != 1 else 0, beta=beta,
                layout=CONTIGUOUS, group_form=form, index_type=type_or_0(index, INT32), b_order=order, a_type=kind, b_type=kind,
                c_type=out if beta else 0, d_type=type_or_0(out, kind))
    group_arrays(case, form, index, starts, sizes, m)
    case.given("a", kind, a).given("b", kind, stored(b, order))
    if beta:
        case.given("c", out, c)
    stays = keep or beta
    d = [[OLD if stays else 0] * n for _ in range(m)]
    if stays:
        case.given("d", out, d)
    for e, (start, size) in enumerate(zip(starts, sizes)):
        for row in range(start, start + size):
            d[row] = result(product([a[row]], b[e])[0], c[row], alpha, beta)
    return case.wanted("d", out, d)


def masked_case(draw, types, order, index, alpha=1, beta=0):
    kind, out = types
    groups, m, n, k, sizes = 3, 4, 3, 5, [2, 0, 4]
    a, b, c = draw.array(groups, m, k), draw.array(groups, n, k), draw.array(groups, m, n)
    title = f"masked, {pair_name(kind, out)}, {ORDER_NAMES[order]}, sizes of {INDEX_NAMES[index]}"
    title += f", alpha = {alpha}, beta = {beta}" if beta else ""
    case = Case("grouped_gemm", title, flags=ALPHA if alpha != 1 else 0, groups=groups, m=m, n=n, k=k, alpha=alpha if alpha != 1 else 0,
                beta=beta, layout=MASKED, index_type=type_or_0(index, INT32), b_order=order, a_type=kind, b_type=kind,
                c_type=out if beta else 0, d_type=type_or_0(out, kind))
    case.given("group_sizes", INDEX_NAMES[index], sizes).given("a", kind, a).given("b", kind, stored(b, order))
    d = [[[OLD if beta else 0] * n for _ in range(m)] for _ in range(groups)]
    if beta:
        case.given("c", out, c).given("d", out, d)
    for e in range(groups):
        for row in range(sizes[e]):
            d[e][row] = result(product([a[e][row]], b[e])[0], c[e][row], alpha, beta)
    return case.wanted("d", out, d)


def variable_k_case(draw, types, form, index, alpha=1, beta=0):
    kind, out = types
    groups, m, n, k = 4, 3, 4, 9
    starts, sizes = group_places(form)
    a, b, c = draw.array(k, m), draw.array(k, n), draw.array(groups, m, n)
    title = f"variable K, {pair_name(kind, out)}, {FORM_NAMES[form]} of {INDEX_NAMES[index]}"
    title += f", alpha = {alpha}, beta = {beta}" if beta else ""
    case = Case("grouped_gemm", title, flags=ALPHA if alpha != 1 else 0, groups=groups, m=m, n=n, k=k, alpha=alpha if alpha != 1 else 0,
                beta=beta, layout=VARIABLE_K, group_form=form, index_type=type_or_0(index, INT32), a_type=kind, b_type=kind,
                c_type=out if beta else 0, d_type=type_or_0(out, kind))
    group_arrays(case, form, index, starts, sizes, k)
    case.given("a", kind, a).given("b", kind, b)
    if beta:
        case.given("c", out, c)
    d = []
    for e, (start, size) in enumerate(zip(starts, sizes)):
        rows = range(start, start + size)
        sums = [[sum(a[row][i] * b[row][j] for row in rows) for j in range(n)] for i in range(m)]
        d.append([result(sums[i], c[e][i], alpha, beta) for i in range(m)])
    return case.wanted("d", out, d)


def grouped_gemm_cases():
    seed = 200
    for types in with_float32():
        for order in (NK, KN):
            for form in range(5):
                index = INT64 if (form + order) % 2 else INT32
                seed += 1
                yield contiguous_case(Numbers(seed), types, order, form, index)
            yield contiguous_case(Numbers(seed + 1000), types, order, SIZES, INT32, keep=True)
            yield contiguous_case(Numbers(seed + 2000), types, order, OFFSETS, INT64, alpha=-1, beta=2)
            yield masked_case(Numbers(seed + 3000), types, order, order)
            yield masked_case(Numbers(seed + 4000), types, order, INT32, alpha=2, beta=-1)
        for form in range(5):
            if form == ROW_GROUP:
                continue  # rows of one group apart: contiguous_case has that form; here groups are ranges of rows
            seed += 1
            yield variable_k_case(Numbers(seed), types, form, INT32 if form % 2 else INT64)
        yield variable_k_case(Numbers(seed + 5000), types, SIZES, INT32, alpha=2, beta=-1)


def grouped_gemm_array_cases():
    sizes = [(2, 3, 4), (0, 2, 3), (3, 1, 0), (1, 4, 5)]  # m, n, k: one without rows, one with an empty sum
    seed = 300
    for kind, out in with_float32():
        for a_order in (MK, KM):
            for b_order in (NK, KN):
                seed += 1
                draw = Numbers(seed)
                beta = 2 if seed % 2 else 0
                alpha = -1 if beta else 1
                index = INT64 if seed % 3 == 0 else INT32
                title = f"{pair_name(kind, out)}, A {'MK' if a_order == MK else 'KM'}, B {ORDER_NAMES[b_order]}, sizes of {INDEX_NAMES[index]}"
                title += f", alpha = {alpha}, beta = {beta}" if beta else ""
                case = Case("grouped_gemm_array", title, flags=ALPHA if alpha != 1 else 0, groups=len(sizes), max_m=3, max_n=4, max_k=5,
                            alpha=alpha if alpha != 1 else 0, beta=beta, index_type=type_or_0(index, INT32), a_order=a_order,
                            b_order=b_order, a_type=kind, b_type=kind, c_type=out if beta else 0, d_type=type_or_0(out, kind))
                for position, name in enumerate("mnk"):
                    case.given(name, INDEX_NAMES[index], [size[position] for size in sizes])
                for i, (m, n, k) in enumerate(sizes):
                    a, b, c = draw.array(m, k), draw.array(n, k), draw.array(m, n)
                    case.given(f"a.{i}", kind, a if a_order == MK else transposed(a), (m, k) if a_order == MK else (k, m))
                    case.given(f"b.{i}", kind, b if b_order == NK else transposed(b), (n, k) if b_order == NK else (k, n))
                    if beta:
                        case.given(f"c.{i}", out, c, (m, n))
                    d = [result(row, c[r], alpha, beta) for r, row in enumerate(product(a, b))]
                    case.wanted(f"d.{i}", out, d, (m, n))
                yield case


# ---- the layer -----------------------------------------------------------------------------------------------------------

class Layer:
    """Inputs of one layer, and its results by the formulas of ggm.h."""

    K, N = 4, 3

    def __init__(self, draw, routing, rows_in, rows_out, weights, bias):
        self.routing, self.rows_in, self.rows_out = routing, rows_in, rows_out
        length = {TOKENS: T, GROUPED: routing.max_rows}
        self.x, self.dy = draw.array(length[rows_in], self.K), draw.array(length[rows_out], self.N)
        self.weight, self.weights = draw.array(EXPERTS, self.N, self.K), weights
        self.bias = draw.array(EXPERTS, self.N) if bias else None
        self.old_y, self.old_dx = draw.array(length[rows_out], self.N), draw.array(length[rows_in], self.K)
        self.old_d_weight, self.old_d_bias = draw.array(EXPERTS, self.N, self.K), draw.array(EXPERTS, self.N)

    def each_row(self):
        """(row, expert, token, slot, x of the row, dy of the row, weight)"""
        for r, (e, t, j) in enumerate(self.routing.rows):
            yield (r, e, t, j, self.x[r if self.rows_in == GROUPED else t], self.dy[r if self.rows_out == GROUPED else t],
                   self.weights[t][j] if self.weights else 1)

    def y(self, add):
        y = [list(row) if add else [0] * self.N for row in self.old_y]
        for r, e, t, _, x, _, w in self.each_row():
            p = product([x], self.weight[e])[0]
            if self.bias:
                p = [a + b for a, b in zip(p, self.bias[e])]
            target = y[r if self.rows_out == GROUPED else t]
            for i, value in enumerate(p):
                target[i] += w * value
        return y

    def gradients(self, add):
        """dx, d_weight, d_bias, d_routing_weights"""
        dx = [list(row) if add else [0] * self.K for row in self.old_dx]
        d_weight = [[list(row) if add else [0] * self.K for row in matrix] for matrix in self.old_d_weight]
        d_bias = [list(row) if add else [0] * self.N for row in self.old_d_bias]
        d_weights = [[0] * TOP_K for _ in range(T)]
        for r, e, t, j, x, dy, w in self.each_row():
            q = [sum(dy[n] * self.weight[e][n][k] for n in range(self.N)) for k in range(self.K)]
            target = dx[r if self.rows_in == GROUPED else t]
            for k in range(self.K):
                target[k] += w * q[k]
            for n in range(self.N):
                d_bias[e][n] += w * dy[n]
                for k in range(self.K):
                    d_weight[e][n][k] += w * dy[n] * x[k]
            d_weights[t][j] = sum(a * b for a, b in zip(q, x))
            if self.bias:
                d_weights[t][j] += sum(a * b for a, b in zip(dy, self.bias[e]))
        return dx, d_weight, d_bias, d_weights


def layer_choices():
    """(types, order, rows in, rows out, weights, bias type, combine, index of ids (0: routing arrays), added, seed)"""
    seed = 400
    for types in with_float32():
        kind = types[0]
        for order in (NK, KN):
            for rows_in in (TOKENS, GROUPED):
                for rows_out in (TOKENS, GROUPED):
                    seed += 1
                    index = (INT32, INT64, 0)[seed % 3]
                    bias = (0, kind, FLOAT32)[(seed + order) % 3] if kind != FLOAT64 else (0, kind)[seed % 2]
                    yield types, order, rows_in, rows_out, seed % 4 != 0, bias, seed % 3, index, False, seed
            yield types, order, TOKENS, TOKENS, True, kind, order, INT32, True, seed + 1000


def layer_cases():
    routing = Routing(IDS, EXPERTS)
    for (kind, out), order, rows_in, rows_out, weights, bias, combine, index, add, seed in layer_choices():
        layer = Layer(Numbers(seed), routing, rows_in, rows_out, WEIGHTS if weights else None, bias)
        factor = 0 if not weights else FLOAT64 if kind == FLOAT64 else (FLOAT32, kind)[seed % 2]
        title = f"{pair_name(kind, out)}, {ORDER_NAMES[order]}, {('tokens', 'grouped')[rows_in]} to {('tokens', 'grouped')[rows_out]}"
        title += f"{', weights of ' + NAMES[factor] if weights else ''}{', bias of ' + NAMES[bias] if bias else ''}"
        title += f", {COMBINE_NAMES[combine]}, {INDEX_NAMES[index] + ' ids' if index else 'routing arrays'}{', added' if add else ''}"
        fields = dict(tokens=T, top_k=TOP_K, experts=EXPERTS, in_features=layer.K, out_features=layer.N, id_type=index,
                      routing_weight_type=factor, x_type=kind, weight_type=kind, bias_type=bias)
        choices = dict(weight_order=order, input_rows=rows_in, output_rows=rows_out, combine=combine)

        def start(operation, **more):
            case = Case(operation, title, **{**fields, **choices, **more})
            if index:
                case.given("ids", INDEX_NAMES[index], IDS)
            else:
                routing.put(case, "in")
            if weights:
                case.given("routing_weights", factor, WEIGHTS)
            case.given("x", kind, layer.x).given("weight", kind, stored(layer.weight, order))
            return case.given("bias", bias, layer.bias) if bias else case

        case = start("moe_forward", flags=ADD_TO_Y if add else 0, y_type=type_or_0(out, kind))
        if add:
            case.given("y", out, layer.old_y)
        yield case.wanted("y", out, layer.y(add))

        bits = GRADIENT_X | GRADIENT_WEIGHT | GRADIENT_ROUTING_WEIGHTS | (GRADIENT_BIAS if bias else 0)
        case = start("moe_backward", flags=ADD_TO_DX | ADD_TO_DWEIGHT | (ADD_TO_DBIAS if bias else 0) if add else 0, gradients=bits,
                     dx_type=type_or_0(out, kind), d_weight_type=type_or_0(out, kind), d_bias_type=type_or_0(out, bias) if bias else 0)
        case.given("dy", kind, layer.dy)
        dx, d_weight, d_bias, d_weights = layer.gradients(add)
        if add:
            case.given("dx", out, layer.old_dx).given("d_weight", out, stored(layer.old_d_weight, order))
            if bias:
                case.given("d_bias", out, layer.old_d_bias)
        case.wanted("dx", out, dx).wanted("d_weight", out, stored(d_weight, order)).wanted("d_routing_weights", FLOAT32, d_weights)
        yield case.wanted("d_bias", out, d_bias) if bias else case


def text():
    cases = [case for cases in (route_cases, permute_cases, grouped_gemm_cases, grouped_gemm_array_cases, layer_cases) for case in cases()]
    titles = [case.lines[0] for case in cases]
    assert len(set(titles)) == len(titles), [t for t in titles if titles.count(t) > 1]
    return "# Written by generate.py; README.md has the format.\n" + "".join(case.text() for case in cases)


def main(arguments):
    if arguments == ["--check"]:
        if not FILE.exists() or FILE.read_text(encoding="utf-8") != text():
            print(f"{FILE.name} is not what generate.py writes; run it")
            return 1
        return 0
    if arguments:
        print(__doc__)
        return 2
    FILE.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
