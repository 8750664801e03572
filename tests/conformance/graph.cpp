#include "conformance/graph.h"

#if defined(GGM_TEST_CUDA)
#include <cuda_runtime_api.h>

#include <vector>
#endif

namespace ggm_test {

#if defined(GGM_TEST_CUDA)

namespace {

int count_kernels(cudaGraph_t graph) {
  std::size_t count = 0;
  if (cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess) return -1;
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0 && cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return -1;
  int kernels = 0;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    if (cudaGraphNodeGetType(node, &type) != cudaSuccess) return -1;
    kernels += type == cudaGraphNodeTypeKernel;
  }
  return kernels;
}

}  // namespace

CaptureGraph::CaptureGraph() { REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess); }

CaptureGraph::~CaptureGraph() {
  drop();
  (void)cudaStreamDestroy(stream_);
}

void CaptureGraph::drop() {
  if (executable_) (void)cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable_));
  executable_ = nullptr;
}

void CaptureGraph::before_call() {
  drop();
  failures += cudaDeviceSynchronize() != cudaSuccess;
  failures += cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal) != cudaSuccess;
}

void CaptureGraph::after_call() {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  failures += cudaStreamEndCapture(stream_, &graph) != cudaSuccess;
  if (!graph || cudaGraphInstantiate(&executable, graph, 0) != cudaSuccess) {
    ++failures;
    return;
  }
  kernels = count_kernels(graph);
  (void)cudaGraphDestroy(graph);
  executable_ = executable;
  failures += !replay();
  if (!keep_graph) drop();
}

bool CaptureGraph::replay() {
  return executable_ && cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable_), stream_) == cudaSuccess &&
         cudaStreamSynchronize(stream_) == cudaSuccess;
}

void WatchDeviceMemory::before_call() {
  std::size_t total = 0;
  (void)cudaDeviceSynchronize();
  (void)cudaMemGetInfo(&free_before_, &total);
}

void WatchDeviceMemory::after_call() {
  std::size_t total = 0, free_after = 0;
  (void)cudaMemGetInfo(&free_after, &total);
  changed += free_after != free_before_;
  ++calls;
}

#else

CaptureGraph::CaptureGraph() = default;
CaptureGraph::~CaptureGraph() = default;
void CaptureGraph::drop() {}
void CaptureGraph::before_call() {}
void CaptureGraph::after_call() {}
bool CaptureGraph::replay() { return false; }
void WatchDeviceMemory::before_call() {}
void WatchDeviceMemory::after_call() {}

#endif

}  // namespace ggm_test
