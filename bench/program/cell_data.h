// The tensors of one cell on the device. Buffers grow and are kept between cells; normal data is made only when a buffer is new
// or changes its type, weights once a workload and product.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "cells.h"
#include "device.h"
#include "routing.h"

namespace ggm_bench {

struct Buffers {
  DeviceBuffer input, gradient, weights, output, workspace, padded_input, padded_gradient, padded_output, rows_in, rows_out;
  RoutingSets routing;
  std::string input_content, gradient_content, weights_content;  // what the buffer holds now
};

// Views into Buffers, good until the next cell is prepared.
struct CellData {
  const Cell* cell = nullptr;
  Buffers* buffers = nullptr;
  cudaStream_t stream = nullptr;
  std::int64_t tokens = 0, top_k = 0, experts = 0, rows = 0, n = 0, k = 0;
  std::int64_t input_rows = 0;     // rows of one input: tokens, sorted rows, or experts * capacity when masked
  std::int64_t gradient_rows = 0;  // rows of one gradient; 0: the operation reads none
  std::int64_t capacity = 0;       // rows a group has place for in the masked and padded layouts

  const Routing& routing(int set) const { return buffers->routing.sets()[set]; }
  int sets() const { return cell->sets(); }
  std::int64_t bytes_in() const { return size_of(cell->dtype); }
  const char* input(int set) const { return buffers->input.data() + set * input_rows * cell->pitch(k) * bytes_in(); }
  const char* gradient(int set) const { return buffers->gradient.data() + set * gradient_rows * n * bytes_in(); }
  // Elements between two experts' weights, and between rows of one.
  std::int64_t weight_ld() const { return cell->pitch(cell->kn() ? n : k); }
  std::int64_t weight_stride() const { return (cell->kn() ? k : n) * weight_ld(); }
  const char* weights() const { return buffers->weights.data(); }
  char* output() const { return buffers->output.data(); }
};

CellData prepare_cell(const Cell& cell, Buffers& buffers, cudaStream_t stream);

// What the targets count: 2*S*N*K a product, and every input and output once, weights of experts with rows only. Mean over the
// sets where routings differ.
struct Work {
  double flops = 0;
  double dense_flops = 0;  // of the dense product beside it; 0: the operation has none
  double bytes = 0;
  double experts_touched = 0;
};
Work count_work(const CellData& data);

}  // namespace ggm_bench
