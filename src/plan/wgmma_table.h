// The table of wgmma kernels (capability 9.0, src/cuda/device/hopper), beside that of the portable kernels: plain data that the
// plan reads on any machine. Each has the bits of the portable kernels.
#pragma once

#include <cstdint>

namespace ggm {

inline constexpr int kFewRight = 64;  // max_right of the kernels for groups of few rows

struct WgmmaKernel {
  const char* name;
  bool over_k;       // K runs over the rows: weight gradients; else products over rows
  bool gathered;     // rows of A come through a list, and each tile fetches its own
  bool relayed;      // likewise, but they are copied once, into a window of memory: RelayPlan
  bool together;     // two warpgroups multiply one tile; else they take turns with tiles of half its left rows
  int max_right;     // rows of A in a tile, a multiple of 8: rows of a group, or of a weight gradient's result
  int stages;        // steps of 64 along K in flight
  int staging;       // bytes that results pass through
  bool one_staging;  // the warpgroups take turns with them; else each has its own
  int pair_work;     // of a pair of tiles beside its steps and beyond that of a kernel for few rows: expected_wgmma_work

  constexpr bool takes_list() const { return gathered || relayed; }
  constexpr bool for_few() const { return !over_k && max_right == kFewRight; }
  constexpr int left_tile() const { return together ? 256 : 128; }  // rows of the left operand in a tile
};

inline constexpr WgmmaKernel kWgmmaKernels[] = {
    {"wgmma_144x128", false, false, false, false, 144, 6, 18432, true, 180},
    {"wgmma_144x256_gather", false, true, false, true, 144, 4, 12288, false, 580},
    {"wgmma_192x128_k", true, false, false, false, 192, 4, 24576, false, 0},
    {"wgmma_64x128", false, false, false, false, kFewRight, 8, 18432, true, 0},
    {"wgmma_64x128_gather", false, true, false, false, kFewRight, 8, 12288, false, 0},
    {"wgmma_144x128_relay", false, false, true, false, 144, 5, 18432, true, 0},
};
inline constexpr int kWgmmaKernelCount = sizeof(kWgmmaKernels) / sizeof(kWgmmaKernels[0]);
inline constexpr int kWgmmaSharedBytes = 227 * 1024;  // that a block may take on capability 9.0

// The window of a relayed kernel.
inline constexpr int kRelayChunk = 256;  // rows of the list, counted together; the window has a multiple of them
inline constexpr int kRelayTail = 144;   // first rows that are there twice: max_right of the kernel, at least
inline constexpr int kRelayPieces = 16;  // of rows, that a block copies at a time
inline constexpr int kRelayPieceBytes = 2048;

}  // namespace ggm
