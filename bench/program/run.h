// One cell from its data to its records.
#pragma once

#include <random>

#include "cell_data.h"
#include "cublas.h"
#include "options.h"
#include "record.h"

namespace ggm_bench {

struct Machine {
  cudaStream_t stream = nullptr;
  ggm_handle_t ggm = nullptr;
  ggm_handle_t portable = nullptr;
  Cublas* cublas = nullptr;
  Buffers* buffers = nullptr;
  std::mt19937* random = nullptr;
};

// Throws when the library fails in the cell. A baseline that fails or would take too long is named on stderr and left out.
void run_cell(const Cell& cell, const Options& options, const Machine& machine, RecordWriter& writer);
void run_bandwidth(const Options& options, const Machine& machine, RecordWriter& writer);

}  // namespace ggm_bench
