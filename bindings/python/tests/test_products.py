"""grouped_gemm and grouped_gemm_array on the host backend, exact, against plain loops."""
import unittest

import numpy as np
from support import POISON, TYPES, dtype_of, encode, expect, poisoned, small

import ggm

GROUPS, ROWS, N, K = 3, 8, 4, 5
SIZES = [3, 0, 4]  # the last row is of no group


def stored(b, order):
    """[groups, n, k] as it is stored in this order."""
    return b if order == "NK" else np.ascontiguousarray(np.swapaxes(b, 1, 2))


def product(x, w):
    """x [rows, k] times w [n, k], by hand."""
    return np.array([[sum(a * b for a, b in zip(row, column)) for column in w] for row in x]).reshape(len(x), len(w))


class OnTheHost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.handle = ggm.Handle("host", host_threads=2)
        cls.addClassCleanup(cls.handle.close)
        cls.a, cls.b = small((ROWS, K), 1), small((GROUPS, N, K), 2)


class Contiguous(OnTheHost):
    def want(self, group_of_row):
        return np.array([product(self.a[r:r + 1], self.b[g])[0] if g >= 0 else [0] * N for r, g in enumerate(group_of_row)])

    def test_every_type_and_order(self):
        for kind in TYPES:
            for order in ("NK", "KN", ggm.Order.KN):
                for out in {kind, "float32"} if kind != "float64" else {kind}:
                    d = poisoned((ROWS, N), out)
                    b = encode(stored(self.b, getattr(order, "name", order)), kind)
                    self.assertIs(ggm.grouped_gemm(self.handle, encode(self.a, kind), b, d, b_order=order,
                                                   group_sizes=np.array(SIZES, np.int32), dtype=dtype_of(kind)), d)
                    expect((kind, order, out), d, self.want([0, 0, 0, 2, 2, 2, 2, -1]), out)

    def test_every_form_of_groups(self):
        by_rows = [0, 0, 0, 2, 2, 2, 2, -1]
        for kind in (np.int32, np.int64):
            for form, of_row in (
                ({"group_sizes": SIZES}, by_rows),
                ({"group_offsets": [0, 3, 3, 7]}, by_rows),
                ({"group_ends": [3, 3, 7]}, by_rows),
                ({"group_starts": [5, 0, 1], "group_sizes": [3, 1, 2]}, [1, 2, 2, -1, -1, 0, 0, 0]),
                ({"row_group": [2, 0, -1, 1, 1, 0, 2, 2]}, [2, 0, -1, 1, 1, 0, 2, 2]),
            ):
                d = np.full((ROWS, N), POISON)
                ggm.grouped_gemm(self.handle, self.a, self.b, d, b_order="NK", **{name: np.array(v, kind) for name, v in form.items()})
                expect((kind, form), d, self.want(of_row))

    def test_slices_shared_weights_alpha_beta_and_rows_that_stay(self):
        sizes = np.array(SIZES, np.int32)
        wide = np.full((ROWS, K + 3), POISON)
        wide[:, 2:-1] = self.a
        d = np.full((ROWS, N + 2), POISON)
        ggm.grouped_gemm(self.handle, wide[:, 2:-1], np.broadcast_to(self.b[1], self.b.shape), d[:, :N], b_order="NK", group_sizes=sizes,
                         alpha=2, keep_unused_rows=True)
        want = np.full((ROWS, N + 2), POISON)
        want[:7, :N] = 2 * product(self.a[:7], self.b[1])
        expect("shared weights", d, want)
        c = small((ROWS, N), 3)
        for given in ("other", "same"):
            d = c.copy() if given == "same" else np.full((ROWS, N), POISON)
            ggm.grouped_gemm(self.handle, self.a, self.b, d, b_order="NK", group_sizes=sizes, c=d if given == "same" else c, beta=-3.0)
            want = self.want([0, 0, 0, 2, 2, 2, 2, -1]) - 3 * c
            expect(given, d[:7], want[:7])
            expect("the row of no group stays", d[7], c[7] if given == "same" else [POISON] * N)

    def test_faults(self):
        faults, d = np.zeros(8, np.uint32), np.full((ROWS, N), POISON)
        ggm.grouped_gemm(self.handle, self.a, self.b, d, b_order="NK", group_sizes=np.array([3, -5, 400]), faults=faults)
        self.assertEqual(faults[ggm.Fault.SIZE_CLAMPED], 2)
        expect("clamped", d, self.want([0, 0, 0, 2, 2, 2, 2, 2]))


