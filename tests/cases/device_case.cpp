#include "cases/device_case.h"

#include <algorithm>

namespace ggm_test::cases {

Graph::Graph(cudaStreamCaptureMode mode, const Stream& stream, const std::function<void()>& enqueue) {
  cuda(cudaStreamBeginCapture(stream, mode), "cudaStreamBeginCapture");
  std::string failure;
  try {
    enqueue();
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph_);
  if (!failure.empty()) {
    if (graph_) (void)cudaGraphDestroy(graph_);
    (void)cudaGetLastError();
    throw std::runtime_error("during capture: " + failure);
  }
  cuda(ended, "cudaStreamEndCapture");
  cuda(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
}

Graph::~Graph() {
  if (executable_) (void)cudaGraphExecDestroy(executable_);
  if (graph_) (void)cudaGraphDestroy(graph_);
}

namespace {
std::int64_t bytes_of_packed(const Tensor& tensor) { return tensor.size() * bytes_of(tensor.type()); }
}  // namespace

void enqueue_poison(const Tensor& tensor, cudaStream_t stream) {
  cuda(cudaMemsetAsync(tensor.data(), 0xFF, static_cast<std::size_t>(bytes_of_packed(tensor)), stream), "cudaMemsetAsync");
}

void enqueue_compare(const Tensor& got, const Tensor& want, const Counter& wrong, cudaStream_t stream) {
  enqueue_compare(got.data(), want.data(), bytes_of_packed(want), wrong.device(), stream);
}

std::unique_ptr<Tensor> expected_tensor(const Handle& handle, std::int32_t type, Shape shape, const Values& values) {
  auto tensor = std::make_unique<Tensor>(handle.backend(), "expected", type, shape);
  tensor->assign(values).upload();
  return tensor;
}

double seconds_of(const Stream& stream, int repeats, const std::function<void()>& enqueue) {
  cudaEvent_t start = nullptr, end = nullptr;
  cuda(cudaEventCreate(&start), "cudaEventCreate");
  cuda(cudaEventCreate(&end), "cudaEventCreate");
  float best = 1e30f;
  for (int i = 0; i < repeats; ++i) {
    cuda(cudaEventRecord(start, stream), "cudaEventRecord");
    enqueue();
    cuda(cudaEventRecord(end, stream), "cudaEventRecord");
    cuda(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    cuda(cudaEventElapsedTime(&milliseconds, start, end), "cudaEventElapsedTime");
    best = std::min(best, milliseconds);
  }
  (void)cudaEventDestroy(start);
  (void)cudaEventDestroy(end);
  return best * 1e-3;
}

}  // namespace ggm_test::cases
