// The window of memory that rows of A pass through which come through a list (relay_feed.cuh), as the host describes it.
#pragma once

#include <cstdint>

#include "plan/wgmma_table.h"

namespace ggm::cuda {

// Row r of the list lies at r % rows. The first kRelayTail rows lie behind the last ones once more, so that the rows of a tile
// follow each other.
struct Relay {
  const char* from = nullptr;               // x, [., from_ld_bytes]
  char* window = nullptr;                   // [rows + kRelayTail, ld_bytes]
  std::int64_t from_ld_bytes = 0;           // a multiple of 16
  std::int32_t row_bytes = 0;               // a multiple of 16
  std::int32_t ld_bytes = 0;                // a multiple of 128: each row begins at a line of memory
  std::int32_t rows = 0;                    // a multiple of kRelayChunk
  std::int32_t pieces = 1;                  // of a row, of kRelayPieceBytes each
  std::int32_t batch_rows = 1;              // that a block copies at a time: a divisor of kRelayChunk
  std::int32_t part_rows = 0;               // of a group, that all left tiles are multiplied with before the next ones
  std::uint32_t left_tiles = 0;             // that every row is multiplied with
  const std::int32_t* row_count = nullptr;  // of the list, that groups have; made before the launch
  // For each chunk of the list, and zero before the launch:
  std::uint32_t* copied = nullptr;           // rows in the window, or that were
  std::uint32_t* used = nullptr;             // rows, once for each left tile, whose products are done
  unsigned long long* next_batch = nullptr;  // to be claimed by a warp that copies; one, likewise
};

}  // namespace ggm::cuda