class OtherLayouts(OnTheHost):
    def test_masked(self):
        a, sizes = small((GROUPS, 4, K), 4), [2, 0, 4]
        for kind in TYPES:
            for order in ("NK", "KN"):
                d = poisoned((GROUPS, 4, N), kind)
                ggm.grouped_gemm(self.handle, encode(a, kind), encode(stored(self.b, order), kind), d, layout="masked", b_order=order,
                                 group_sizes=np.array(sizes, np.int64), dtype=dtype_of(kind))
                want = np.zeros((GROUPS, 4, N))
                for e in range(GROUPS):
                    want[e, :sizes[e]] = product(a[e, :sizes[e]], self.b[e])
                expect((kind, order), d, want, kind)

    def test_masked_with_one_input_for_all_groups_and_outputs_apart(self):
        a, d = small((4, K), 4), np.full((GROUPS, 6, N + 1), POISON)
        ggm.grouped_gemm(self.handle, np.broadcast_to(a, (GROUPS, 4, K)), self.b, d[:, 1:5, :N], layout="masked", b_order="NK",
                         group_sizes=np.array([4, 1, 2]), keep_unused_rows=True)
        want = np.full((GROUPS, 6, N + 1), POISON)
        for e, size in enumerate([4, 1, 2]):
            want[e, 1:1 + size, :N] = product(a[:size], self.b[e])
        expect("apart", d, want)

    def test_variable_k(self):
        a, b = small((ROWS, 3), 5), small((ROWS, N), 6)
        for kind in TYPES:
            for accumulate in (False, True):
                d = encode(np.ones((GROUPS, 3, N)), kind)
                ggm.grouped_gemm(self.handle, encode(a, kind), encode(b, kind), d, layout=ggm.Layout.VARIABLE_K, group_sizes=np.array(SIZES),
                                 dtype=dtype_of(kind), **({"c": d, "beta": 1} if accumulate else {}))
                want = np.full((GROUPS, 3, N), 1.0 if accumulate else 0.0)
                for e, rows in enumerate((range(0, 3), range(0), range(3, 7))):
                    for r in rows:
                        for i in range(3):
                            want[e, i] += a[r, i] * b[r]
                expect((kind, accumulate), d, want, kind)


class Refusals(OnTheHost):
    def call(self, **changes):
        given = dict(a=self.a, b=self.b, d=self.d, b_order="NK", group_sizes=np.array(SIZES))
        given.update(changes)
        ggm.grouped_gemm(self.handle, **given)

    def test_each_names_its_argument(self):
        self.d = np.full((ROWS, N), POISON)
        for case, kind, text, changes in (
            ("a", TypeError, "a is missing", {"a": None}),
            ("d", TypeError, "d is missing", {"d": None}),
            ("b_order", ValueError, "b_order is missing; it must be 'NK'", {"b_order": None}),
            ("b_order", ValueError, "b_order = 'NN'; known are", {"b_order": "NN"}),
            ("b_order", ValueError, "b_order = 7; it must be 'NK'", {"b_order": 7}),
            ("layout", ValueError, "layout = 'flat'; known are 'contiguous', 'masked', 'variable_k'", {"layout": "flat"}),
            ("no groups", ValueError, "groups are given by nothing", {"group_sizes": None}),
            ("two forms", ValueError, "groups are given by group_sizes, row_group", {"row_group": np.zeros(ROWS, np.int32)}),
            ("groups", ValueError, "group_offsets tells groups = 2, but b tells 3", {"group_sizes": None, "group_offsets": np.zeros(3, np.int32)}),
            ("inner", ValueError, "a tells k = 4, but b tells 5", {"a": self.a[:, :4]}),
            ("axes", ValueError, r"b has the shape \(4, 5\); it must be \[groups, n, k\]", {"b": self.b[0]}),
            ("rows", ValueError, "d tells m = 7, but a tells 8", {"d": self.d[:7]}),
            ("d", ValueError, "d is written, but the array is read-only", {"d": np.broadcast_to(0.0, (ROWS, N))}),
            ("types", ggm.UnsupportedError, "b_type", {"b": self.b.astype(np.float32)}),
            ("index types", TypeError, "group_sizes and group_starts hold int32 and int64",
             {"group_starts": np.zeros(GROUPS, np.int32), "group_sizes": np.zeros(GROUPS, np.int64)}),
            ("c", ValueError, "c tells n = 3, but b tells 4", {"c": np.zeros((ROWS, 3)), "beta": 1}),
            ("beta without c", ggm.ArgumentError, "c_type", {"beta": 1}),
            ("compute", ggm.UnsupportedError, "compute_type", {"compute_type": "tf32"}),
            ("sm_limit", ggm.ArgumentError, "sm_limit = -1", {"sm_limit": -1}),
            ("order of variable K", ValueError, "b_order = 'NK'; with variable_k", {"layout": "variable_k"}),
            ("a list", TypeError, "a is a list, which is no array", {"a": self.a.tolist()}),
        ):
            with self.subTest(case), self.assertRaisesRegex(kind, text):
                self.call(**changes)
        expect("a refused call writes nothing", self.d, np.full((ROWS, N), POISON))
        self.call()
        self.assertFalse((self.d == POISON).any())


