#include "support/busy_stream.h"

#include "support/test.h"

#if defined(GGM_TEST_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace ggm_test {

#if defined(GGM_TEST_CUDA)
namespace {
constexpr std::size_t kHalf = std::size_t{64} << 20;
}

BusyStream::BusyStream(const Backend& backend) {
  if (!backend.cuda) return;
  REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaMalloc(&memory_, 2 * kHalf) == cudaSuccess);
}
BusyStream::~BusyStream() {
  if (!stream_) return;
  (void)cudaStreamSynchronize(stream_);
  (void)cudaStreamDestroy(stream_);
  (void)cudaFree(memory_);
}
void BusyStream::keep_busy() {
  if (!stream_ || cudaStreamQuery(stream_) == cudaErrorNotReady) return;
  for (int i = 0; i < 8; ++i) {
    (void)cudaMemsetAsync(memory_, i, kHalf, stream_);
    (void)cudaMemcpyAsync(static_cast<char*>(memory_) + kHalf, memory_, kHalf, cudaMemcpyDeviceToDevice, stream_);
  }
}
#else
BusyStream::BusyStream(const Backend&) {}
BusyStream::~BusyStream() = default;
void BusyStream::keep_busy() {}
#endif

}  // namespace ggm_test
