"""ggm.torch against plain loops on small integers, gradcheck in float64, opcheck, torch.compile's tracing; on cuda too where
torch has it. Skipped where torch is not installed."""
import importlib.util
import types
import unittest
import unittest.mock

from support import small

FOUND = importlib.util.find_spec("torch") is not None
if FOUND:
    import torch
    from torch import library as operators

    import ggm.torch

T, K, N, E = 5, 4, 3, 3
IDS = [[0, 2], [2, 2], [1, -1], [-1, -1], [2, 0]]
SIZES = [2, 0, 3]


@unittest.skipUnless(FOUND, "torch is not installed")
class Torch(unittest.TestCase):
    device = "cpu"

    def numbers(self, dtype, *shape, seed=1, grad=True):
        return torch.tensor(small(shape, seed), dtype=dtype, device=self.device, requires_grad=grad)

    def layer(self, dtype):
        ids = torch.tensor(IDS, device=self.device)
        return self.numbers(dtype, T, K), self.numbers(dtype, E, N, K, seed=2), ids, self.numbers(dtype, T, 2, seed=4)

    def product(self, dtype):
        return self.numbers(dtype, T + 1, K), self.numbers(dtype, E, N, K, seed=2), torch.tensor(SIZES, device=self.device)

    def same(self, got, want):
        self.assertTrue(torch.equal(got.double().cpu(), torch.tensor(want, dtype=torch.float64).reshape(got.shape)), (got, want))

    def test_moe_is_exact(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
            x, W, ids, w = self.layer(dtype)
            y = ggm.torch.moe(x, W, ids, w)
            self.assertEqual(y.dtype, torch.float64 if dtype == torch.float64 else torch.float32)
            dy = small((T, N), 3)
            y.backward(torch.tensor(dy, dtype=y.dtype, device=self.device))
            X, M, V = (t.detach().double().cpu().numpy() for t in (x, W, w))
            want, dx, dW, dw = X[:, :N] * 0, X * 0, M * 0, V * 0
            for t in range(T):
                for j, e in enumerate(IDS[t]):
                    for n in range(N if e >= 0 else 0):
                        for k in range(K):
                            want[t, n] += V[t, j] * X[t, k] * M[e, n, k]
                            dx[t, k] += V[t, j] * dy[t, n] * M[e, n, k]
                            dW[e, n, k] += V[t, j] * dy[t, n] * X[t, k]
                            dw[t, j] += dy[t, n] * X[t, k] * M[e, n, k]
            for got, wanted in ((y, want), (x.grad, dx), (W.grad, dW), (w.grad, dw)):
                self.same(got.detach(), wanted)

    def test_grouped_gemm_is_exact(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.float64):
            a, W, sizes = self.product(dtype)
            d = ggm.torch.grouped_gemm(a, W, sizes)
            dd = small((T + 1, N), 3)
            d.backward(torch.tensor(dd, dtype=d.dtype, device=self.device))
            A, M = (t.detach().double().cpu().numpy() for t in (a, W))
            want, da, dW = A[:, :N] * 0, A * 0, M * 0
            for row, e in enumerate([0, 0, 2, 2, 2]):
                for n in range(N):
                    for k in range(K):
                        want[row, n] += A[row, k] * M[e, n, k]
                        da[row, k] += dd[row, n] * M[e, n, k]
                        dW[e, n, k] += dd[row, n] * A[row, k]
            for got, wanted in ((d, want), (a.grad, da), (W.grad, dW)):
                self.same(got.detach(), wanted)

    def test_gradcheck(self):
        # A step of 1 is exact: the results are linear in each input. d_topk_weights is float32, exact on these integers.
        for call, inputs in ((ggm.torch.moe, self.layer(torch.float64)), (ggm.torch.grouped_gemm, self.product(torch.float64))):
            self.assertTrue(torch.autograd.gradcheck(call, inputs, eps=1.0, atol=0.0, rtol=0.0))
            self.assertTrue(torch.autograd.gradcheck(call, inputs))

    def test_refusals_name_the_arguments(self):
        x, W, ids, w = self.layer(torch.float32)
        a, V, sizes = self.product(torch.float32)
        moe, grouped = ggm.torch.moe, ggm.torch.grouped_gemm
        for call, inputs, kind, text in (
            (moe, (x, W[0], ids, w), ValueError, r"W has the shape \(3, 4\); it must be \[experts, out_features, in_features\]"),
            (moe, (x, W[0, 0], ids, w), ValueError, r"W has the shape \(4,\)"),
            (moe, (x, W.half(), ids, w), TypeError, "W holds torch.float16; it must hold torch.float32, as x does"),
            (moe, (x, W, ids.float(), w), TypeError, "expert_ids holds torch.float32; it must hold torch.int64 or torch.int32"),
            (moe, (x, W, ids, w[:, :1]), ValueError, "topk_weights tells top_k = 1, but expert_ids tells 2"),
            (moe, (x[:, :3], W, ids, w), ValueError, "x tells in_features = 3, but W tells 4"),
            (moe, (x[:4], W, ids, w), ValueError, "x tells tokens = 4, but expert_ids tells 5"),
            (grouped, (a, V[0], sizes), ValueError, r"W has the shape \(3, 4\); it must be \[groups, n, k\]"),
            (grouped, (a, V.double(), sizes), TypeError, "W holds torch.float64; it must hold torch.float32, as a does"),
            (grouped, (a, V, sizes[:2]), ValueError, "group_sizes tells groups = 2, but W tells 3"),
            (grouped, (a, V, sizes.double()), TypeError, "group_sizes holds torch.float64"),
        ):
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                call(*inputs)

    def test_forward_mode_is_refused(self):
        for call, inputs in ((ggm.torch.moe, self.layer(torch.float32)), (ggm.torch.grouped_gemm, self.product(torch.float32))):
            first, *rest = (t.detach() for t in inputs)
            with self.assertRaisesRegex(NotImplementedError, "has no forward-mode derivative"):
                torch.func.jvp(lambda t, call=call, rest=rest: call(t, *rest), (first,), (torch.ones_like(first),))

    def test_a_handle_that_cannot_be_had_leaves_the_device_as_it_was(self):
        before = []

        class Current:
            def __init__(self, device):
                self.device = device

            def __enter__(self):
                before.append(self.device)

            def __exit__(self, *error):
                before.pop()

        lost = types.SimpleNamespace(device=types.SimpleNamespace(type="cuda", index=41))
        with unittest.mock.patch.object(torch.cuda, "device", Current), unittest.mock.patch.object(ggm.torch, "Handle", side_effect=OSError):
            with self.assertRaises(OSError), ggm.torch._on(lost):
                self.fail("there is no such device")
        self.assertEqual(before, [])

    def test_opcheck(self):
        for dtype in (torch.float32, torch.bfloat16):
            operators.opcheck(torch.ops.ggm.moe.default, self.layer(dtype))
            operators.opcheck(torch.ops.ggm.grouped_gemm.default, self.product(dtype))

    def test_compile_does_not_break(self):
        # aot_eager traces forward and backward as every back end gets them, and needs no compiler.
        for call, inputs in ((ggm.torch.moe, self.layer(torch.float32)), (ggm.torch.grouped_gemm, self.product(torch.float32))):
            compiled = torch.compile(lambda *args, call=call: call(*args) * 2, backend="aot_eager", fullgraph=True)
            compiled(*inputs).sum().backward()
            gradient, inputs[0].grad = inputs[0].grad, None
            (call(*inputs) * 2).sum().backward()
            self.assertTrue(torch.equal(gradient, inputs[0].grad))


@unittest.skipUnless(FOUND and torch.cuda.is_available(), "torch with a CUDA device is not here")
class TorchOnCuda(Torch):
    device = "cuda"


if __name__ == "__main__":
    unittest.main()
