// CUDA streams, graphs, events and device memory for the cases that need a GPU, each released by its owner, and calls of the
// library that only enqueue. Errors throw std::runtime_error with CUDA's name of the error, so a fault shows up where it is
// noticed.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "cases/case.h"
#include "cases/device_tools.h"

namespace ggm_test::cases {

inline void cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(error));
}
inline void library(ggm_status_t status) {
  if (status != GGM_STATUS_SUCCESS) throw std::runtime_error(std::string(ggm_status_string(status)) + ": " + ggm_last_error());
}

class Stream {
 public:
  Stream() { cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { (void)cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }
  void wait() const { cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

// What `enqueue` puts on a stream, as a graph.
class Graph {
 public:
  Graph(cudaStreamCaptureMode mode, const Stream& stream, const std::function<void()>& enqueue);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();
  void launch(const Stream& stream) const { cuda(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch"); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

// Device memory without guards, for tensors too large to keep a copy of on the host.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes_(bytes) { cuda(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Memory& operator=(Memory&&) = delete;
  ~Memory() { (void)cudaFree(data_); }
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  // Waits: a memset of device memory returns early, and a non-blocking stream would not wait for it.
  void fill(int byte) {
    cuda(cudaMemset(data_, byte, bytes_), "cudaMemset");
    cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

// A number on the device that checks add to.
class Counter {
 public:
  Counter() : memory_(sizeof(unsigned long long)) { memory_.fill(0); }
  unsigned long long* device() const { return static_cast<unsigned long long*>(memory_.data()); }
  unsigned long long read() const {
    unsigned long long value = 0;
    cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    cuda(cudaMemcpy(&value, memory_.data(), sizeof value, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return value;
  }

 private:
  Memory memory_;
};

// A call that only enqueues, with a workspace of its own or a shared one.
template <typename P, typename T>
class Enqueued {
 public:
  Enqueued(const Handle& handle, const Operation<P, T>& operation, const P& problem, const T& tensors,
           std::shared_ptr<Memory> workspace = nullptr)
      : handle_(handle), operation_(operation), problem_(problem), tensors_(tensors), workspace_(std::move(workspace)) {
    library(operation_.workspace_size(handle_, &problem_, &bytes_));
    if (!workspace_ && bytes_ > 0) workspace_ = std::make_shared<Memory>(bytes_);
    if (workspace_ && workspace_->bytes() < bytes_) throw std::runtime_error("the shared workspace is too small");
    if (workspace_) workspace_->fill(0xFF);
  }
  void operator()(ggm_stream_t stream) const { library(status(stream)); }
  ggm_status_t status(ggm_stream_t stream) const {
    return operation_.call(handle_, &problem_, &tensors_, bytes_ ? workspace_->data() : nullptr, bytes_, stream);
  }
  std::size_t workspace_bytes() const { return bytes_; }

 private:
  ggm_handle_t handle_;
  Operation<P, T> operation_;
  P problem_;
  T tensors_;
  std::size_t bytes_ = 0;
  std::shared_ptr<Memory> workspace_;
};

// The bytes that two calls sharing a workspace need.
template <typename P, typename T>
std::size_t workspace_bytes(const Handle& handle, const Operation<P, T>& operation, const P& problem) {
  std::size_t bytes = 0;
  library(operation.workspace_size(handle, &problem, &bytes));
  return bytes;
}

// Poison over a packed tensor, and counting where it differs from the expected bits, both enqueued.
void enqueue_poison(const Tensor& tensor, cudaStream_t stream);
void enqueue_compare(const Tensor& got, const Tensor& want, const Counter& wrong, cudaStream_t stream);

// A packed tensor on the device that holds the expected values.
std::unique_ptr<Tensor> expected_tensor(const Handle& handle, std::int32_t type, Shape shape, const Values& values);

// Seconds of what `enqueue` puts on the stream: the smallest of `repeats`.
double seconds_of(const Stream& stream, int repeats, const std::function<void()>& enqueue);

}  // namespace ggm_test::cases
