// src/plan/gpu on faked GPUs: which are refused, and when GGM_BACKEND_AUTO takes the host instead.
#include "plan/gpu.h"

#include <string>
#include <thread>

#include "base/status.h"
#include "support/backend.h"
#include "support/test.h"

using namespace ggm;

namespace {

FoundGpu gpu(int count, int ordinal, int capability) {
  FoundGpu found;
  found.count = count;
  found.ordinal = ordinal;
  found.capability = capability;
  found.multiprocessors = 132;
  found.shared_memory_bytes = 227 * 1024;
  return found;
}

// A card on which the wgmma kernels run.
FoundGpu hopper() {
  FoundGpu found = gpu(1, 0, 90);
  found.wgmma = true;
  return found;
}

std::int32_t family_of(const FoundGpu& found, std::int32_t family) {
  Device device;
  GGM_REQUIRE_OK(accept_gpu(found, family, &device));
  return device.kernel_family;
}

ggm_status_t status_of(const FoundGpu& found, std::int32_t family = GGM_KERNELS_AUTO) {
  Device device;
  return accept_gpu(found, family, &device);
}

constexpr const char* kNoGpu[] = {"cudaErrorNoDevice", "cudaErrorInsufficientDriver", "cudaErrorStubLibrary",
                                  "cudaErrorSystemDriverMismatch", "cudaErrorCompatNotSupportedOnDevice"};

FoundGpu failing(int count, const char* failure) {
  FoundGpu found = gpu(count, 0, 0);
  found.failure = failure;
  return found;
}

}  // namespace

TEST_CASE("gpu: a card of capability 8.0 or more becomes the device of the plan", "[host]") {
  for (const int capability : {80, 86, 90, 121}) {
    Device device;
    REQUIRE(accept_gpu(gpu(3, 2, capability), GGM_KERNELS_AUTO, &device) == GGM_STATUS_SUCCESS);
    CHECK(device.backend == BackendKind::cuda);
    CHECK(device.ordinal == 2);
    CHECK(device.capability == capability);
    CHECK(device.multiprocessors == 132);
    CHECK(device.shared_memory_bytes == 227 * 1024);
    CHECK(device.kernel_family == GGM_KERNELS_CUDA_PORTABLE);
  }
}

TEST_CASE("gpu: AUTO takes the wgmma kernels where they run, and a family pins its own", "[host]") {
  CHECK(family_of(hopper(), GGM_KERNELS_AUTO) == GGM_KERNELS_CUDA_HOPPER);
  CHECK(family_of(hopper(), GGM_KERNELS_CUDA_HOPPER) == GGM_KERNELS_CUDA_HOPPER);
  CHECK(family_of(hopper(), GGM_KERNELS_CUDA_PORTABLE) == GGM_KERNELS_CUDA_PORTABLE);
  // Capability 9.0 in a library without native code of 90a, or under a driver without the copy engine's maps.
  CHECK(family_of(gpu(1, 0, 90), GGM_KERNELS_AUTO) == GGM_KERNELS_CUDA_PORTABLE);
  CHECK(family_of(gpu(1, 0, 90), GGM_KERNELS_CUDA_PORTABLE) == GGM_KERNELS_CUDA_PORTABLE);
}

TEST_CASE("gpu: the wgmma kernels asked for where they cannot run are refused, with the number and the card", "[host]") {
  for (const int capability : {80, 90, 100, 120}) {
    REQUIRE(status_of(gpu(3, 2, capability), GGM_KERNELS_CUDA_HOPPER) == GGM_STATUS_UNSUPPORTED);
    const std::string text = last_error();
    INFO(text);
    const std::string version = std::to_string(capability / 10) + "." + std::to_string(capability % 10);
    for (const std::string& word : {std::string("kernel_family = 2"), std::string("device 2"), version})
      CHECK(text.find(word) != std::string::npos);
    // Not the host in their place: the program asked for them by name.
    CHECK_FALSE(host_takes_over(gpu(3, 2, capability), GGM_STATUS_UNSUPPORTED));
  }
}

