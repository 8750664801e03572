// One launch of a wgmma kernel: the product as every kernel knows it, and the maps by which the copy engine finds its operands.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/device/gemm_call.h"
#include "cuda/device/hopper/relay.h"

namespace ggm::cuda {

inline constexpr int kRightBoxes = 5;  // 8, 16, 32, 64, 128 rows

// Rows beyond the end of a group must read as zeros where K runs over the rows. The copy engine checks bounds of the whole
// tensor only, so the rows have three dimensions: with L rows from row f of the tensor, row i of the group is at (kRaggedRows -
// L + i, f + L, kRaggedRows). The first two have the stride of a row, and the first ends at kRaggedRows, just where the group
// ends; the last has the stride 2^34 - row, so that it takes the kRaggedRows = 2^30 rows back that are too many, modulo 2^64.
// The method is that of Triton's ragged descriptors (triton/tools/ragged_tma.py).
inline constexpr std::int32_t kRaggedRows = 1 << 30;

struct OperandMap {
  // Heights as above for a right operand with K inside. Else [0] has 64 of what lies outside, and for the right operand of
  // weight gradients [1] has half a step of K.
  CUtensorMap boxes[kRightBoxes];
  bool by_group = false;         // every group has a matrix of its own: the third coordinate
  bool from_first_row = false;   // groups divide the rows: rows are counted from desc.first_row
  bool ends_with_group = false;  // K runs over rows that groups divide
};

// D as the copy engine stores it. Used for results that need no more than one rounding, into rows that lie as those of the
// group do. Boxes of eight rows of two times 128 bytes, where rows are of whole 128 bytes: the dimensions are 128 bytes, how
// many times a row has those, rows, groups. Else boxes of eight rows of 128 bytes.
struct ResultMap {
  CUtensorMap box;
  bool used = false;
  bool paired = false;          // the first form
  bool wide = false;            // float32; else the type of the operands
  bool by_group = false;        // as in OperandMap
  bool from_first_row = false;  // as in OperandMap
};

struct HopperCall {
  OperandMap left_map, right_map;
  ResultMap result;
  bool dots_by_stages = false;  // rows of x for inner products go through the stages of operands (dot_stages.cuh)
  OperandMap dots_map;          // x, in sorted rows; the gathering kernel fetches it like A
  Relay relay;                  // of a kernel that relays rows
  GemmCall gemm;
};

}  // namespace ggm::cuda
