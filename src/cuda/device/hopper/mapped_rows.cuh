// Results by the copy engine: sums rounded to the type of the operands, or as they are, into rows that lie in D as they do in
// the group. They pass through pieces of shared memory of eight rows by 256 bytes, swizzled as the map says, and the warpgroup
// goes on while the copy engine takes them from there. Same bits as the other ways out.
//
// NOTE: memory wants whole 256 bytes at a time: boxes of 128 bytes are written at 3.8 TB/s, these at 4.4 (docs/kernels.md).
#pragma once

#include "cuda/device/epilogue/direct_rows.cuh"
#include "cuda/device/hopper/hopper_call.h"
#include "cuda/device/ptx/cp_async.cuh"
#include "cuda/device/ptx/mbarrier.cuh"
#include "cuda/device/ptx/stmatrix.cuh"
#include "cuda/device/ptx/tma.cuh"

namespace ggm::cuda {

// The work of one warpgroup. Sums: a WgmmaTile.
template <typename Element, typename Sums, int staging_bytes>
class MappedRows {
 public:
  static constexpr int kPiece = 8 * 256;  // bytes
  static constexpr int kPieces = 2;       // that the warpgroup fills at a time; the first two warps send one each
  static constexpr int kBuffers = staging_bytes / (kPieces * kPiece);

  // NOTE: what the passes need of the tile is read once, and in a form that shows that it is the same in all lanes: behind
  // every store to shared memory it would be read again, and a box whose place may differ between lanes is sent in a loop over
  // them.
  __device__ __forceinline__ MappedRows(const HopperCall& call, const Tile& tile, const Sums& sums, char* staging, int barrier)
      : map_(call.result),
        tile_(tile),
        sums_(sums),
        m_left_(ptx::uniform(tile.m_left)),
        n_left_(ptx::uniform(tile.n_left)),
        column_(ptx::uniform(tile.n0)),
        row_(ptx::uniform(tile.m0 + (call.result.from_first_row ? tile.desc.first_row : 0))),
        group_(ptx::uniform(call.result.by_group ? tile.group : 0)),
        staging_(ptx::uniform(static_cast<int>(ptx::shared_address(staging)))),
        barrier_(barrier),
        lane_(ptx::fresh_thread() % 32u),
        warp_(ptx::uniform(ptx::fresh_thread() / 32 % 4)) {}

  __device__ __forceinline__ void store() const {
    if (map_.wide)
      store<true>();
    else
      store<false>();
  }

 private:
  // Pass p has rows kRowsAPass * p and on of all 128 columns: two pieces one below the other, or of float32 one beside the
  // other. Registers run along columns of D, so every piece has parts of all warps.
  template <bool wide>
  static constexpr int kRowsAPass = wide ? 8 : 16;

  template <bool wide>
  __device__ __forceinline__ void store() const {
    const std::uint32_t to = staging_ + (wide ? wide_place() : narrow_place());
#pragma unroll
    for (int pass = 0; pass < Sums::kN / kRowsAPass<wide>; ++pass) {
      if (pass * kRowsAPass<wide> >= m_left_) continue;
      const int buffer = pass % kBuffers * kPieces * kPiece;
      if (pass >= kBuffers) {
        wait_buffer();
        ptx::named_sync(barrier_, 128);
      }
      if constexpr (wide)
        stage_wide(pass, to, buffer);
      else
        stage_narrow(pass, to + buffer);
      ptx::fence_async_proxy();
      ptx::named_sync(barrier_, 128);
      send<wide>(pass * kRowsAPass<wide>, staging_ + buffer);
    }
    if (m_left_ % 8 != 0) store_end<wide>();
  }

  // A piece is [row][128 bytes, twice], and 16-byte chunks are swizzled by the number of their 128 bytes, as the copy engine
  // does it by address bits.
  static __device__ __forceinline__ std::uint32_t chunk_at(unsigned row, unsigned half, unsigned chunk) {
    return row * 256 + half * 128 + (chunk ^ (2 * row + half) % 8) * 16;
  }

