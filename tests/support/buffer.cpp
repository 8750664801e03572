#include "support/buffer.h"

namespace ggm_test {

Buffer::Buffer(const Backend& backend, std::size_t bytes, std::size_t offset)
    : backend_(backend), bytes_(bytes), offset_(offset), base_(allocate(backend, 2 * kGuardBytes + offset + bytes)) {
  set_bytes(backend_, base_, kCanary, 2 * kGuardBytes + offset_ + bytes_);
  poison();
}

Buffer::Buffer(Buffer&& other) noexcept
    : backend_(other.backend_), bytes_(other.bytes_), offset_(other.offset_), base_(other.base_) {
  other.base_ = nullptr;
}

Buffer::~Buffer() {
  if (base_) release(backend_, base_);
}

void Buffer::poison() { set_bytes(backend_, data(), kPoison, bytes_); }
void Buffer::write(const void* from) { copy_in(backend_, data(), from, bytes_); }
void Buffer::read(void* to) const { copy_out(backend_, to, data(), bytes_); }

std::string Buffer::damage() const {
  const std::size_t before = kGuardBytes + offset_;
  std::vector<unsigned char> guard(before > kGuardBytes ? before : kGuardBytes);
  copy_out(backend_, guard.data(), base_, before);
  for (std::size_t i = before; i-- > 0;)
    if (guard[i] != kCanary) return "wrote " + std::to_string(before - i) + " bytes before the buffer";
  copy_out(backend_, guard.data(), static_cast<char*>(data()) + bytes_, kGuardBytes);
  for (std::size_t i = 0; i < kGuardBytes; ++i)
    if (guard[i] != kCanary) return "wrote " + std::to_string(i) + " bytes after the end of the buffer";
  return "";
}

}  // namespace ggm_test
