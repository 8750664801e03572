#include "support/buffer.h"

#include <algorithm>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace ggm_test {

#if defined(__SANITIZE_ADDRESS__)
void Buffer::close_guards() const {
  if (backend_.cuda) return;
  __asan_poison_memory_region(base_, kGuardBytes + offset_);
  __asan_poison_memory_region(static_cast<char*>(data()) + bytes_, kGuardBytes);
}
void Buffer::open_guards() const {
  if (!backend_.cuda) __asan_unpoison_memory_region(base_, 2 * kGuardBytes + offset_ + bytes_);
}
#else
void Buffer::close_guards() const {}
void Buffer::open_guards() const {}
#endif

Buffer::Buffer(const Backend& backend, std::size_t bytes, std::size_t offset)
    : backend_(backend), bytes_(bytes), offset_(offset), base_(allocate(backend, 2 * kGuardBytes + offset + bytes)) {
  set_bytes(backend_, base_, kCanary, 2 * kGuardBytes + offset_ + bytes_);
  poison();
  close_guards();
}

Buffer::Buffer(Buffer&& other) noexcept
    : backend_(other.backend_), bytes_(other.bytes_), offset_(other.offset_), base_(other.base_) {
  other.base_ = nullptr;
}

Buffer::~Buffer() {
  if (!base_) return;
  open_guards();
  release(backend_, base_);
}

void Buffer::poison() { set_bytes(backend_, data(), kPoison, bytes_); }
void Buffer::write(const void* from) { copy_in(backend_, data(), from, bytes_); }
void Buffer::read(void* to) const { copy_out(backend_, to, data(), bytes_); }

std::string Buffer::damage(void* body) const {
  const std::size_t before = kGuardBytes + offset_;
  std::vector<unsigned char> image(before + kGuardBytes);
  unsigned char* after = image.data() + before;
  open_guards();
  if (body) {
    image.resize(before + bytes_ + kGuardBytes);
    after = image.data() + before + bytes_;
    copy_out(backend_, image.data(), base_, image.size());
    std::copy(image.data() + before, after, static_cast<unsigned char*>(body));
  } else {
    copy_out(backend_, image.data(), base_, before);
    copy_out(backend_, after, static_cast<char*>(data()) + bytes_, kGuardBytes);
  }
  close_guards();
  for (std::size_t i = before; i-- > 0;)
    if (image[i] != kCanary) return "wrote " + std::to_string(before - i) + " bytes before the buffer";
  for (std::size_t i = 0; i < kGuardBytes; ++i)
    if (after[i] != kCanary) return "wrote " + std::to_string(i) + " bytes after the end of the buffer";
  return "";
}

}  // namespace ggm_test
