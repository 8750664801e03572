// The naive way: one cuBLAS product an expert, for which the host must know the sizes. In a graph its launches cost little,
// which flatters it: a program without graphs also pays for the read-back of the sizes.
#include "contender.h"
#include "expert_products.h"

namespace ggm_bench {

std::vector<Contender> cublas_loop(const Context& context) {
  const CellData d = context.data;
  if (!has_expert_products(d)) return {};
  Contender c;
  c.name = "cuBLAS loop";
  c.workspace_bytes = context.cublas.workspace_bytes();
  c.enqueue = [d, &cublas = context.cublas](int set, cudaStream_t) {
    for (const ExpertProduct& p : expert_products(d, set, d.input(set), d.output())) {
      cublas.gemm(p.shape, d.cell->dtype, d.cell->output_dtype(), p.pointers);
    }
  };
  const Dtype type = d.cell->output_dtype();
  const bool gradient = d.cell->operation == "grouped_k";
  const std::int64_t ld = gradient ? d.k : d.n, rows = gradient ? d.experts * d.n : d.rows;
  c.outputs = {{"d", d.output(), rows * ld * size_of(type), type,
                [ld](std::int64_t row, std::int64_t column) { return row * ld + column; }}};
  return {c};
}

}  // namespace ggm_bench
