// Rows of A that come through a list, relayed: a warp of each block copies them one after the other, each once, in the order of
// the list, into a window of memory. From there the copy engine fetches them for every tile, like rows in order. A row's place
// is used again when the products of all tiles with the row that had it are done.
//
// Two counters for each kRelayChunk rows of the list tie copies and tiles together, across all blocks:
//   copied  rows that are in the window: a tile waits until those of all its rows are
//   used    rows of tiles whose products are done: a row is copied when those of the row before in its place are
// NOTE: nobody waits for ever. Tiles are claimed in ascending order and so are rows, and those that a row waits for belong to
// tiles with lower numbers than any that wait for the row: tiles go through a group in parts of `part_rows` rows, which fit
// into the window beside the chunks that they begin and end in (book_relay in src/plan/moe_plan.cpp).
#pragma once

#include "cuda/device/hopper/hopper_call.h"
#include "cuda/device/hopper/tile_feed.cuh"
#include "cuda/device/ptx/counter.cuh"
#include "cuda/device/ptx/mbarrier.cuh"

namespace ggm::cuda {

// Rows of the list in its chunk `chunk`, of `total`.
__device__ __forceinline__ std::uint32_t rows_of_chunk(std::int32_t chunk, std::int32_t total) {
  return static_cast<std::uint32_t>(min(kRelayChunk, total - chunk * kRelayChunk));
}

// The right operand by the copy engine, out of the window.
template <typename Shared>
class RelayedFeed : public RightFeed<Shared, false> {
 public:
  __device__ __forceinline__ RelayedFeed(const HopperCall& call, Shared& shared)
      : RightFeed<Shared, false>(call.right_map, call.dots_map, shared), relay_(call.relay), total_(*call.relay.row_count) {}

  __device__ __forceinline__ void begin(const TileNotice& notice) {
    const std::int32_t first = ptx::uniform(notice.tiles[0].desc.first_row) + ptx::uniform(notice.right);
    const std::int32_t rows = ptx::uniform(notice.tiles[0].m_left);
    if (rows > 0) {
      const std::int32_t end = (first + rows - 1) / kRelayChunk;
      for (std::int32_t chunk = first / kRelayChunk; chunk <= end; ++chunk)
        ptx::wait_for_count(relay_.copied + chunk, rows_of_chunk(chunk, total_));
      ptx::fence_async_proxy_global();
    }
    this->begin_at(notice, first % relay_.rows);
  }

 private:
  const Relay& relay_;
  std::int32_t total_;
};

// The products of a tile are done; the work of one thread.
__device__ __forceinline__ void count_used(const Relay& relay, const Tile& tile) {
  if (tile.m_left <= 0 || tile.n_left <= 0) return;
  std::int32_t first = tile.desc.first_row + tile.m0;
  const std::int32_t end = first + tile.m_left;
  while (first < end) {
    const std::int32_t next = min(end, (first / kRelayChunk + 1) * kRelayChunk);
    ptx::add_released(relay.used + first / kRelayChunk, next - first);
    first = next;
  }
}

// The work of the relaying warp: batches of rows, each lane a piece of a row, through shared memory, by the copy engine both
// ways. A batch is claimed while the one before it is looked up in the list and the one before that is copied.
template <typename Shared>
__device__ __forceinline__ void copy_to_window(const HopperCall& call, Shared& shared) {
  const Relay& relay = call.relay;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int row = lane / relay.pieces, offset = lane % relay.pieces * kRelayPieceBytes;
  const unsigned bytes = min(relay.row_bytes - offset, kRelayPieceBytes);
  const std::uint32_t full = ptx::shared_address(&shared.pieces_full);
  const std::uint32_t piece = ptx::shared_address(shared.pieces) + lane % kRelayPieces * kRelayPieceBytes;
  const std::int32_t total = *relay.row_count;
  unsigned long long taken = 0;
  const auto take = [&] { ptx::add_if(lane == 0, relay.next_batch, 1, &taken); };
  const auto claimed = [&] {
    const auto batch = static_cast<std::int64_t>(__shfl_sync(0xffffffffu, taken, 0));
    return static_cast<std::int32_t>(min(batch * relay.batch_rows, std::int64_t{total}));
  };
  const auto look_up = [&](std::int32_t first) {
    return row < relay.batch_rows && first + row < total ? __ldg(call.gemm.a_rows + first + row) : -1;
  };
  take();
  std::int32_t first = claimed(), token = look_up(first);
  take();
  for (unsigned parity = 0; first < total; parity ^= 1) {
    const std::int32_t next = claimed(), next_token = look_up(next);
    take();
    // Rows that had these places lie in one chunk, as it has whole batches and the window whole chunks.
    if (first >= relay.rows)
      ptx::wait_for_count(relay.used + (first - relay.rows) / kRelayChunk, kRelayChunk * relay.left_tiles);
    ptx::fence_async_proxy_global();
    const bool some = token >= 0;  // else it is nobody's row, whose result is not stored, or behind the batch
    const std::int32_t place = first % relay.rows + row;
    ptx::arrive_expecting(full, some ? bytes : 0);
    if (some) ptx::copy_bytes(piece, relay.from + token * relay.from_ld_bytes + offset, bytes, full);
    ptx::wait(full, parity);
    char* to = relay.window + std::int64_t{place} * relay.ld_bytes + offset;
    if (some) ptx::store_bytes(to, piece, bytes);
    if (some && place < kRelayTail) ptx::store_bytes(to + std::int64_t{relay.rows} * relay.ld_bytes, piece, bytes);
    ptx::commit_boxes();
    ptx::wait_boxes_written<0>();
    ptx::fence_async_proxy_global();
    __syncwarp();
    if (lane == 0) ptx::add_released(relay.copied + first / kRelayChunk, min(relay.batch_rows, total - first));
    first = next;
    token = next_token;
  }
}

}  // namespace ggm::cuda
