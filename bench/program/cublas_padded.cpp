// Groups padded to the largest one, then strided batched products over all experts. The padding itself is done beforehand and
// is not in the time, which flatters this baseline. Left out where it would multiply the rows by more than eight.
#include <algorithm>

#include "contender.h"
#include "expert_products.h"
#include "fill.h"

namespace ggm_bench {

namespace {

constexpr std::int64_t kMostPadding = 8;
constexpr std::int64_t kMostBytes = std::int64_t{20} << 30;

struct Padded {
  std::int64_t rows = 0;  // experts * capacity, of one set
  std::int64_t in_bytes = 0, gradient_bytes = 0;
};

Padded make_padded(const CellData& d) {
  Padded p;
  p.rows = d.experts * d.capacity;
  p.in_bytes = round_up(p.rows * d.k * d.bytes_in(), 256);
  if (d.gradient_rows > 0) p.gradient_bytes = round_up(p.rows * d.n * d.bytes_in(), 256);
  return p;
}

void pad_inputs(const CellData& d, const Padded& p) {
  Buffers& b = *d.buffers;
  b.padded_input.reserve(d.sets() * p.in_bytes);
  b.padded_gradient.reserve(d.sets() * p.gradient_bytes);
  for (int set = 0; set < d.sets(); ++set) {
    const std::int32_t* offsets = d.routing(set).offsets;
    pad_groups(d.input(set), b.padded_input.data() + set * p.in_bytes, d.cell->dtype, offsets, d.experts, d.capacity, d.k,
               d.stream);
    if (p.gradient_bytes == 0) continue;
    pad_groups(d.gradient(set), b.padded_gradient.data() + set * p.gradient_bytes, d.cell->dtype, offsets, d.experts,
               d.capacity, d.n, d.stream);
  }
}

// Row of the padded result that holds sorted row r of set 0.
std::int64_t padded_row(const CellData& d, std::int64_t r) {
  const auto& offsets = d.routing(0).host_offsets;
  const std::int64_t e = std::upper_bound(offsets.begin(), offsets.end(), r) - offsets.begin() - 1;
  return e * d.capacity + r - offsets[e];
}

}  // namespace

std::vector<Contender> cublas_padded(const Context& context) {
  const CellData d = context.data;
  if (!has_expert_products(d)) return {};
  const Padded p = make_padded(d);
  const bool small = d.tokens <= 256;  // memory-bound: the padding costs little there
  if (!small && p.rows > kMostPadding * d.rows) return {};
  if (d.sets() * (p.in_bytes + p.gradient_bytes) > kMostBytes || p.rows * d.n * 4 > kMostBytes) return {};
  pad_inputs(d, p);
  const bool gradient = d.cell->operation == "grouped_k";
  const Dtype in = d.cell->dtype, out = d.cell->output_dtype();
  if (!gradient) d.buffers->padded_output.reserve(p.rows * d.n * size_of(out));
  Contender c = cublas_loop(context).front();
  c.name = "cuBLAS padded";
  c.enqueue = [d, p, gradient, in, out, &cublas = context.cublas](int set, cudaStream_t) {
    const char* x = d.buffers->padded_input.data() + set * p.in_bytes;
    if (gradient) {
      const char* g = d.buffers->padded_gradient.data() + set * p.gradient_bytes;
      cublas.batched(gradient_shape(d.capacity, d.n, d.k), in, out, {x, g, d.output()}, d.capacity * d.k, d.capacity * d.n,
                     d.n * d.k, d.experts);
    } else {
      cublas.batched(forward_shape(d.capacity, d.n, d.k, d.cell->kn()), in, out,
                     {d.weights(), x, d.buffers->padded_output.data()}, d.n * d.k, d.capacity * d.k, d.capacity * d.n,
                     d.experts);
    }
  };
  if (!gradient) {
    OutputView& view = c.outputs.front();
    view.base = d.buffers->padded_output.data();
    view.bytes = p.rows * d.n * size_of(out);
    view.offset = [d](std::int64_t row, std::int64_t column) { return padded_row(d, row) * d.n + column; };
  }
  return {c};
}

}  // namespace ggm_bench
