// One way to do a cell's operation: the library's, a baseline's. Each contender has its own file; run.cpp asks all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cell_data.h"
#include "cublas.h"
#include "gather.h"

namespace ggm_bench {

// Where a contender leaves one result ("d", "dx", "d_weight", "d_routing_weights").
struct OutputView {
  std::string part;
  char* base = nullptr;
  std::int64_t bytes = 0;  // poisoned before the check, so that an element that was not written shows as NaN
  Dtype type = Dtype::bf16;
  std::function<std::int64_t(std::int64_t row, std::int64_t column)> offset;  // element of (row, column)
};

struct Contender {
  std::string name;
  std::string combine;  // auto, ordered; empty where there is no such choice
  std::int64_t workspace_bytes = 0;
  bool baseline = true;
  bool capturable = true;  // false: always launched plainly
  double flops = 0;        // of a dense product; 0: the contender does the cell's operation
  // Puts one call on the stream. Looks up buffers' addresses itself, since they may move until all contenders exist.
  std::function<void(int set, cudaStream_t stream)> enqueue;
  std::vector<OutputView> outputs;  // empty: nothing is checked (the dense products are not the cell's operation)
  // For results that are integers: the fraction that differs. Used instead of `outputs`.
  std::function<double(Gather& gather)> exact_error;
};

// What a contender is built from.
struct Context {
  const CellData& data;
  ggm_handle_t ggm;
  Cublas& cublas;
  ggm_handle_t portable;  // of the family GGM_KERNELS_CUDA_PORTABLE
};

// Contenders of the library; every one may throw, which ends the cell.
std::vector<Contender> ggm_products(const Context& context);  // grouped, grouped_masked, grouped_general, grouped_k
std::vector<Contender> ggm_moe(const Context& context);       // moe_forward (auto and ordered), moe_backward
std::vector<Contender> ggm_rows(const Context& context);      // route, permute, unpermute

// The library once more with fewer kernels to choose from, on the operations that have a product; "ggm-portable", "ggm:<row>".
std::vector<Contender> ggm_portable(const Context& context);     // rows of the kernel table that run on any GPU
std::vector<Contender> ggm_forced_rows(const Context& context);  // each row of the kernel table that can do the cell

// Baselines; an empty list where they do not apply.
std::vector<Contender> cublas_dense(const Context& context);    // [S,K] x [K,N] in both weight orders
std::vector<Contender> cublas_loop(const Context& context);     // one product an expert, sizes on the host
std::vector<Contender> cublas_grouped(const Context& context);  // cublasGemmGroupedBatchedEx, sizes on the host
std::vector<Contender> cublas_padded(const Context& context);   // strided batched products of groups padded to the largest
std::vector<Contender> unfused(const Context& context);         // moe_forward as permute, cuBLAS loop, unpermute

}  // namespace ggm_bench
