"""moe_forward and moe_backward on the host backend, exact, against plain loops."""
import unittest

import numpy as np
from support import POISON, TYPES, dtype_of, encode, expect, new_routing, poisoned, small, sorted_rows

import ggm

IDS = np.array([[0, 2], [2, 2], [3, -1], [-1, -1], [1, 3]])
TOKENS, TOP_K, EXPERTS, K, N = 5, 2, 4, 5, 3
FACTORS = np.array([[1, 2], [2, 0.5], [1, 1], [1, 1], [0.5, 2]])
ROWS = sorted_rows(IDS, EXPERTS)  # (expert, token, slot); seven of ten


class Reference:
    """The formulas of ggm.h as loops, in float64 on numbers that every type holds exactly."""

    def __init__(self, factors=None, bias=None, x_of_row=None, dy_of_row=None, shared=False):
        self.x, self.w, self.dy = small((TOKENS, K), 1), small((EXPERTS, N, K), 2), small((TOKENS, N), 3)
        if shared:
            self.w = np.broadcast_to(self.w[0], self.w.shape)
        self.factors, self.bias = factors, bias
        self.x_of_row = x_of_row or (lambda r, t: self.x[t])
        self.dy_of_row = dy_of_row or (lambda r, t: self.dy[t])

    def factor(self, t, j):
        return 1 if self.factors is None else self.factors[t, j]

    def rows(self):
        for r, (e, t, j) in enumerate(ROWS):
            yield r, e, t, j, self.x_of_row(r, t), self.dy_of_row(r, t)

    def product(self, e, x):
        return np.array([sum(self.w[e, n, k] * x[k] for k in range(K)) + (0 if self.bias is None else self.bias[e, n]) for n in range(N)])

    def forward(self, grouped=False):
        y = np.zeros((TOKENS * TOP_K if grouped else TOKENS, N))
        for r, e, t, j, x, _ in self.rows():
            y[r if grouped else t] += self.factor(t, j) * self.product(e, x)
        return y

    def backward(self, grouped=False):
        dx = np.zeros((TOKENS * TOP_K if grouped else TOKENS, K))
        dw, db, df = np.zeros((EXPERTS, N, K)), np.zeros((EXPERTS, N)), np.zeros((TOKENS, TOP_K))
        for r, e, t, j, x, dy in self.rows():
            back = np.array([sum(dy[n] * self.w[e, n, k] for n in range(N)) for k in range(K)])
            dx[r if grouped else t] += self.factor(t, j) * back
            for n in range(N):
                dw[e, n] += self.factor(t, j) * dy[n] * x
            db[e] += self.factor(t, j) * dy
            df[t, j] = sum(back[k] * x[k] for k in range(K)) + (0 if self.bias is None else sum(dy * self.bias[e]))
        return dx, dw, df, db


def stored(w, order):
    return w if order == "NK" else np.swapaxes(w, 1, 2).copy()


class OnTheHost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.handle = ggm.Handle("host", host_threads=2)
        cls.addClassCleanup(cls.handle.close)
        cls.routing = ggm.route(cls.handle, IDS, new_routing(TOKENS, TOP_K, EXPERTS))


