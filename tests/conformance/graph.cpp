#include "conformance/graph.h"

#include <algorithm>

#if defined(GGM_TEST_CUDA)
#include <cuda.h>
#include <cuda_runtime_api.h>
#endif

namespace ggm_test {

int CaptureGraph::kernels_named(const std::string& text) const {
  const auto has = [&](const std::string& name) { return name.find(text) != std::string::npos; };
  return static_cast<int>(std::count_if(names.begin(), names.end(), has));
}

#if defined(GGM_TEST_CUDA)

namespace {

// A function of the driver by its name, since the version of CUDA that has it; nullptr: it has none.
template <typename Function>
Function driver_function(const char* name, unsigned version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found);
  return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(function) : nullptr;
}

// NOTE: from the driver, because the runtime of this program does not know the kernels of the library's own.
std::string name_of_kernel(cudaGraphNode_t node) {
  static const auto parameters_of =
      driver_function<CUresult (*)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2*)>("cuGraphKernelNodeGetParams", 12000);
  static const auto name_of_function = driver_function<CUresult (*)(const char**, CUfunction)>("cuFuncGetName", 12030);
  static const auto name_of_loaded = driver_function<CUresult (*)(const char**, CUkernel)>("cuKernelGetName", 12030);
  CUDA_KERNEL_NODE_PARAMS_v2 parameters{};
  const char* name = nullptr;
  if (!parameters_of || !name_of_function || !name_of_loaded || parameters_of(node, &parameters) != CUDA_SUCCESS) return "?";
  const CUresult result = parameters.func ? name_of_function(&name, parameters.func) : name_of_loaded(&name, parameters.kern);
  return result == CUDA_SUCCESS && name ? name : "?";
}

// Whether the nodes could be read.
bool read_kernels(cudaGraph_t graph, std::vector<std::string>* names) {
  names->clear();
  std::size_t count = 0;
  if (cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess) return false;
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0 && cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return false;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    if (cudaGraphNodeGetType(node, &type) != cudaSuccess) return false;
    if (type == cudaGraphNodeTypeKernel) names->push_back(name_of_kernel(node));
  }
  return true;
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
  failures += !read_kernels(graph, &names);
  kernels = static_cast<int>(names.size());
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
