// Blocking of the host backend's products, and so the packing scratch that the plan books for each thread.
#pragma once

#include <cstdint>

namespace ggm {

struct HostBlocking {
  int rows = 96;      // rows of A packed at a time
  int columns = 256;  // columns of B packed at a time
  int inner = 256;    // steps of the inner dimension packed at a time
};
inline constexpr HostBlocking kHostBlocking{};

// Bytes of packed A, packed B and the accumulator tile of one thread, for an accumulator of `bytes`.
constexpr std::int64_t host_scratch_bytes(int bytes) {
  const std::int64_t elements = std::int64_t{kHostBlocking.rows} * kHostBlocking.inner +
                                std::int64_t{kHostBlocking.columns} * kHostBlocking.inner +
                                std::int64_t{kHostBlocking.rows} * kHostBlocking.columns;
  return (elements * bytes + 255) / 256 * 256;
}

}  // namespace ggm
