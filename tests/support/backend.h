// The table of backends that a test runs on, their memory, and a handle. A backend here is one row: host or CUDA with one
// kernel family. Memory of a host row is ordinary memory, of a CUDA row cudaMalloc; tests reach it through copies alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ggm/ggm.h"

namespace ggm_test {

struct Backend {
  std::string name;  // as in the text of a case: host-plain, host-avx2, host-avx512, host-auto, cuda-auto, cuda-portable,
                     // cuda-hopper
  bool cuda = false;
  std::int32_t kernel_family = GGM_KERNELS_AUTO;
  std::int32_t host_threads = 2;
};

// The rows that this machine can run. GPU tests loop over cuda_backends(), host tests over host_backends(). One that does not
// depend on the family takes the first row of either.
const std::vector<Backend>& host_backends();
const std::vector<Backend>& cuda_backends();
inline const std::vector<Backend>& backends(bool cuda) { return cuda ? cuda_backends() : host_backends(); }

struct Gpu {
  bool present = false;
  std::string name;    // "NVIDIA H200 (9.0, 132 multiprocessors)"
  std::string reason;  // why there is none
  int capability = 0, multiprocessors = 0;
  std::size_t memory_bytes = 0;
};
const Gpu& gpu();

// The row of the wgmma kernels, and why this machine cannot run them; empty: it can.
Backend hopper_backend();
std::string hopper_obstacle();

// Memory of a row. Copies wait for everything on the device. They throw std::runtime_error when CUDA reports an error, so an
// asynchronous fault of a kernel shows up in the test that caused it.
void* allocate(const Backend& backend, std::size_t bytes);
void release(const Backend& backend, void* pointer);
void copy_in(const Backend& backend, void* to, const void* from, std::size_t bytes);
void copy_out(const Backend& backend, void* to, const void* from, std::size_t bytes);
void set_bytes(const Backend& backend, void* to, int byte, std::size_t bytes);
void synchronize(const Backend& backend);

// A handle of a row; fails the test when it cannot be made. Move-only.
class Handle {
 public:
  explicit Handle(const Backend& backend);
  Handle(const Backend& backend, ggm_create_params_t params);  // backend and kernel_family are set from the row
  Handle(Handle&& other) noexcept;
  Handle& operator=(Handle&&) = delete;
  ~Handle();

  operator ggm_handle_t() const { return handle_; }
  const Backend& backend() const { return backend_; }

 private:
  Backend backend_;
  ggm_handle_t handle_ = nullptr;
};

}  // namespace ggm_test
