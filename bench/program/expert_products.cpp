#include "expert_products.h"

namespace ggm_bench {

std::vector<ExpertProduct> expert_products(const CellData& d, int set, const void* rows_in, void* rows_out) {
  const bool gradient = d.cell->operation == "grouped_k";
  const std::int64_t in = d.bytes_in(), out = size_of(d.cell->output_dtype());
  std::vector<ExpertProduct> products;
  for (std::int64_t e = 0; e < d.experts; ++e) {
    const std::int64_t first = d.routing(set).host_offsets[e], rows = d.routing(set).size(e);
    if (rows == 0) continue;
    const char* x = static_cast<const char*>(rows_in) + first * d.k * in;
    if (gradient) {
      const char* g = d.gradient(set) + first * d.n * in;
      products.push_back({gradient_shape(rows, d.n, d.k), {x, g, static_cast<char*>(rows_out) + e * d.n * d.k * out}});
    } else {
      const char* w = d.weights() + e * d.weight_stride() * in;
      products.push_back(
          {forward_shape(rows, d.n, d.k, d.cell->kn()), {w, x, static_cast<char*>(rows_out) + first * d.n * out}});
    }
  }
  return products;
}

bool has_expert_products(const CellData& d) {
  return (d.cell->operation == "grouped" || d.cell->operation == "grouped_k") && d.cell->variant != "unaligned";
}

}  // namespace ggm_bench
