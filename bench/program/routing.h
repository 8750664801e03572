// Expert ids and routing weights by the rules of workloads.json, made on the device, and the arrays that the unfused operations
// need, sorted on the host apart from the library.
//   uniform  a token's experts are top_k distinct ones, all alike
//   zipf     experts are ranked in a shuffled order fixed per workload; a token takes the top_k largest of -ln(rank) + Gumbel
//   noise equal    slot j of token t has expert (t * top_k + j) mod E: groups of one size
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "cells.h"
#include "device.h"

namespace ggm_bench {

// One set of ids. The device pointers are slices of RoutingSets' memory.
struct Routing {
  std::int32_t* ids = nullptr;             // [tokens, top_k]
  float* weights = nullptr;                // [tokens, top_k], softmax of normals
  std::int32_t* offsets = nullptr;         // [experts + 1]
  std::int32_t* sizes = nullptr;           // [experts]
  std::int32_t* row_assignment = nullptr;  // [rows]
  std::int32_t* assignment_row = nullptr;  // [rows]
  std::vector<std::int32_t> host_ids, host_offsets, host_row_assignment, host_assignment_row;
  std::vector<float> host_weights;

  std::int64_t size(std::int64_t expert) const { return host_offsets[expert + 1] - host_offsets[expert]; }
  std::int64_t touched() const;
  std::int64_t largest() const;
};

class RoutingSets {
 public:
  // Draws cell.sets() routings. Where the table of the peers says how many experts they touched, draws are repeated until the
  // mean is within 3% of it, so that both moved the same bytes; throws when 500 draws do not get there.
  void prepare(const Cell& cell, cudaStream_t stream);
  const std::vector<Routing>& sets() const { return sets_; }
  double mean_touched() const;
  std::int64_t largest() const;

 private:
  void slice(const Cell& cell);
  void draw(const Cell& cell, int attempt, cudaStream_t stream);
  void sort(const Cell& cell, cudaStream_t stream);

  DeviceBuffer memory_, scores_;
  std::vector<Routing> sets_;
};

// Device part: ids [tokens, top_k] and weights from per-expert scores (nullptr: all alike) and a seed.
void draw_ids(std::int32_t* ids, float* weights, const float* scores, bool equal, std::int64_t tokens, std::int64_t experts,
              std::int64_t top_k, std::uint64_t seed, cudaStream_t stream);

}  // namespace ggm_bench