class Forward(OnTheHost):
    def test_every_type_order_and_combine(self):
        for kind in TYPES:
            for order in ("NK", "KN"):
                for combine in ("ordered", "two_step"):
                    for bias in (None, small((EXPERTS, N), 4)):
                        ref, y = Reference(FACTORS, bias), poisoned((TOKENS, N), kind)
                        self.assertIs(ggm.moe_forward(
                            self.handle, encode(ref.x, kind), encode(stored(ref.w, order), kind), y, weight_order=order, ids=IDS,
                            routing_weights=encode(FACTORS, kind), bias=None if bias is None else encode(bias, kind), combine=combine,
                            dtype=dtype_of(kind)), y)
                        expect((kind, order, combine, bias is None), y, ref.forward(), kind)

    def test_from_ids_of_both_types_and_from_routing(self):
        ref = Reference()
        flat = self.routing._replace(assignment_row=self.routing.assignment_row.reshape(-1))
        for case, given in (("int32", {"ids": IDS.astype(np.int32)}), ("int64", {"ids": IDS}), ("routing", {"routing": self.routing}),
                            ("a plain tuple", {"routing": tuple(self.routing)}), ("flat", {"routing": flat})):
            y = np.full((TOKENS, N), POISON, np.float32)
            ggm.moe_forward(self.handle, ref.x.astype(np.float32), ref.w.astype(np.float32), y, weight_order="NK", **given)
            expect(case, y, ref.forward())

    def test_grouped_rows_in_and_out(self):
        rows = small((10, K), 5)
        for kind in ("float32", "bfloat16"):
            ref = Reference(FACTORS)
            y = poisoned((10, N), kind)
            common = dict(weight_order="NK", routing_weights=encode(FACTORS, "float32"), dtype=dtype_of(kind))
            ggm.moe_forward(self.handle, encode(ref.x, kind), encode(ref.w, kind), y, ids=IDS, output_rows="grouped", **common)
            expect("grouped out", y, ref.forward(grouped=True), kind)
            ref = Reference(FACTORS, x_of_row=lambda r, t: rows[r])
            y = poisoned((TOKENS, N), kind)
            ggm.moe_forward(self.handle, encode(rows, kind), encode(ref.w, kind), y, routing=self.routing, input_rows=ggm.Rows.GROUPED, **common)
            expect("grouped in", y, ref.forward(), kind)

    def test_grouped_results_bound_the_rows(self):
        ref = Reference()
        y = np.full((6, N), POISON)
        ggm.moe_forward(self.handle, ref.x, ref.w, y, weight_order="NK", ids=IDS, output_rows="grouped")
        expect("six of seven rows", y, ref.forward(grouped=True)[:6])

    def test_both_sides_grouped_with_a_flat_routing_need_top_k(self):
        ref, rows = Reference(), small((10, K), 5)
        ref.x_of_row = lambda r, t: rows[r]
        flat = self.routing._replace(assignment_row=self.routing.assignment_row.reshape(-1))
        y = np.full((10, N), POISON)
        given = dict(weight_order="NK", routing=flat, input_rows="grouped", output_rows="grouped")
        with self.assertRaisesRegex(ValueError, "top_k is told by no array; give top_k="):
            ggm.moe_forward(self.handle, rows, ref.w, y, **given)
        ggm.moe_forward(self.handle, rows, ref.w, y, top_k=TOP_K, **given)
        expect("grouped", y, ref.forward(grouped=True))

    def test_add_to_y_slices_shared_weights_and_float32_results(self):
        ref = Reference(FACTORS, shared=True)
        x, y = np.full((TOKENS, K + 2), POISON, np.float16), np.full((TOKENS, N + 1), 1, np.float32)
        x[:, 1:-1] = ref.x
        weight = np.broadcast_to(encode(ref.w[0], "float16"), ref.w.shape)
        bias = np.broadcast_to(np.ones(N, np.float32), (EXPERTS, N))
        ref.bias = bias
        ggm.moe_forward(self.handle, x[:, 1:-1], weight, y[:, :N], weight_order="NK", ids=IDS, routing_weights=FACTORS.astype(np.float16),
                        bias=bias, product_type="float32", add_to_y=True)
        want = np.ones((TOKENS, N + 1))
        want[:, :N] += ref.forward()
        expect("added", y, want)

    def test_local_experts_max_rows_num_tokens_and_faults(self):
        ref, faults = Reference(), np.zeros(8, np.uint32)
        bad = IDS.copy()
        bad[3, 0] = 44
        y = np.full((TOKENS, N), POISON)
        ggm.moe_forward(self.handle, ref.x, ref.w[1:3], y, weight_order="NK", ids=bad, experts_total=4, first_expert=1, max_rows=2,
                        num_tokens=np.array([4], np.int32), keep_unused_rows=True, faults=faults)
        want = np.zeros((TOKENS, N))
        for e, t, _ in [row for row in ROWS if row[0] in (1, 2) and row[1] < 4][:2]:
            want[t] += ref.product(e, ref.x[t])
        want[4] = POISON
        expect("local experts", y, want)
        self.assertEqual((faults[ggm.Fault.BAD_ID], faults[ggm.Fault.ROWS_DROPPED]), (1, 1))
        by_map = np.array([-1, 0, 1, -1], np.int32)
        ggm.moe_forward(self.handle, ref.x, ref.w[1:3], y, weight_order="NK", ids=IDS, expert_map=by_map)
        want = np.zeros((TOKENS, N))
        for e, t, _ in ROWS:
            if e in (1, 2):
                want[t] += ref.product(e, ref.x[t])
        expect("map", y, want)

    def test_no_tokens(self):
        y = np.zeros((0, N))
        ggm.moe_forward(self.handle, np.zeros((0, K)), small((EXPERTS, N, K), 1), y, weight_order="NK", ids=np.zeros((0, 2), np.int64))


