#include "cell_data.h"

#include <algorithm>
#include <cmath>

#include "fill.h"

namespace ggm_bench {

namespace {

bool is(const Cell& cell, const char* operation) { return cell.operation == operation; }

bool has_product(const Cell& cell) { return cell.operation.rfind("grouped", 0) == 0 || cell.operation.rfind("moe", 0) == 0; }

void reserve_normals(DeviceBuffer& buffer, std::string& content, std::int64_t elements, Dtype type, std::uint64_t seed,
                     cudaStream_t stream) {
  const bool fresh = buffer.reserve(elements * size_of(type));
  if (!fresh && content == name_of(type)) return;
  fill_normal(buffer.data(), type, buffer.bytes() / size_of(type), 1.0f, seed, stream);
  content = name_of(type);
}

void reserve_weights(const CellData& data) {
  const Cell& cell = *data.cell;
  Buffers& b = *data.buffers;
  const std::int64_t elements = data.experts * data.weight_stride();
  const std::string content = cell.workload->name + " " + cell.product + " " + name_of(cell.dtype) + " " + cell.variant;
  const bool fresh = b.weights.reserve(elements * data.bytes_in());
  if (!fresh && b.weights_content == content) return;
  fill_normal(b.weights.data(), cell.dtype, elements, 1.0f / std::sqrt(static_cast<float>(data.k)), 77, data.stream);
  b.weights_content = content;
}

std::int64_t output_bytes(const CellData& d) {
  const Cell& cell = *d.cell;
  const std::int64_t out = size_of(cell.output_dtype()), in = d.bytes_in();
  if (is(cell, "grouped") || is(cell, "grouped_general")) return d.rows * cell.pitch(d.n) * out;
  if (is(cell, "grouped_masked")) return d.experts * d.capacity * d.n * out;
  if (is(cell, "grouped_k")) return d.experts * d.n * d.k * out;
  if (is(cell, "moe_forward")) return d.tokens * d.n * out;
  // dx, d_weight and d_routing_weights one after the other, each from a multiple of 256 bytes on.
  if (is(cell, "moe_backward"))
    return round_up(d.tokens * d.k * in, 256) + round_up(d.experts * d.n * d.k * in, 256) + 4 * d.rows;
  if (is(cell, "permute")) return d.rows * d.k * out;
  if (is(cell, "unpermute")) return d.tokens * d.k * out;
  return round_up(4 * (d.experts + 1), 256) + 2 * round_up(4 * d.rows, 256);  // route
}

}  // namespace

CellData prepare_cell(const Cell& cell, Buffers& buffers, cudaStream_t stream) {
  CellData d;
  d.cell = &cell;
  d.buffers = &buffers;
  d.stream = stream;
  buffers.routing.prepare(cell, stream);
  d.tokens = cell.tokens;
  d.top_k = cell.workload->top_k;
  d.experts = cell.workload->experts;
  d.rows = cell.rows();
  d.n = cell.shape().n;
  d.k = cell.shape().k;
  // The width of the rows that are moved: hidden, which is K of the up product and N of the down product.
  if (is(cell, "unpermute")) d.k = cell.shape().n;
  d.capacity = round_up(buffers.routing.largest(), 8);
  d.input_rows = is(cell, "moe_forward") || is(cell, "moe_backward") || is(cell, "permute") ? d.tokens : d.rows;
  if (is(cell, "grouped_masked")) d.input_rows = d.experts * d.capacity;
  if (is(cell, "grouped_k")) d.gradient_rows = d.rows;
  if (is(cell, "moe_backward")) d.gradient_rows = d.tokens;
  buffers.output.reserve(output_bytes(d));
  if (!is(cell, "route")) {
    // The dense product beside a cell reads [rows, k] from the same buffer.
    const std::int64_t elements = std::max(d.sets() * d.input_rows * cell.pitch(d.k), d.sets() * d.rows * d.k);
    reserve_normals(buffers.input, buffers.input_content, elements, cell.dtype, 11, stream);
  }
  if (d.gradient_rows > 0) {
    reserve_normals(buffers.gradient, buffers.gradient_content, d.sets() * d.gradient_rows * d.n, cell.dtype, 13, stream);
  }
  if (has_product(cell)) {
    reserve_weights(d);
    // The dense product's output has a place of its own only if the cell's is too small for it.
    buffers.output.reserve(d.rows * d.n * size_of(cell.output_dtype()));
  }
  check(cudaStreamSynchronize(stream), "data of the cell");
  return d;
}

Work count_work(const CellData& d) {
  const Cell& cell = *d.cell;
  const auto f = [](std::int64_t value) { return static_cast<double>(value); };
  const double in = f(d.bytes_in()), out = f(size_of(cell.output_dtype())), s = f(d.rows), t = f(d.tokens), n = f(d.n),
               k = f(d.k);
  const double ids = 4 * s, factors = 4 * s, offsets = 4 * f(d.experts + 1);
  Work work;
  work.experts_touched = d.buffers->routing.mean_touched();
  const double weights = work.experts_touched * n * k * in;
  if (has_product(cell)) work.dense_flops = work.flops = 2 * s * n * k;
  if (is(cell, "grouped_k")) {
    work.bytes = s * k * in + s * n * in + f(d.experts) * n * k * out;
  } else if (is(cell, "moe_forward")) {
    work.bytes = weights + t * k * in + t * n * out + ids + factors;
  } else if (is(cell, "moe_backward")) {
    work.flops *= 2;
    work.bytes = weights + 2 * t * k * in + t * n * in + f(d.experts) * n * k * in + ids + 2 * factors;
  } else if (is(cell, "route")) {
    work.bytes = ids + offsets + 8 * s;
  } else if (is(cell, "permute")) {
    work.bytes = t * k * in + s * k * out + offsets + 8 * s;
  } else if (is(cell, "unpermute")) {
    work.bytes = s * k * in + t * k * out + factors + offsets + 8 * s;
  } else {
    work.bytes = weights + s * k * in + s * n * out;
  }
  return work;
}

}  // namespace ggm_bench
