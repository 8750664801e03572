// Checked CUDA calls and device memory that only grows, so that 268 cells need a handful of allocations.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "ggm/ggm.h"

namespace ggm_bench {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

inline void check_ggm(ggm_status_t status, const char* what) {
  if (status != GGM_STATUS_SUCCESS) {
    throw std::runtime_error(std::string(what) + ": " + ggm_status_string(status) + ": " + ggm_last_error());
  }
}

// Reserving more than it holds frees the old memory: pointers from data() are good until the next reserve.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { cudaFree(data_); }

  // True when the content is lost because the memory is new.
  bool reserve(std::int64_t bytes) {
    if (bytes <= bytes_) return false;
    check(cudaFree(data_), "cudaFree");
    data_ = nullptr;
    bytes_ = 0;
    check(cudaMalloc(&data_, static_cast<std::size_t>(bytes)), ("cudaMalloc of " + std::to_string(bytes) + " bytes").c_str());
    bytes_ = bytes;
    return true;
  }
  char* data() const { return static_cast<char*>(data_); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

}  // namespace ggm_bench
