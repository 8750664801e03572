// The table of kernels for so few rows that a table of groups would cost more than it saves, beside those of the portable and
// the wgmma kernels: plain data that the plan reads on any machine. Each has the bits of the portable kernels.
#pragma once

#include <cstdint>

namespace ggm {

struct TablelessKernel {
  const char* name;
  int columns, rows;  // of a tile: of the weights, and of a group
  int warps;          // each has 16 columns
  int stages;         // steps of 64 along K that a block has room for, the one that is read among them
  int blocks;         // that a multiprocessor should hold at once; registers are limited for it
  int shared_bytes;   // dynamic shared memory of a block
  bool long_inner;    // only with a long K; with a short one the starts and ends of its blocks weigh more than what it saves
};

// The plan takes the first that suits (choose_tableless in plan/choose.h): whose tile has room for the rows of most groups,
// because a further tile of a group reads its weights again.
inline constexpr TablelessKernel kTablelessKernels[] = {
    {"mma_32x8_tableless", 32, 8, 2, 7, 6, 35840, false},
    {"mma_32x16_tableless", 32, 16, 2, 7, 5, 43008, true},
};
inline constexpr int kTablelessKernelCount = sizeof(kTablelessKernels) / sizeof(kTablelessKernels[0]);
inline constexpr int kTablelessStep = 64;
inline constexpr int kTablelessCapability = 80;                 // least
inline constexpr std::int64_t kTablelessGroups = 256;           // at most: eight for each lane of a warp
inline constexpr std::int64_t kTablelessMostRows = 2048;        // of all groups
inline constexpr std::int64_t kTablelessMostColumns = 1 << 20;  // so that the blocks fit a grid
inline constexpr std::int64_t kTablelessMostInner =
    0x7fff0000;  // elements; and bytes from one row to the next: 32 bits hold them

// The most tiles that so many rows can need: a group of r > 0 rows has 1 + (r - 1) / kernel.rows of them, rounded down.
constexpr std::int64_t most_tiles(const TablelessKernel& kernel, std::int64_t groups, std::int64_t rows) {
  const std::int64_t used = rows < groups ? rows : groups;
  return used + (rows - used) / kernel.rows;
}

}  // namespace ggm
