// What the CUDA examples share: CUDA errors as exceptions, and owners of device memory, streams and graphs. A program that uses
// libggm has its own of these; the library takes plain pointers and streams.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ggm/ggm.hpp"

namespace example {

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// Device memory for `count` elements. cudaMalloc aligns to 256 bytes, which is enough for a workspace.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    if (count > 0) check(cudaMalloc(reinterpret_cast<void**>(&data_), bytes()), "cudaMalloc");
  }
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) {
    check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice), "copying to the GPU");
  }
  DeviceArray(DeviceArray&& other) noexcept : data_(std::exchange(other.data_, nullptr)), count_(other.count_) {}
  DeviceArray& operator=(DeviceArray&&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* data() const { return data_; }
  std::size_t bytes() const { return count_ * sizeof(T); }

  // In stream order. `values` must stay as they are until the stream has passed the copy.
  void write(std::span<const T> values, cudaStream_t stream) const {
    check(cudaMemcpyAsync(data_, values.data(), values.size_bytes(), cudaMemcpyHostToDevice, stream), "copying to the GPU");
  }
  // Sets every bit, NaN for floats, so that an old result cannot pass for a new one.
  void poison(cudaStream_t stream) const { check(cudaMemsetAsync(data_, 0xff, bytes(), stream), "cudaMemsetAsync"); }
  // Waits for the stream.
  std::vector<T> read(cudaStream_t stream) const {
    std::vector<T> values(count_);
    check(cudaMemcpyAsync(values.data(), data_, bytes(), cudaMemcpyDeviceToHost, stream), "copying from the GPU");
    check(cudaStreamSynchronize(stream), "running on the GPU");
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

// A stream that does not wait for the default stream.
class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// What `work` puts on a stream, recorded once, launched as often as you like.
class Graph {
 public:
  template <typename Work>
  Graph(cudaStream_t stream, const Work& work) {
    cudaGraph_t graph = nullptr;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    const ggm_status_t status = work();  // a status, not an exception: the capture must be ended in any case
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t made = status == GGM_STATUS_SUCCESS ? cudaGraphInstantiate(&replay_, graph, 0) : cudaSuccess;
    cudaGraphDestroy(graph);
    ggm::throw_if_failed(status);
    check(made, "cudaGraphInstantiate");
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { cudaGraphExecDestroy(replay_); }
  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(replay_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t replay_ = nullptr;
};

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Runs body(handle) on the CUDA backend; body returns whether its results were right. The exit code of an example: 0 passed,
// 1 wrong results, 2 could not run, 3 no GPU.
template <typename Body>
int run_on_cuda(const char* name, const Body& body) {
  try {
    const ggm::handle handle = ggm::handle::on(GGM_BACKEND_CUDA);
    check(cudaSetDevice(handle.info().device), "cudaSetDevice");
    const bool right = body(handle);
    std::puts(right ? "All checks passed." : "FAILED: see above.");
    return right ? 0 : 1;
  } catch (const ggm::error& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    if (e.status() != GGM_STATUS_UNSUPPORTED_DEVICE) return 2;
    std::fprintf(stderr, "%s: this example needs a GPU\n", name);
    return 3;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return 2;
  }
}

}  // namespace example
