// Upper bound on the temporary storage of the device-wide sort (CUB's radix sort of 4-byte keys and values between two
// buffers). The plan books it; the CUDA backend compares it with CUB's own answer when it is created and again at each call.
#pragma once

#include <cstdint>

namespace ggm {

// What the sort asks for: 1 KiB of look-back state for each of its tiles of at least 8,000 items (0.13 bytes an item),
// histograms of 1 KiB for each pass and each portion of 2^28 items, and padding. The bound leaves a factor of three for other
// tunings.
constexpr std::int64_t sort_temp_bound(std::int64_t items) { return items / 2 + 128 * 1024; }

}  // namespace ggm
