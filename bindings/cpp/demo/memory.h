// Memory that the library can work on: host memory as it is, or copies in GPU memory through the CUDA runtime when the build
// has it. Shows what a caller owes the library: all memory, and a synchronisation of its own before it reads results.
#pragma once

#include <cstddef>
#include <memory>

#include "ggm/ggm.h"

namespace demo {

class Memory {
 public:
  virtual ~Memory() = default;

  // Where the library finds `bytes` of host data.
  virtual const void* input(const void* host, std::size_t bytes) = 0;
  // Where the library may write what fetch() brings to `host`.
  virtual void* output(void* host, std::size_t bytes) = 0;
  // Sets every bit of an output, NaN in each type: no old value there can pass for a result of the next call.
  virtual void poison(void* output, std::size_t bytes) = 0;
  virtual void fetch(void* host, const void* output, std::size_t bytes) = 0;
  // Scratch, aligned to GGM_WORKSPACE_ALIGNMENT; nullptr for 0 bytes. Freed with this object.
  virtual void* scratch(std::size_t bytes) = 0;
  virtual void synchronize() = 0;
  virtual const char* device_name() const = 0;

  // Throws std::runtime_error when CUDA memory is asked of a build without CUDA.
  static std::unique_ptr<Memory> make(const ggm_info_t& info);
};

}  // namespace demo