class PointerArrays(OnTheHost):
    shapes = [(2, 3, 4), (0, 3, 4), (1, 2, 0), (3, 1, 2)]  # M, N, K of each group

    def run_groups(self, kind, a_order, b_order, **options):
        a = [small((m, k), 1 + i) for i, (m, _, k) in enumerate(self.shapes)]
        b = [small((n, k), 9 + i) for i, (_, n, k) in enumerate(self.shapes)]
        stored_a = [encode(x if a_order == "MK" else x.T.copy(), kind) for x in a]
        stored_b = [encode(x if b_order == "NK" else x.T.copy(), kind) for x in b]
        d = [encode(np.ones((m, n)), kind) for m, n, _ in self.shapes]
        index = np.int64 if options.pop("long", False) else np.int32
        sizes = {name: np.array(values, index) for name, values in zip("mnk", zip(*self.shapes))}
        if options.get("beta"):
            options.update(c=np.array(ggm.addresses(d), np.uint64), c_type=kind)
        pointers = np.array(ggm.addresses(d), np.int64)
        result = ggm.grouped_gemm_array(self.handle, np.array(ggm.addresses(stored_a), np.uint64), np.array(ggm.addresses(stored_b), np.uint64),
                                        pointers, max_m=3, max_n=3, max_k=4, a_type=kind, a_order=a_order, b_order=b_order, **sizes, **options)
        self.assertIs(result, pointers)
        for i in range(len(self.shapes)):
            want = options.get("alpha", 1) * product(a[i], b[i]) + options.get("beta", 0)
            expect((kind, a_order, b_order, options, i), d[i], want, kind)

    def test_every_type_and_order(self):
        for kind in TYPES:
            for a_order in ("MK", "KM"):
                for b_order in ("NK", "KN"):
                    self.run_groups(kind, a_order, b_order)
        self.run_groups("float32", "MK", "NK", alpha=2.0, beta=-3.0, long=True)

    def test_bounds_as_sizes_leading_dimensions_and_another_output_type(self):
        a, b = small((2, 3, 6), 1).astype(np.float16), small((2, 2, 4), 2).astype(np.float16)
        d = np.full((2, 3, 5), POISON, np.float32)
        ggm.grouped_gemm_array(self.handle, *(np.array(ggm.addresses(x), np.uint64) for x in (a, b, d)), max_m=3, max_n=2, max_k=4,
                               a_type="float16", d_type=ggm.Type.FLOAT32, b_order="NK", lda=np.array([6, 6], np.int32),
                               ldb=np.array([4, 4], np.int32), ldd=np.array([5, 5], np.int32), min_alignment=2, workspace=ggm.Workspace)
        want = np.full((2, 3, 5), POISON)
        for i in range(2):
            want[i, :, :2] = product(a[i, :, :4].astype(float), b[i].astype(float))
        expect("leading dimensions", d, want)

    def test_misaligned_groups_are_skipped_and_counted(self):
        memory, faults = np.full(40, POISON, np.float32), np.zeros(8, np.uint32)
        start = (-memory.ctypes.data // 4) % 16 + 1  # four bytes behind a multiple of 64
        d = memory[start:start + 4]
        x = np.ones(4, np.float32)
        ggm.grouped_gemm_array(self.handle, *(np.array(ggm.addresses([y]), np.uint64) for y in (x, x, d)), max_m=2, max_n=2, max_k=2,
                               a_type="float32", b_order="NK", min_alignment=64, faults=faults)
        self.assertEqual(faults[ggm.Fault.MISALIGNED_GROUP], 1)
        expect("skipped", memory, np.full(40, POISON))

    def test_refusals(self):
        three = np.zeros(3, np.uint64)
        base = dict(a=three, b=three, d=three, max_m=0, max_n=1, max_k=1, a_type="float32", b_order="NK")
        for case, kind, text, changes in (
            ("pointers", TypeError, "a holds float64; it must hold uint64 or int64", {"a": np.zeros(3)}),
            ("groups", ValueError, "b tells groups = 2, but a tells 3", {"b": three[:2]}),
            ("sizes", TypeError, "sizes hold int32 and int64", {"m": np.zeros(3, np.int32), "k": np.zeros(3, np.int64)}),
            ("type", ValueError, "a_type = 'half'; known are", {"a_type": "half"}),
            ("bound", ggm.ArgumentError, "max_m = -1", {"max_m": -1}),
            ("c without type", ggm.ArgumentError, "c_type", {"c": three}),
            ("order", ValueError, "b_order = 'up'", {"b_order": "up"}),
        ):
            with self.subTest(case), self.assertRaisesRegex(kind, text):
                ggm.grouped_gemm_array(self.handle, **{**base, **changes})
        ggm.grouped_gemm_array(self.handle, **base)  # no rows: nothing is looked at

    def test_workspace_sizes(self):
        problem = ggm.GroupedGemmArrayProblem(groups=3, max_m=2, max_n=2, max_k=2, a_type="bfloat16", b_type="bfloat16", a_order="KM", b_order="KN")
        self.assertGreaterEqual(ggm.grouped_gemm_array_workspace_size(self.handle, problem), 0)
        problem = ggm.GroupedGemmProblem(groups=3, m=8, n=4, k=5, a_type="float32", b_type="float32", b_order="NK", group_form="ends")
        self.assertGreaterEqual(ggm.grouped_gemm_workspace_size(self.handle, problem), 0)
        problem.groups = -1
        with self.assertRaisesRegex(ggm.ArgumentError, "groups = -1"):
            ggm.grouped_gemm_workspace_size(self.handle, problem)


if __name__ == "__main__":
    unittest.main()