class Backward(OnTheHost):
    def outputs(self, kind, shape_of_dx=(TOKENS, K), order="NK", fill=POISON):
        weight_shape = (EXPERTS, N, K) if order == "NK" else (EXPERTS, K, N)
        return dict(dx=encode(np.full(shape_of_dx, fill), kind), d_weight=encode(np.full(weight_shape, fill), kind),
                    d_routing_weights=np.full((TOKENS, TOP_K), POISON, np.float32), d_bias=encode(np.full((EXPERTS, N), fill), kind))

    def check(self, case, out, ref, kind, order="NK", grouped=False, plus=0):
        dx, dw, df, db = ref.backward(grouped)
        for name, want, of in (("dx", dx + plus, kind), ("d_weight", stored(dw, order) + plus, kind), ("d_routing_weights", df, "float32"),
                               ("d_bias", db + plus, kind)):
            if out.get(name) is not None:
                expect((case, name), out[name], want, of)

    def test_every_type_and_order(self):
        for kind in TYPES:
            for order in ("NK", "KN"):
                for add in (False, True):
                    ref = Reference(FACTORS, small((EXPERTS, N), 4))
                    out = self.outputs(kind, order=order, fill=1 if add else POISON)
                    ggm.moe_backward(
                        self.handle, encode(ref.dy, kind), weight_order=order, x=encode(ref.x, kind), weight=encode(stored(ref.w, order), kind),
                        ids=IDS, routing_weights=encode(FACTORS, kind), bias=encode(ref.bias, kind), add_to_dx=add, add_to_d_weight=add,
                        add_to_d_bias=add, dtype=dtype_of(kind), **out)
                    self.check((kind, order, add), out, ref, kind, order, plus=1 if add else 0)

    def test_one_gradient_at_a_time_without_what_it_does_not_need(self):
        ref = Reference(FACTORS)
        for kind in ("float32", "bfloat16"):
            x, w, dy = (encode(v, kind) for v in (ref.x, ref.w, ref.dy))
            for name, needs in (("dx", {"weight": w}), ("d_weight", {"x": x}), ("d_bias", {}), ("d_routing_weights", {"x": x, "weight": w})):
                out = {name: self.outputs(kind)[name]}
                ggm.moe_backward(self.handle, dy, weight_order="NK", routing=self.routing, routing_weights=encode(FACTORS, kind),
                                 dtype=dtype_of(kind), **needs, **out)
                self.check((kind, name), out, ref, kind)

    def test_float32_gradients_of_16_bit_tensors(self):
        ref = Reference(FACTORS)
        for kind in ("bfloat16", "float16"):
            out = self.outputs("float32")
            ggm.moe_backward(self.handle, encode(ref.dy, kind), weight_order="NK", x=encode(ref.x, kind), weight=encode(ref.w, kind), ids=IDS,
                             routing_weights=FACTORS.astype(np.float32), product_type="float32", dtype=dtype_of(kind), **out)
            self.check(kind, out, ref, "float32")

    def test_grouped_rows(self):
        rows, dy_rows = small((10, K), 5), small((10, N), 6)
        ref = Reference(FACTORS, x_of_row=lambda r, t: rows[r])
        out = self.outputs("float32", (10, K))
        common = dict(weight_order="NK", weight=ref.w.astype(np.float32), routing=self.routing, routing_weights=FACTORS.astype(np.float32))
        ggm.moe_backward(self.handle, ref.dy.astype(np.float32), x=rows.astype(np.float32), input_rows="grouped", **common, **out)
        self.check("grouped x", out, ref, "float32", grouped=True)
        ref = Reference(FACTORS, dy_of_row=lambda r, t: dy_rows[r])
        out = self.outputs("float32")
        ggm.moe_backward(self.handle, dy_rows.astype(np.float32), x=ref.x.astype(np.float32), output_rows="grouped", **common, **out)
        self.check("grouped dy", out, ref, "float32")


