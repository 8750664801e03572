// A layer for the CUDA examples: sizes, random float32 values, and their place on the device.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "cuda_objects.h"

namespace example {

constexpr std::int64_t kTopK = 4, kExperts = 16, kIn = 256, kOut = 192;

inline ggm_moe_problem_t problem_of(std::int64_t tokens) {
  return ggm::moe_problem({tokens, kTopK, kExperts}, kIn, kOut, GGM_TYPE_FLOAT32, GGM_ORDER_NK, GGM_TYPE_FLOAT32);
}

// The inputs of one batch.
struct Batch {
  std::vector<std::int32_t> ids;
  std::vector<float> routing_weights, x;
};

inline std::vector<float> random_values(std::mt19937& random, std::int64_t count) {
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& v : values) v = value(random);
  return values;
}

inline Batch random_batch(std::mt19937& random, std::int64_t tokens) {
  std::uniform_int_distribution<std::int32_t> id(0, kExperts - 1);
  Batch batch;
  batch.ids.resize(static_cast<std::size_t>(tokens * kTopK));
  for (std::int32_t& i : batch.ids) i = id(random);
  batch.routing_weights = random_values(random, tokens * kTopK);
  batch.x = random_values(random, tokens * kIn);
  return batch;
}

// y of the first `tokens` tokens within a bound of plain float64 loops. Returns whether all are; prints the first that is not.
inline bool close_to_loops(const Batch& batch, const std::vector<float>& weight, const std::vector<float>& y,
                           std::int64_t tokens) {
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t n = 0; n < kOut; ++n) {
      double sum = 0, size = 0;
      for (std::int64_t a = t * kTopK; a < (t + 1) * kTopK; ++a) {
        for (std::int64_t k = 0; k < kIn; ++k) {
          const double term =
              double{batch.routing_weights[a]} * batch.x[t * kIn + k] * weight[(batch.ids[a] * kOut + n) * kIn + k];
          sum += term;
          size += term < 0 ? -term : term;
        }
      }
      const double got = y[t * kOut + n], error = got < sum ? sum - got : got - sum;
      // A float32 sum of kIn terms: at most kIn roundings, each of 2^-24 of the terms' sizes; and a few of the combine.
      if (!(error <= (kIn + kTopK + 2) * 0x1p-24 * size)) {
        std::printf("y[%lld,%lld] is %g, expected %g\n", static_cast<long long>(t), static_cast<long long>(n), got, sum);
        return false;
      }
    }
  }
  return true;
}

// The arrays of a batch of at most `tokens` tokens on the device, with a workspace of their own.
struct DeviceBatch {
  DeviceArray<std::int32_t> ids;
  DeviceArray<float> routing_weights, x, y;
  DeviceArray<unsigned char> workspace;

  DeviceBatch(std::int64_t tokens, std::size_t workspace_bytes)
      : ids(static_cast<std::size_t>(tokens * kTopK)),
        routing_weights(static_cast<std::size_t>(tokens * kTopK)),
        x(static_cast<std::size_t>(tokens * kIn)),
        y(static_cast<std::size_t>(tokens * kOut)),
        workspace(workspace_bytes) {}

  void write(const Batch& batch, cudaStream_t stream) const {
    ids.write(batch.ids, stream);
    routing_weights.write(batch.routing_weights, stream);
    x.write(batch.x, stream);
    y.poison(stream);
  }

  ggm_moe_forward_tensors_t tensors(const float* weight) const {
    auto tensors = ggm::init<ggm_moe_forward_tensors_t>();
    tensors.ids = ids.data();
    tensors.routing_weights = routing_weights.data();
    tensors.x = x.data();
    tensors.weight = weight;
    tensors.y = y.data();
    return tensors;
  }
};

}  // namespace example
