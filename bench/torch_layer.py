"""The operations of the bench as torch programs: torch._grouped_mm between sort, gather and a weighted sum. No read-back, so all can be captured.

compare_torch.py times these beside the library and holds the library's values to plain_layer.
"""
import torch


def grouped(x, weight, ends):
    """[S, K] x [E, N, K]^T, groups of rows up to `ends`."""
    return torch._grouped_mm(x, weight.transpose(-2, -1), offs=ends)


def weight_gradient(g, x, ends):
    """[E, N, K] from g [S, N] and x [S, K]."""
    return torch._grouped_mm(g.transpose(-2, -1), x, offs=ends)


class Rows:
    """Expert ids [T, top_k] sorted: which slot a row is of (order), which row a slot has (inverse), where groups end."""

    def __init__(self, ids, experts):
        tokens, self.top_k = ids.shape
        sorted_ids, self.order = torch.sort(ids.flatten(), stable=True)
        self.ends = torch.searchsorted(sorted_ids, torch.arange(experts, device=ids.device, dtype=ids.dtype), right=True, out_int32=True)
        self.inverse = torch.empty_like(self.order)
        self.inverse[self.order] = torch.arange(tokens * self.top_k, device=ids.device)
        self.token = self.order // self.top_k

    def combine(self, rows, factors):
        """Sum over a token's rows, weighted: one small product a token, added in float32."""
        tokens = factors.shape[0]
        return torch.bmm(factors.to(rows.dtype).unsqueeze(1), rows[self.inverse].view(tokens, self.top_k, -1)).squeeze(1)


def moe_forward(x, weight, ids, factors):
    rows = Rows(ids, weight.shape[0])
    return rows.combine(grouped(x[rows.token], weight, rows.ends), factors)


def moe_backward(x, weight, ids, factors, dy):
    """dx, d_weight, d_routing_weights."""
    rows = Rows(ids, weight.shape[0])
    x_rows, dy_rows = x[rows.token], dy[rows.token]
    q = torch._grouped_mm(dy_rows, weight, offs=rows.ends)
    scaled = (dy_rows * factors.flatten()[rows.order].unsqueeze(1)).to(x.dtype)
    d_factors = (q * x_rows).sum(-1, dtype=torch.float32)[rows.inverse].view(factors.shape)
    return rows.combine(q, factors), weight_gradient(scaled, x_rows, rows.ends), d_factors


def plain_layer(x, weight, ids, factors):
    """The forward as a reader would write it, one product an expert; autograd gives its backward. For float32 values, not for speed."""
    rows = Rows(ids, weight.shape[0])
    x_rows, ends, parts, start = x[rows.token], rows.ends.tolist(), [], 0
    for e, end in enumerate(ends):
        parts.append(x_rows[start:end] @ weight[e].T)
        start = end
    products = torch.cat(parts) * factors.flatten()[rows.order].unsqueeze(1)
    return torch.zeros(x.shape[0], weight.shape[1], dtype=x.dtype, device=x.device).index_add(0, rows.token, products)


# ---- numbers -------------------------------------------------------------------------------------------------------------

def relative(got, want):
    """Frobenius norm of the difference over that of `want`, in float64."""
    want = want.double()
    return ((got.double() - want).norm() / want.norm()).item()


def distance_to_rounding(sums, rounded):
    """How far float32 sums lie outside the values that round to the bfloat16 `rounded`, relative Frobenius.

    Two kernels add the same products in different orders, so now and then a sum lies on the other side of the middle between two
    bfloat16 values, and the results differ by a whole unit. What is compared here is the sum behind the rounding: 0 where it rounds to the
    other's value, else its distance from the nearest sum that does.
    """
    bits = rounded.contiguous().view(torch.int16).to(torch.int32) & 0x7fff

    def value(magnitude):
        return (magnitude << 16).view(torch.float32).double()
    upper = (value(bits) + value(bits + 1)) / 2
    lower = torch.where(bits > 0, (value(bits) + value((bits - 1).clamp(min=0))) / 2, -upper)
    along = torch.where(rounded.contiguous().view(torch.int16) < 0, -sums.double(), sums.double())
    outside = (lower - along).clamp(min=0) + (along - upper).clamp(min=0)
    return (outside.norm() / sums.double().norm()).item()
