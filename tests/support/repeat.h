// Running one operation of a scene many times without its standing checks, back to back in one workspace, and comparing outputs
// with those of the scene's last run where they lie. Each run starts from poisoned outputs and the garbage of the run before.
#pragma once

#include <functional>
#include <vector>

#include "support/busy_stream.h"
#include "support/scene.h"

namespace ggm_test {

// Outputs with the bytes that they must have again.
class Repeated {
 public:
  Repeated(const Backend& backend, const std::vector<Tensor*>& outputs);
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

// One operation with its problem and tensors, ready to be made again and again. What it refers to must outlive it.
struct ReadyCall {
  const char* name = "";
  std::size_t workspace_bytes = 0;
  std::function<ggm_status_t(void* workspace, std::size_t bytes, ggm_stream_t stream)> make;
  std::vector<Tensor*> outputs;
};

template <typename P, typename T>
ReadyCall ready_call(const Handle& handle, const Operation<P, T>& operation, const P& problem, const T& tensors,
                     std::vector<Tensor*> outputs) {
  ReadyCall ready{operation.name, 0, {}, std::move(outputs)};
  GGM_REQUIRE_OK(operation.workspace_size(handle, &problem, &ready.workspace_bytes));
  ready.make = [&handle, operation, problem, tensors](void* workspace, std::size_t bytes, ggm_stream_t stream) {
    return operation.call(handle, &problem, &tensors, bytes ? workspace : nullptr, bytes, stream);
  };
  return ready;
}

// Makes the call in a workspace of its own and waits: its outputs hold then what they must have again.
void make_once(const Backend& backend, const ReadyCall& call);

// Makes the call `times` times, with another stream busy, and returns how many words differed; fails the test on a status.
std::uint64_t differences_of_runs(const Backend& backend, const ReadyCall& call, int times);

}  // namespace ggm_test