class Refusals(OnTheHost):
    def setUp(self):
        ref = Reference()
        self.given = dict(x=ref.x, weight=ref.w, y=np.full((TOKENS, N), POISON), weight_order="NK", ids=IDS)

    def test_the_forward_s_name_their_arguments(self):
        for case, kind, text, changes in (
            ("no order", TypeError, "weight_order", {"weight_order": ...}),
            ("order", ValueError, "weight_order = 'KM2'; known are", {"weight_order": "KM2"}),
            ("ids", ValueError, "exactly one of ids and routing must be given", {"ids": None}),
            ("both", ValueError, "exactly one of ids and routing must be given", {"routing": self.routing}),
            ("features", ValueError, "x tells in_features = 4, but weight tells 5", {"x": np.zeros((TOKENS, 4))}),
            ("tokens", ValueError, "x tells tokens = 4, but ids tells 5", {"x": np.zeros((4, K))}),
            ("slots", ValueError, "routing_weights tells top_k = 3, but ids tells 2", {"routing_weights": np.zeros((TOKENS, 3))}),
            ("experts", ValueError, "bias tells experts = 3, but weight tells 4", {"bias": np.zeros((3, N))}),
            ("the other order", ValueError, "x tells in_features = 5, but weight tells 3", {"weight_order": "KN"}),
            ("types", ggm.UnsupportedError, "weight_type", {"weight": np.zeros((EXPERTS, N, K), np.float32)}),
            ("rows", ValueError, "input_rows = 'sorted'; known are 'tokens', 'grouped'", {"input_rows": "sorted"}),
            ("combine", ggm.ArgumentError, "combine = 9", {"combine": 9}),
            ("no weight", TypeError, "weight is missing", {"weight": None}),
            ("no entries", ValueError, "expert_map has no entries; to the library 0", {"expert_map": np.zeros(0, np.int32)}),
            ("rows of none", ValueError, "y has no rows; 0 would mean all of",
             {"output_rows": "grouped", "y": np.zeros((0, N)), "max_rows": 0}),
            ("too many rows", ValueError, "y has 20 rows; more than", {"output_rows": "grouped", "y": np.zeros((20, N)), "max_rows": 20}),
            ("no rows of x", ValueError, "x has no rows; 0 would mean all of",
             {"input_rows": "grouped", "x": np.zeros((0, K)), "max_rows": 0, "ids": np.zeros((TOKENS, 2), np.int32)}),
            ("no y", TypeError, "y is missing", {"y": None}),
            ("product", ggm.Error, r"product_type = 3 \(float16\)", {"product_type": "float16"}),
            ("grouped y", ValueError, "y has 11 rows; more than", {"output_rows": "grouped", "y": np.zeros((11, N))}),
            ("max_rows", ValueError, "y tells max_rows = 4, but the argument max_rows tells 3",
             {"output_rows": "grouped", "y": np.zeros((4, N)), "max_rows": 3}),
            ("aliasing", ggm.ArgumentError, "GGM_STATUS_ALIASING", {"y": self.given["x"][:, :N]}),
            ("a stream", ggm.ArgumentError, "GGM_STATUS_INVALID_STREAM: stream", {"stream": 16}),
            ("num_tokens", TypeError, "num_tokens holds int64; it must hold int32", {"num_tokens": np.array([1])}),
            ("num_tokens", ValueError, r"num_tokens has the shape \(2,\); it must be \[1\]", {"num_tokens": np.zeros(2, np.int32)}),
        ):
            with self.subTest(case), self.assertRaisesRegex(kind, text):
                ggm.moe_forward(self.handle, **{name: v for name, v in {**self.given, **changes}.items() if v is not ...})
        expect("a refused call writes nothing", self.given["y"], np.full((TOKENS, N), POISON))

    def test_the_backward_s_name_their_arguments(self):
        ref = Reference()
        given = dict(dy=ref.dy, weight_order="NK", x=ref.x, weight=ref.w, ids=IDS, d_weight=np.full((EXPERTS, N, K), POISON))
        for case, kind, text, changes in (
            ("nothing wanted", ggm.ArgumentError, "gradients", {"d_weight": None}),
            ("x", ggm.ArgumentError, "x is NULL", {"x": None}),
            ("dy", TypeError, "dy is missing", {"dy": None}),
            ("dx alone", TypeError, "weight is missing; dx needs it", {"dx": np.zeros((TOKENS, K)), "d_weight": None, "weight": None}),
            ("d_routing_weights alone", TypeError, "weight is missing; d_routing_weights needs it",
             {"d_routing_weights": np.zeros((TOKENS, TOP_K), np.float32), "d_weight": None, "weight": None}),
            ("shape", ValueError, "d_weight tells out_features = 5, but weight tells 3", {"d_weight": np.zeros((EXPERTS, K, N))}),
            ("packed", ValueError, "d_routing_weights has the strides", {"d_routing_weights": np.zeros((TOKENS, 3), np.float32)[:, :2]}),
            ("type", TypeError, "d_routing_weights holds float64; it must hold float32", {"d_routing_weights": np.zeros((TOKENS, 2))}),
            ("dy", ValueError, "dy tells out_features = 2, but weight tells 3", {"dy": np.zeros((TOKENS, 2))}),
            ("all experts share an output", ValueError, "d_weight is written, but the array is read-only",
             {"d_weight": np.broadcast_to(np.zeros((N, K)), (EXPERTS, N, K))}),
            ("combine", ValueError, "combine = 'sum'; known are 'auto', 'ordered', 'two_step'", {"combine": "sum"}),
        ):
            with self.subTest(case), self.assertRaisesRegex(kind, text):
                ggm.moe_backward(self.handle, **{**given, **changes})
        expect("a refused call writes nothing", given["d_weight"], np.full((EXPERTS, N, K), POISON))

    def test_outputs_that_share_memory_are_refused(self):
        shared = np.lib.stride_tricks.as_strided(np.zeros((N, K)), (EXPERTS, N, K), (0, K * 8, 8))
        with self.assertRaisesRegex(ValueError, "d_weight has the stride 0 on axis 0"):
            ggm.moe_backward(self.handle, small((TOKENS, N), 1), weight_order="NK", x=small((TOKENS, K), 1), ids=IDS, d_weight=shared)

    def test_workspace_sizes(self):
        problem = ggm.MoeProblem(tokens=TOKENS, top_k=TOP_K, experts=EXPERTS, in_features=K, out_features=N, id_type="int64",
                                 x_type="bfloat16", weight_type="bfloat16", weight_order="KN", routing_weight_type="float32")
        small_one = ggm.moe_forward_workspace_size(self.handle, problem)
        problem.tokens = 500
        self.assertGreater(ggm.moe_forward_workspace_size(self.handle, problem), small_one)
        with self.assertRaisesRegex(ggm.ArgumentError, "gradients"):
            ggm.moe_backward_workspace_size(self.handle, problem)
        problem.gradients = ggm.Gradient.X | ggm.Gradient.WEIGHT
        size = ggm.moe_backward_workspace_size(self.handle, problem)
        out = {"dx": np.full((TOKENS, K), POISON), "d_weight": np.full((EXPERTS, N, K), POISON)}
        ref = Reference()
        ggm.moe_backward(self.handle, ref.dy, weight_order="NK", x=ref.x, weight=ref.w, ids=IDS, workspace=ggm.Workspace(max(size, 1 << 22)), **out)
        expect("a larger workspace", out["dx"], ref.backward()[0])


if __name__ == "__main__":
    unittest.main()
