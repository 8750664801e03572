// One ledger books the workspace of a call: the size query and the call read the same plan, so they cannot disagree.
#pragma once

#include <cstddef>

#include "base/checked.h"
#include "ggm/ggm.h"

namespace ggm {

// A piece of the workspace. bytes == 0: not booked, and at() gives nullptr.
struct Region {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;

  template <typename T>
  T* at(void* workspace) const {
    return bytes == 0 ? nullptr : reinterpret_cast<T*>(static_cast<char*>(workspace) + offset);
  }
};

class Ledger {
 public:
  // Books count * element_bytes, aligned to GGM_WORKSPACE_ALIGNMENT; nothing when that is 0.
  Region book(Checked count, std::int64_t element_bytes) {
    const Checked bytes = count * Checked(element_bytes);
    Region region{total_.value, bytes.value};
    total_ = total_ + bytes + Checked(padding(bytes.value));
    if (bytes.overflow) total_.overflow = true;
    return region;
  }

  bool overflow() const { return total_.overflow; }
  std::int64_t total() const { return total_.value; }

 private:
  // Without sign: after an overflow `bytes` may be any value.
  static std::int64_t padding(std::int64_t bytes) {
    return static_cast<std::int64_t>(-static_cast<std::uint64_t>(bytes) & (GGM_WORKSPACE_ALIGNMENT - 1));
  }

  Checked total_ = 0;
};

}  // namespace ggm
