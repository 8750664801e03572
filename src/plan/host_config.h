// Blocking of the host backend's products, and so the packing scratch that the plan books for each thread.
#pragma once

#include <cstdint>

namespace ggm {

// One thread holds packed A (192 KB), packed B (256 KB) and the accumulators (192 KB) of a float32 tile: together they fit the
// second-level cache of a server core, and packing costs about a tenth of the multiply-adds. Bits do not depend on these.
struct HostBlocking {
  int rows = 192;     // rows of A packed at a time: a multiple of every family's micro-tile height (4, 6, 12)
  int columns = 256;  // columns of B packed at a time: a multiple of every micro-tile width and of kDotColumns
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
