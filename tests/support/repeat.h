// Running one operation of a scene many times without its standing checks, back to back in one workspace, and comparing outputs
// with those of the scene's last run where they lie. Each run starts from poisoned outputs and the garbage of the run before.
#pragma once

#include <vector>

#include "support/busy_stream.h"
#include "support/scene.h"

namespace ggm_test {

// Outputs with the bytes that they must have again.
class Repeated {
 public:
  Repeated(const Backend& backend, const std::vector<const Tensor*>& outputs);
  Repeated(const Repeated&) = delete;

  void poison();
  void compare();               // asynchronous on CUDA
  std::uint64_t differences();  // words that differed in any compare() so far; waits

 private:
  struct Entry {
    void* data;
    std::size_t bytes;
    Buffer want;
  };
  Backend backend_;
  std::vector<Entry> entries_;
  Buffer count_;
  std::uint64_t host_count_ = 0;
};

// Runs `times` times, with another stream busy, and returns how many words differed; fails the test on a status.
template <typename P, typename T>
std::uint64_t differences_of_runs(Scene& scene, const Operation<P, T>& operation, const P& problem, const T& tensors,
                                  const std::vector<const Tensor*>& outputs, int times) {
  std::size_t bytes = 0;
  GGM_REQUIRE_OK(operation.workspace_size(scene.handle(), &problem, &bytes));
  Buffer workspace(scene.backend(), bytes);
  Repeated repeated(scene.backend(), outputs);
  BusyStream other(scene.backend());
  for (int i = 0; i < times; ++i) {
    other.keep_busy();
    repeated.poison();
    const ggm_status_t status =
        operation.call(scene.handle(), &problem, &tensors, bytes ? workspace.data() : nullptr, bytes, nullptr);
    if (status != GGM_STATUS_SUCCESS) GGM_REQUIRE_OK(status);
    repeated.compare();
  }
  return repeated.differences();
}

}  // namespace ggm_test