TEST_CASE("gpu: each reason for a refusal is named", "[host]") {
  const auto refused = [](const FoundGpu& found, const std::string& word) {
    CHECK(status_of(found) == GGM_STATUS_UNSUPPORTED_DEVICE);
    INFO(last_error());
    CHECK(std::string(last_error()).find(word) != std::string::npos);
  };
  for (const char* name : kNoGpu) refused(failing(0, name), name);
  refused(gpu(0, 0, 0), "none");
  refused(gpu(2, 7, 0), "7");
  refused(gpu(1, 0, 75), "7.5");
  CHECK(status_of(gpu(1, 0, 90), GGM_KERNELS_HOST_AVX2) == GGM_STATUS_UNSUPPORTED);
}

TEST_CASE("gpu: a driver or GPU that fails is an error, with AUTO too", "[host]") {
  for (const char* name : {"cudaErrorInitializationError", "cudaErrorMemoryAllocation", "cudaErrorDevicesUnavailable",
                           "cudaErrorSystemNotReady", "cudaErrorUnknown"})
    for (const int count : {0, 1}) {  // of the count, and of the card's properties
      const FoundGpu found = failing(count, name);
      INFO(name << ", " << count);
      CHECK(status_of(found) == GGM_STATUS_CUDA_ERROR);
      CHECK(std::string(last_error()).find(name) != std::string::npos);
      CHECK_FALSE(host_takes_over(found, status_of(found)));
    }
}

TEST_CASE("gpu: AUTO takes the host where no GPU can be used, and nowhere else", "[host]") {
  const auto taken = [](const FoundGpu& found) { return host_takes_over(found, status_of(found)); };
  for (const char* name : kNoGpu) {
    FoundGpu found = failing(0, name);
    INFO(name);
    CHECK(taken(found));
    found.ordinal = 7;
    CHECK(taken(found));
  }
  CHECK(taken(gpu(0, 0, 0)));
  CHECK(taken(gpu(2, 1, 75)));
  CHECK_FALSE(taken(gpu(2, 0, 90)));
  CHECK_FALSE(taken(gpu(2, 2, 0)));  // one number too far
  CHECK_FALSE(taken(gpu(2, 7, 0)));
  // A good card: without code for it in this build the host takes over, but a failure is told.
  CHECK(host_takes_over(gpu(1, 0, 90), GGM_STATUS_UNSUPPORTED_DEVICE));
  for (const ggm_status_t failure : {GGM_STATUS_CUDA_ERROR, GGM_STATUS_OUT_OF_MEMORY, GGM_STATUS_UNSUPPORTED})
    CHECK_FALSE(host_takes_over(gpu(1, 0, 90), failure));
}

TEST_CASE("gpu: AUTO makes a host handle where there is no GPU, whatever the device", "[host]") {
  if (ggm_test::gpu().present) return;
  for (const std::int32_t device : {0, 7}) {
    ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
    params.device = device;
    params.host_threads = 1;
    ggm_handle_t handle = nullptr;
    GGM_REQUIRE_OK(ggm_create(&params, &handle));
    ggm_info_t info = GGM_INFO_INIT;
    GGM_REQUIRE_OK(ggm_get_info(handle, &info));
    CHECK(info.backend == GGM_BACKEND_HOST);
    CHECK(info.device == 0);
    GGM_REQUIRE_OK(ggm_destroy(handle));
  }
}

TEST_CASE("gpu: AUTO that makes a host handle leaves the last error as it was", "[host]") {
  if (ggm_test::gpu().present) return;
  const auto text_after_create = [] {
    ggm_handle_t handle = nullptr;
    if (ggm_create(nullptr, &handle) != GGM_STATUS_SUCCESS) return std::string("create failed");
    ggm_destroy(handle);
    return std::string(ggm_last_error());
  };
  // In a thread of its own: no call has failed there yet.
  std::string in_new_thread = "unset", after_failure;
  std::thread([&] {
    in_new_thread = text_after_create();
    (void)fail(GGM_STATUS_INVALID_VALUE, "an earlier failure");
    after_failure = text_after_create();
  }).join();
  CHECK(in_new_thread.empty());
  CHECK(after_failure == "an earlier failure");
}
