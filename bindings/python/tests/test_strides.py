"""Arrays with gaps: each argument of each operation, one after another, as a slice of a larger array. Results are those of packed
arrays, which the other tests hold against loops, and nothing is written into the gaps."""
import unittest

import numpy as np
from support import POISON, new_routing, small

import ggm

TOKENS, TOP_K, EXPERTS, K, N = 5, 2, 3, 4, 6
IDS = np.array([[0, 2], [2, 2], [1, -1], [-1, -1], [1, 0]])
ROWS = 7  # slots with an expert


def apart(array, axis):
    """(larger array, slice of it that holds `array`), with gaps between the elements that axis 0 counts: behind each row of a
    matrix (axis 1), or behind each matrix of a group (axis 1 of three) or each row of one (axis 2)."""
    shape = list(array.shape)
    shape[axis] += 3
    larger = np.full(shape, POISON).astype(array.dtype)
    inside = [slice(None)] * array.ndim
    inside[axis] = slice(1, -2)
    larger[tuple(inside)] = array
    return larger, larger[tuple(inside)]


class Strides(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.handle = ggm.Handle("host", host_threads=2)
        cls.addClassCleanup(cls.handle.close)
        cls.routing = ggm.route(cls.handle, IDS, new_routing(TOKENS, TOP_K, EXPERTS))
        cls.weights = np.array([[1, 2], [2, 0.5], [1, 1], [1, 1], [0.5, 2]], np.float32)

    def sweep(self, operation, inputs, outputs, together=(), **options):
        """Runs operation(handle, **arrays, **options) packed, then with gaps in one argument (or in those of `together`)."""
        def run(changed):
            operation(self.handle, **{**inputs, **{name: array.copy() for name, array in outputs.items()}, **changed}, **options)

        packed = {name: array.copy() for name, array in outputs.items()}
        run(packed)
        for name, array in {**inputs, **outputs}.items():
            if (name in together and name != together[0]) or name == "d_routing_weights":  # that one must be packed
                continue
            for axis in range(1, getattr(array, "ndim", 0)):
                names = together if name in together else (name,)
                pairs = {n: apart({**inputs, **outputs}[n], axis) for n in names}
                copies = {n: array.copy() for n, array in outputs.items()}
                run({**copies, **{n: view for n, (_, view) in pairs.items()}})
                for n, want in packed.items():
                    with self.subTest(gaps=names, axis=axis, result=n):
                        np.testing.assert_array_equal(pairs[n][1] if n in pairs else copies[n], want)
                        if n in pairs:
                            np.testing.assert_array_equal(pairs[n][0], apart(want, axis)[0], "the gaps")

    def test_route(self):
        sizes = {"group_offsets": EXPERTS + 1, "row_assignment": TOKENS * TOP_K, "assignment_row": TOKENS * TOP_K}
        self.sweep(lambda handle, ids, **out: ggm.route(handle, ids, ggm.Routing(**out)), {"ids": IDS},
                   {name: np.full(size, -77, np.int32) for name, size in sizes.items()})

    def test_permutations(self):
        tokens, rows = small((TOKENS, K), 1).astype(np.float32), small((TOKENS * TOP_K, K), 2).astype(np.float32)
        self.sweep(ggm.permute, {"routing": self.routing, "input": tokens}, {"output": rows})
        self.sweep(ggm.unpermute, {"routing": self.routing, "input": rows, "routing_weights": self.weights}, {"output": tokens})
        self.sweep(ggm.unpermute_backward, {"routing": self.routing, "dy": tokens, "rows": rows, "routing_weights": self.weights},
                   {"d_rows": rows * 0, "d_routing_weights": self.weights * 0}, together=("rows", "d_rows"))

    def test_rows_and_their_gradient_have_one_leading_dimension(self):
        rows = np.zeros((TOKENS * TOP_K, K))
        with self.assertRaisesRegex(ValueError, "d_rows tells row_ld = 7, but rows tells 4"):
            ggm.unpermute_backward(self.handle, self.routing, np.zeros((TOKENS, K)), rows=rows, d_rows=apart(rows, 1)[1],
                                   d_routing_weights=np.zeros((TOKENS, TOP_K), np.float32))

    def test_grouped_gemm(self):
        sizes = np.array([3, 0, 4])
        b = small((EXPERTS, N, K), 3)
        c, d = small((ROWS, N), 4), np.full((ROWS, N), POISON)
        for order in ("NK", "KN"):
            stored = b if order == "NK" else np.swapaxes(b, 1, 2).copy()
            self.sweep(ggm.grouped_gemm, {"a": small((ROWS, K), 5), "b": stored, "c": c}, {"d": d}, b_order=order, group_sizes=sizes, beta=1)
            self.sweep(ggm.grouped_gemm, {"a": small((EXPERTS, 4, K), 6), "b": stored, "c": small((EXPERTS, 4, N), 7)},
                       {"d": np.full((EXPERTS, 4, N), POISON)}, layout="masked", b_order=order, group_sizes=sizes, beta=1)
        self.sweep(ggm.grouped_gemm, {"a": small((ROWS, K), 8), "b": small((ROWS, N), 9), "c": small((EXPERTS, K, N), 1)},
                   {"d": np.full((EXPERTS, K, N), POISON)}, layout="variable_k", group_sizes=sizes, beta=1)

    def test_one_c_for_all_groups(self):
        c, d = small((K, N), 1), np.full((EXPERTS, K, N), POISON)
        given = dict(layout="variable_k", group_sizes=np.array([3, 0, 4]), beta=1)
        a, b = small((ROWS, K), 8), small((ROWS, N), 9)
        ggm.grouped_gemm(self.handle, a, b, d, c=np.broadcast_to(c, d.shape), **given)
        want = np.full_like(d, POISON)
        ggm.grouped_gemm(self.handle, a, b, want, c=np.array([c] * EXPERTS), **given)
        np.testing.assert_array_equal(d, want)

    def layers(self):
        """Arguments of the layer with every pair of rows in and out, for both weight orders."""
        weight = small((EXPERTS, N, K), 2)
        for order in ("NK", "KN"):
            for rows_in in ("tokens", "grouped"):
                for rows_out in ("tokens", "grouped"):
                    lengths = [TOKENS * TOP_K if rows == "grouped" else TOKENS for rows in (rows_in, rows_out)]
                    inputs = {"x": small((lengths[0], K), 1), "weight": weight if order == "NK" else np.swapaxes(weight, 1, 2).copy(), "ids": IDS,
                              "routing_weights": self.weights.astype(np.float64), "bias": small((EXPERTS, N), 3)}
                    yield inputs, lengths, {"weight_order": order, "input_rows": rows_in, "output_rows": rows_out}

    def test_moe_forward(self):
        for inputs, lengths, options in self.layers():
            self.sweep(ggm.moe_forward, inputs, {"y": np.full((lengths[1], N), POISON)}, **options)

    def test_moe_backward(self):
        for inputs, lengths, options in self.layers():
            outputs = {"dx": np.full((lengths[0], K), POISON), "d_weight": np.full_like(inputs["weight"], POISON),
                       "d_bias": np.full((EXPERTS, N), POISON), "d_routing_weights": np.zeros((TOKENS, TOP_K), np.float32)}
            self.sweep(ggm.moe_backward, {**inputs, "dy": small((lengths[1], N), 4)}, outputs, **options)


if __name__ == "__main__":
    unittest.main()
