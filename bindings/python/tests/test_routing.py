"""route, permute, unpermute and unpermute_backward on the host backend, exact, against plain loops."""
import array
import unittest

import numpy as np
from support import POISON, TYPES, decode, dtype_of, encode, expect, new_routing, poisoned, small, sorted_rows

import ggm

IDS = [[0, 2, -1], [2, 2, 1], [3, 0, 3], [-1, -1, -1], [1, 3, 0]]  # 5 tokens, 3 slots, 4 experts
TOKENS, TOP_K, EXPERTS, FEATURES = 5, 3, 4, 5


def check_routing(case, routing, ids, experts, max_rows, first_expert=0):
    rows = sorted_rows(ids, experts, first_expert)[:max_rows]
    assignments = [t * len(ids[0]) + j for _, t, j in rows]
    expect(case, routing.group_offsets, [sum(e < expert for e, _, _ in rows) for expert in range(experts + 1)])
    expect(case, routing.row_assignment, assignments + [-1] * (max_rows - len(rows)))
    place = {a: r for r, a in enumerate(assignments)}
    expect(case, np.ravel(routing.assignment_row), [place.get(a, -1) for a in range(len(ids) * len(ids[0]))])


class OnTheHost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.handle = ggm.Handle("host", host_threads=2)
        cls.addClassCleanup(cls.handle.close)


class Route(OnTheHost):
    def test_ids_of_both_types_and_routing_of_both_shapes(self):
        for kind in (np.int32, np.int64):
            for flat in (False, True):
                routing = new_routing(TOKENS, TOP_K, EXPERTS, flat=flat)
                self.assertIs(ggm.route(self.handle, np.array(IDS, kind), routing), routing)
                check_routing((kind, flat), routing, IDS, EXPERTS, TOKENS * TOP_K)

    def test_ids_that_are_a_slice_of_columns(self):
        wide = np.full((TOKENS, 7), 99, np.int64)
        wide[:, 2:5] = IDS
        check_routing("slice", ggm.route(self.handle, wide[:, 2:5], new_routing(TOKENS, TOP_K, EXPERTS)), IDS, EXPERTS, 15)

    def test_max_rows_is_the_length_of_row_assignment_and_faults_are_counted(self):
        for faults in (np.zeros(8, np.uint32), np.zeros(8, np.int32)):
            bad = np.array(IDS, np.int32)
            bad[0, 2] = 9
            routing = ggm.route(self.handle, bad, new_routing(TOKENS, TOP_K, EXPERTS, max_rows=6), faults=faults)
            check_routing("bounded", routing, IDS, EXPERTS, 6)
            self.assertEqual((faults[ggm.Fault.BAD_ID], faults[ggm.Fault.ROWS_DROPPED]), (1, 11 - 6))

    def test_local_experts_by_range_and_by_map(self):
        routing = ggm.route(self.handle, np.array(IDS, np.int32), new_routing(TOKENS, TOP_K, 2), experts_total=4, first_expert=1)
        check_routing("range", routing, IDS, 2, 15, first_expert=1)
        by_map = np.array([1, -1, 0, -1], np.int32)
        mapped = [[by_map[e] if e >= 0 else -1 for e in slots] for slots in IDS]
        check_routing("map", ggm.route(self.handle, np.array(IDS, np.int32), new_routing(TOKENS, TOP_K, 2), expert_map=by_map), mapped, 2, 15)
        with self.assertRaisesRegex(ValueError, "expert_map tells experts_total = 4, but the argument experts_total tells 5"):
            ggm.route(self.handle, np.array(IDS, np.int32), new_routing(TOKENS, TOP_K, 2), expert_map=by_map, experts_total=5)

    def test_num_tokens(self):
        for num_tokens in (np.array([2], np.int32), np.array(2, np.int32)):
            routing = ggm.route(self.handle, np.array(IDS, np.int32), new_routing(TOKENS, TOP_K, EXPERTS), num_tokens=num_tokens)
            check_routing("2 tokens", routing, IDS[:2] + [[-1] * 3] * 3, EXPERTS, 15)

    def test_no_tokens(self):
        routing = ggm.route(self.handle, np.zeros((0, 3), np.int32), new_routing(0, 3, 2))
        self.assertEqual(routing.group_offsets.tolist(), [0, 0, 0])

    def test_buffers_without_numpy(self):
        ids = memoryview(array.array("i", sum(IDS, []))).cast("B").cast("i", shape=[TOKENS, TOP_K])
        routing = ggm.Routing(*(array.array("i", [-77] * n) for n in (EXPERTS + 1, 15, 15)))
        ggm.route(self.handle, ids, routing, sm_limit=1)
        check_routing("buffers", routing, IDS, EXPERTS, 15)

    def test_refusals(self):
        ids = np.array(IDS, np.int32)
        good = new_routing(TOKENS, TOP_K, EXPERTS)
        frozen = np.zeros(15, np.int32)
        frozen.flags.writeable = False
        for case, kind, text, routing in (
            ("float ids", TypeError, "ids holds float64; it must hold int32 or int64", None),
            ("offsets", TypeError, "group_offsets holds int64; it must hold int32", good._replace(group_offsets=np.zeros(5, np.int64))),
            ("shape", ValueError, "assignment_row tells top_k = 4, but ids tells 3", good._replace(assignment_row=np.zeros((5, 4), np.int32))),
            ("flat", ValueError, r"assignment_row has 14 elements; it must have tokens\*top_k = 5\*3",
             good._replace(assignment_row=np.zeros(14, np.int32))),
            ("long", ValueError, "row_assignment has 16 rows", good._replace(row_assignment=np.zeros(16, np.int32))),
            ("none", ValueError, "row_assignment has no rows", good._replace(row_assignment=np.zeros(0, np.int32))),
            ("two axes", ValueError, r"row_assignment has the shape \(5, 3\); it must be \[max_rows\]",
             good._replace(row_assignment=np.zeros((5, 3), np.int32))),
            ("gaps", ValueError, r"row_assignment has the strides \(2,\)", good._replace(row_assignment=np.zeros(30, np.int32)[::2])),
            ("frozen", ValueError, "row_assignment is written, but the array is read-only", good._replace(row_assignment=frozen)),
            ("aliasing", ggm.ArgumentError, "GGM_STATUS_ALIASING", good._replace(row_assignment=good.assignment_row.reshape(-1))),
        ):
            with self.subTest(case), self.assertRaisesRegex(kind, text):
                ggm.route(self.handle, ids.astype(float) if routing is None else ids, routing or good)
        with self.assertRaisesRegex(ggm.ArgumentError, "first_expert = -1"):
            ggm.route(self.handle, ids, good, first_expert=-1)
        with self.assertRaisesRegex(ValueError, r"faults has the shape \(7,\); it must be \[8\]"):
            ggm.route(self.handle, ids, good, faults=np.zeros(7, np.uint32))
        self.assertEqual(set(np.concatenate([np.ravel(a) for a in good])), {-77}, "a refused call writes nothing")