  // A warp has 16 columns of each half, of two times eight rows. A lane gives the address of a row of one of four 8x8 matrices.
  __device__ __forceinline__ std::uint32_t narrow_place() const {
    return lane_ / 16 * kPiece + chunk_at(lane_ % 8, 0, warp_ * 2 + lane_ / 8 % 2);
  }
  __device__ __forceinline__ void stage_narrow(int pass, std::uint32_t to) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 v = sums_.pair(2 * half + i % 2, 2 * pass + i / 2);
        words[i] = pack_here(v.x, v.y, Element{});
      }
      ptx::stmatrix_x4_turned((to ^ half * 16) + half * 128, words);  // chunk_at of the half
    }
  }

  // A lane has two rows of columns 8 and 64 apart: other chunks, other pieces.
  __device__ __forceinline__ std::uint32_t wide_place() const {
    return chunk_at(lane_ % 4 * 2, warp_ / 2, warp_ % 2 * 4 + lane_ / 16) + lane_ / 4 % 4 * 4;
  }
  __device__ __forceinline__ void stage_wide(int pass, std::uint32_t to, int buffer) const {
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const float2 v = sums_.pair(u, pass);
#pragma unroll
      for (int i = 0; i < 2; ++i)  // the next row: chunk_at has 2 more to swizzle by
        ptx::store_shared_4((to ^ (u % 2 ^ i) * 32) + (buffer + u / 2 * kPiece + i * 256), i == 0 ? v.x : v.y);
    }
  }

  // One lane sends the piece of a warp, unless it has rows behind the group's end. All warps count, also what was not sent, so
  // that wait_buffer() may.
  template <bool wide>
  __device__ __forceinline__ void send(int row, std::uint32_t pieces) const {
    constexpr int kColumns = wide ? 32 : 64;  // 128 bytes
    const int piece = static_cast<int>(warp_), column = wide ? piece * 64 : 0;
    row += wide ? 0 : piece * 8;
    if (piece < kPieces && row + 8 <= m_left_ && column < n_left_ && ptx::elect_one())
      ptx::store_box(&map_.box, {{0, (column_ + column) / kColumns, row_ + row, group_}}, pieces + piece * kPiece);
    __syncwarp();
    ptx::commit_boxes();
  }
  // Until the last piece but kBuffers that this warp has sent has been read.
  static __device__ __forceinline__ void wait_buffer() { ptx::wait_boxes_read<kBuffers - 1>(); }

  // The rows behind the last whole eight of the group, from where the last pass has put them: two rows of a piece a warp.
  template <bool wide>
  __device__ __forceinline__ void store_end() const {
    constexpr int kBytes = wide ? 4 : 2;
    const int pass = (m_left_ - 1) / kRowsAPass<wide>, first = m_left_ / 8 * 8;
    const unsigned line = warp_ * 2 + lane_ / 16, half = lane_ / 8 % 2, chunk = lane_ % 8;
    const int row = first + static_cast<int>(line);
    if (row >= m_left_) return;
    const std::uint32_t from = staging_ + pass % kBuffers * (kPieces * kPiece) + chunk_at(line, half, chunk);
    char* const to = static_cast<char*>(tile_.desc.d) + (std::int64_t{tile_.m0} + row) * tile_.desc.ldd * kBytes;
#pragma unroll
    for (int piece = 0; piece < (wide ? kPieces : 1); ++piece) {
      const int column = (piece * 256 + static_cast<int>(half * 128 + chunk * 16)) / kBytes;
      if (column >= n_left_) continue;
      std::uint32_t words[4];
      ptx::load_shared_16(words, from + (wide ? piece : first / 8 % 2) * kPiece);
      ptx::store_global_16(to + (std::int64_t{tile_.n0} + column) * kBytes, words);
    }
  }

  const ResultMap& map_;
  const Tile& tile_;
  const Sums& sums_;
  int m_left_, n_left_;       // rows and columns of the tile
  int column_, row_, group_;  // its corner in the map
  std::uint32_t staging_;
  int barrier_;
  unsigned lane_, warp_;
};

}  // namespace ggm::cuda
