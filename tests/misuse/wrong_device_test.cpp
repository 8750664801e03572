// A handle used while another CUDA device is current. One GPU is enough for the check itself; where there are two the whole
// path from the C entry point is taken.
#include <cuda_runtime_api.h>

#include <cstring>

#include "cuda/runtime/device.h"
#include "support/backend.h"
#include "support/test.h"

namespace {

bool names(const char* text, int number) { return std::strstr(text, std::to_string(number).c_str()) != nullptr; }

}  // namespace

TEST_CASE("misuse: another current device is refused: gpu", "[gpu][misuse]") {
  int current = -1;
  REQUIRE(cudaGetDevice(&current) == cudaSuccess);
  GGM_REQUIRE_STATUS(GGM_STATUS_SUCCESS, ggm::cuda::check_current_device(current));
  const int other = current + 41;
  GGM_REQUIRE_STATUS(GGM_STATUS_WRONG_DEVICE, ggm::cuda::check_current_device(other));
  const std::string text = ggm_last_error();
  INFO(text);
  CHECK(text.find("device") != std::string::npos);
  CHECK(names(text.c_str(), current));
  CHECK(names(text.c_str(), other));

  int devices = 0;
  REQUIRE(cudaGetDeviceCount(&devices) == cudaSuccess);
  if (devices < 2) return;
  const ggm_test::Handle handle(ggm_test::cuda_backends().front());
  ggm_route_problem_t problem = GGM_ROUTE_PROBLEM_INIT;
  problem.top_k = problem.experts = 1;
  problem.id_type = GGM_INDEX_INT32;
  std::size_t bytes = 0;
  GGM_REQUIRE_OK(ggm_route_workspace_size(handle, &problem, &bytes));
  void* memory = ggm_test::allocate(handle.backend(), bytes + 512);
  ggm_route_tensors_t tensors = GGM_ROUTE_TENSORS_INIT;
  tensors.group_offsets = reinterpret_cast<std::int32_t*>(static_cast<char*>(memory) + (bytes + 255) / 256 * 256);
  GGM_REQUIRE_OK(ggm_route(handle, &problem, &tensors, memory, bytes, nullptr));
  REQUIRE(cudaSetDevice((current + 1) % devices) == cudaSuccess);
  const ggm_status_t status = ggm_route(handle, &problem, &tensors, memory, bytes, nullptr);
  REQUIRE(cudaSetDevice(current) == cudaSuccess);
  CHECK(status == GGM_STATUS_WRONG_DEVICE);
  ggm_test::release(handle.backend(), memory);
}