class Permutations(OnTheHost):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.routing = ggm.route(cls.handle, np.array(IDS, np.int32), new_routing(TOKENS, TOP_K, EXPERTS))
        cls.rows = [(t, j) for _, t, j in sorted_rows(IDS, EXPERTS)]
        cls.factors = np.array([[1, 2, 1], [2, 1, 0.5], [1, 1, 2], [1, 1, 1], [0.5, 1, 2]])

    def test_permute_in_every_type(self):
        values = small((TOKENS, FEATURES), 1)
        for kind in TYPES:
            for row_kind in {kind, "float32"} if kind != "float64" else {kind}:
                out = poisoned((15, FEATURES), row_kind)
                self.assertIs(ggm.permute(self.handle, self.routing, encode(values, kind), out, dtype="bfloat16"), out)
                want = np.zeros((15, FEATURES))
                for r, (t, _) in enumerate(self.rows):
                    want[r] = values[t]
                expect((kind, row_kind), out, want, row_kind)

    def test_permute_keeps_unused_rows_and_works_on_slices(self):
        wide = np.full((15, FEATURES + 3), POISON, np.float32)
        x = np.full((TOKENS, FEATURES + 2), POISON, np.float32)
        x[:, 1:-1] = small((TOKENS, FEATURES), 1)
        ggm.permute(self.handle, self.routing, x[:, 1:-1], wide[:, 2:-1], keep_unused_rows=True)
        want = np.full((15, FEATURES + 3), POISON)
        for r, (t, _) in enumerate(self.rows):
            want[r, 2:-1] = x[t, 1:-1]
        expect("slices", wide, want)

    def test_unpermute_in_every_type(self):
        values = small((15, FEATURES), 2)
        for kind in TYPES:
            for weights in (None, self.factors):
                for add in (False, True):
                    out = encode(np.ones((TOKENS, FEATURES)), kind)
                    given = None if weights is None else encode(weights, kind)
                    self.assertIs(ggm.unpermute(self.handle, self.routing, encode(values, kind), out, routing_weights=given, add_to_y=add,
                                                dtype=dtype_of(kind)), out)
                    want = np.full((TOKENS, FEATURES), 1.0 if add else 0.0)
                    for r, (t, j) in enumerate(self.rows):
                        want[t] += values[r] * (1 if weights is None else weights[t, j])
                    expect((kind, weights is None, add), out, want, kind)

    def test_unpermute_with_num_tokens_keeps_the_rest(self):
        values, out = small((15, FEATURES), 2).astype(np.float32), np.full((TOKENS, FEATURES), POISON, np.float32)
        ggm.unpermute(self.handle, self.routing, values, out, num_tokens=np.array([2], np.int32), keep_unused_rows=True)
        want = np.full((TOKENS, FEATURES), POISON)
        want[:2] = 0
        for r, (t, _) in enumerate(self.rows):
            if t < 2:
                want[t] += values[r]
        expect("2 tokens", out, want)

    def test_unpermute_backward_in_every_type(self):
        dy, rows = small((TOKENS, FEATURES), 3), small((15, FEATURES), 4)
        want_rows, want_weights = np.zeros((15, FEATURES)), np.zeros((TOKENS, TOP_K))
        for r, (t, j) in enumerate(self.rows):
            want_rows[r] = self.factors[t, j] * dy[t]
            want_weights[t, j] = sum(dy[t][i] * rows[r][i] for i in range(FEATURES))
        for kind in TYPES:
            for both in ((True, True), (True, False), (False, True)):
                d_rows = poisoned((15, FEATURES), kind) if both[0] else None
                d_weights = np.full((TOKENS, TOP_K), POISON, np.float32) if both[1] else None
                ggm.unpermute_backward(self.handle, self.routing, encode(dy, kind), rows=encode(rows, kind) if both[1] else None,
                                       routing_weights=encode(self.factors, kind), d_rows=d_rows, d_routing_weights=d_weights,
                                       dtype=dtype_of(kind))
                if both[0]:
                    expect((kind, both), d_rows, want_rows, kind)
                if both[1]:
                    expect((kind, both), d_weights, want_weights)

    def test_flat_routing_gets_top_k_from_the_tokens(self):
        flat = self.routing._replace(assignment_row=self.routing.assignment_row.reshape(-1))
        values, out = small((TOKENS, FEATURES), 1).astype(np.float32), np.zeros((15, FEATURES), np.float32)
        ggm.permute(self.handle, flat, values, out)
        expect("flat", out[:11], [values[t] for t, _ in self.rows])
        with self.assertRaisesRegex(ValueError, r"assignment_row has 15 elements; it must have tokens\*top_k = 5\*2"):
            ggm.permute(self.handle, flat, values, out, top_k=2)

    def test_bad_routing_is_counted(self):
        broken = self.routing._replace(row_assignment=self.routing.row_assignment.copy())
        broken.row_assignment[0] = 99
        faults = np.zeros(8, np.uint32)
        ggm.permute(self.handle, broken, np.zeros((TOKENS, 2), np.float32), np.zeros((15, 2), np.float32), faults=faults)
        self.assertEqual(faults[ggm.Fault.BAD_ROUTING], 1)

    def test_refusals(self):
        x, rows = np.zeros((TOKENS, FEATURES), np.float32), np.zeros((15, FEATURES), np.float32)
        with self.assertRaisesRegex(TypeError, "input holds int32; it must hold float32"):
            ggm.permute(self.handle, self.routing, x.astype(np.int32), rows)
        with self.assertRaisesRegex(TypeError, "input holds uint16; if those are the bits of bfloat16 say dtype='bfloat16'"):
            ggm.permute(self.handle, self.routing, x.astype(np.uint16), rows)
        with self.assertRaisesRegex(ValueError, "expert_map has no entries"):
            ggm.route(self.handle, np.zeros((TOKENS, TOP_K), np.int32), self.routing, expert_map=np.zeros(0, np.int32))
        with self.assertRaisesRegex(TypeError, "group_offsets is missing"):
            ggm.permute(self.handle, None, x, rows)
        with self.assertRaisesRegex(TypeError, "assignment_row is missing"):
            ggm.permute(self.handle, self.routing._replace(assignment_row=None), x, rows)
        with self.assertRaisesRegex(TypeError, "output is missing"):
            ggm.unpermute(self.handle, self.routing, rows, None)
        with self.assertRaisesRegex(ValueError, r"group_offsets has the shape \(0,\); it must be \[experts\+1\]"):
            ggm.permute(self.handle, self.routing._replace(group_offsets=np.zeros(0, np.int32)), x, rows)
        with self.assertRaisesRegex(ValueError, "dtype = 'float32'"):
            ggm.permute(self.handle, self.routing, x, rows, dtype="float32")
        with self.assertRaisesRegex(ValueError, "output tells features = 6, but input tells 5"):
            ggm.permute(self.handle, self.routing, x, np.zeros((15, 6), np.float32))
        with self.assertRaisesRegex(ValueError, "row_assignment tells max_rows = 15, but output tells 14"):
            ggm.permute(self.handle, self.routing, x, rows[:14])
        with self.assertRaisesRegex(ValueError, "the elements of a row must follow each other"):
            ggm.permute(self.handle, self.routing, np.zeros((FEATURES, TOKENS), np.float32).T, rows)
        with self.assertRaisesRegex(ValueError, r"input has the stride 0 on axis 0"):
            ggm.permute(self.handle, self.routing, np.broadcast_to(x[0], x.shape), rows)
        with self.assertRaisesRegex(ValueError, r"input has the stride -5 on axis 0"):
            ggm.permute(self.handle, self.routing, x[::-1], rows)
        with self.assertRaisesRegex(ggm.ArgumentError, "GGM_STATUS_ALIASING"):
            ggm.permute(self.handle, self.routing, rows[:TOKENS], rows)
        with self.assertRaisesRegex(TypeError, "d_rows holds float64; it must hold float32, as rows does"):
            ggm.unpermute_backward(self.handle, self.routing, x, rows=rows, d_rows=rows.astype(float),
                                   d_routing_weights=np.zeros((TOKENS, TOP_K), np.float32))
        with self.assertRaises(ggm.ArgumentError) as caught:
            ggm.unpermute_backward(self.handle, self.routing, x)
        self.assertEqual(caught.exception.status, ggm.Status.NULL_POINTER)
        with self.assertRaisesRegex(ValueError, "d_routing_weights has the strides"):
            ggm.unpermute_backward(self.handle, self.routing, x, rows=rows, d_routing_weights=np.zeros((TOKENS, 4), np.float32)[:, :3])
        self.assertFalse(decode(rows, "float32").any(), "a refused call writes nothing")

    def test_workspace_sizes(self):
        problem = ggm.PermuteProblem(tokens=TOKENS, top_k=TOP_K, experts=EXPERTS, features=FEATURES, token_type="bfloat16")
        for query in (ggm.permute_workspace_size, ggm.unpermute_workspace_size, ggm.unpermute_backward_workspace_size):
            self.assertGreaterEqual(query(self.handle, problem), 0)
            with self.assertRaisesRegex(TypeError, "problem is a RouteProblem; a PermuteProblem is needed"):
                query(self.handle, ggm.RouteProblem())
            with self.assertRaisesRegex(ggm.ArgumentError, "top_k = 0"):
                query(self.handle, ggm.PermuteProblem(experts=1, token_type=ggm.Type.FLOAT32))
        with self.assertRaisesRegex(ValueError, "token_type = 'float8'; known are 'default', 'float32'"):
            ggm.PermuteProblem(token_type="float8")


if __name__ == "__main__":
    unittest.main()
