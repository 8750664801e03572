// Device memory of one small call: inputs are written in full, outputs and the workspace are fresh allocations that nothing has
// written, so that initcheck sees every read of what the library did not write first. Freed together.
//
// NOTE: what the copy engine stores initcheck takes for not written. So where kernels store through it fresh memory is cleared
// first, and initcheck says nothing about what the library left out there.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/convert.h"
#include "ggm/ggm.h"

namespace ggm_test {

inline void cuda_check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

inline int type_bytes(std::int32_t type) { return type == GGM_TYPE_FLOAT64 ? 8 : type == GGM_TYPE_FLOAT32 ? 4 : 2; }

class DeviceMemory {
 public:
  static inline bool clears = false;  // fresh memory

  DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    for (void* p : blocks_) cudaFree(p);
  }

  // `skew` bytes off the allocation's alignment.
  void* fresh(std::size_t bytes, std::size_t skew = 0) {
    void* p = nullptr;
    cuda_check(cudaMalloc(&p, bytes + skew + 1), "cudaMalloc");
    blocks_.push_back(p);
    if (clears) cuda_check(cudaMemset(p, 0, bytes + skew + 1), "cudaMemset");
    return static_cast<char*>(p) + skew;
  }
  template <typename T>
  T* put(const std::vector<T>& values, std::size_t skew = 0) {
    void* p = fresh(values.size() * sizeof(T), skew);
    cuda_check(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    return static_cast<T*>(p);
  }

  // `count` small numbers of a type.
  void* numbers(std::int32_t type, std::int64_t count, std::size_t skew = 0) {
    const auto value = [](std::int64_t i) { return static_cast<float>((i * 7 + i / 5) % 11 - 5) * 0.25f; };
    const auto n = static_cast<std::size_t>(count);
    if (type == GGM_TYPE_FLOAT64) return put(make<double>(n, [&](std::int64_t i) { return double{value(i)}; }), skew);
    if (type == GGM_TYPE_FLOAT32) return put(make<float>(n, value), skew);
    const bool bf16 = type == GGM_TYPE_BFLOAT16;
    return put(
        make<std::uint16_t>(
            n, [&](std::int64_t i) { return bf16 ? ggm::float_to_bfloat16(value(i)) : ggm::float_to_float16(value(i)); }),
        skew);
  }
  // Integers of an index type.
  void* integers(std::int32_t index_type, const std::vector<std::int64_t>& values) {
    if (index_type == GGM_INDEX_INT64) return put(values);
    return put(std::vector<std::int32_t>(values.begin(), values.end()));
  }

 private:
  template <typename T, typename F>
  static std::vector<T> make(std::size_t count, F value) {
    std::vector<T> v(count);
    for (std::size_t i = 0; i < count; ++i) v[i] = static_cast<T>(value(static_cast<std::int64_t>(i)));
    return v;
  }

  std::vector<void*> blocks_;
};

}  // namespace ggm_test
