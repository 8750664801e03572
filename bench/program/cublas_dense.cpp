// [S,K] x [K,N] with one weight matrix: the rate that the floor takes as the card's best. Both weight orders run in every
// round; the floor takes the faster median.
#include "contender.h"

namespace ggm_bench {

namespace {

Contender dense(const Context& context, bool kn) {
  const CellData d = context.data;
  Contender c;
  c.name = kn ? "cuBLAS dense KN" : "cuBLAS dense NK";
  c.workspace_bytes = context.cublas.workspace_bytes();
  c.flops = 2.0 * static_cast<double>(d.rows) * static_cast<double>(d.n) * static_cast<double>(d.k);
  c.enqueue = [d, kn, &cublas = context.cublas](int set, cudaStream_t) {
    // Another expert's matrix every time, so that small ones do not come from the cache.
    const std::int64_t expert = set * d.experts / d.sets();
    const char* weights = d.weights() + expert * d.n * d.k * d.bytes_in();
    const char* input = d.buffers->input.data() + set * d.rows * d.k * d.bytes_in();
    cublas.gemm(forward_shape(d.rows, d.n, d.k, kn), d.cell->dtype, d.cell->output_dtype(), {weights, input, d.output()});
  };
  return c;
}

}  // namespace

std::vector<Contender> cublas_dense(const Context& context) {
  const std::string& operation = context.data.cell->operation;
  if (operation.rfind("grouped", 0) != 0 && operation.rfind("moe", 0) != 0) return {};
  return {dense(context, false), dense(context, true)};
}

}  // namespace ggm_bench
