// Guarded memory on a backend: 4 KiB of 0xA5 before and after the body. Used by Tensor and for workspaces. Under the address
// sanitizer the guards of host memory are poisoned too, so that reading there is reported, not only writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/backend.h"

namespace ggm_test {

inline constexpr std::size_t kGuardBytes = 4096;
inline constexpr unsigned char kCanary = 0xA5;
inline constexpr unsigned char kPoison = 0xFF;  // NaN in every floating-point type, -1 as an integer

class Buffer {
 public:
  // The body starts `offset` bytes after a 4096-byte boundary and is poisoned.
  Buffer(const Backend& backend, std::size_t bytes, std::size_t offset = 0);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer();

  void* data() const { return static_cast<char*>(base_) + kGuardBytes + offset_; }
  std::size_t bytes() const { return bytes_; }
  const Backend& backend() const { return backend_; }

  void poison();
  void write(const void* from);  // the whole body
  void read(void* to) const;     // the whole body
  // "" when both guards are whole, else what was hit. With `body` the same copy brings the whole body too.
  std::string damage(void* body = nullptr) const;

 private:
  void close_guards() const;  // to the address sanitizer; nothing without it
  void open_guards() const;

  Backend backend_;
  std::size_t bytes_, offset_;
  void* base_ = nullptr;
};

}  // namespace ggm_test
