// Results by the copy engine: sums rounded to the type of the operands, or as they are, into rows that lie in D as they do in
// the group. They pass through pieces of shared memory of eight rows by 128 bytes, swizzled as the map says, and the warpgroup
// goes on while the copy engine takes them from there. Same bits as the other ways out.
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
  static constexpr int kPiece = 8 * 128;  // bytes
  static constexpr int kPieces = 4;       // that the warpgroup fills at a time, one for each warp to send
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

  // Registers run along columns of D: every piece has parts of all warps.
  __device__ __forceinline__ void store_turned() const {
    if (map_.wide)
      store_turned<true>();
    else
      store_turned<false>();
  }

  // Registers run along rows of D: a warp has pieces of its own.
  __device__ __forceinline__ void store_straight() const {
    if (map_.wide)
      store_straight<true>();
    else
      store_straight<false>();
  }

 private:
  // Columns of a piece.
  template <bool wide>
  static constexpr int kColumns = wide ? 32 : 64;

  // --- turned: pass p has rows kRowsAPass * p and on of all 128 columns

  template <bool wide>
  static constexpr int kRowsAPass = wide ? 8 : 16;
  // First column and row of the piece, of those of one pass, that the warp sends.
  template <bool wide>
  __device__ __forceinline__ int own_column() const {
    return static_cast<int>(wide ? warp_ * 32 : warp_ / 2 * 64);
  }
  template <bool wide>
  __device__ __forceinline__ int own_row() const {
    return static_cast<int>(wide ? 0 : warp_ % 2 * 8);
  }

  template <bool wide>
  __device__ __forceinline__ void store_turned() const {
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
      const int row = pass * kRowsAPass<wide> + own_row<wide>();
      send<wide>(row, own_column<wide>(), row + 8 <= m_left_, staging_ + buffer + warp_ * kPiece);
    }
    store_end<wide>();
  }

  // Two halves of 64 columns, each two blocks of eight rows; a warp has 16 columns of each half. A lane gives the address of a
  // row of one of four 8x8 matrices.
  __device__ __forceinline__ std::uint32_t narrow_place() const {
    const unsigned row = lane_ % 8, chunk = warp_ * 2 + lane_ / 8 % 2;
    return lane_ / 16 * kPiece + row * 128 + (chunk ^ row) * 16;
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
      ptx::stmatrix_x4_turned(to + half * 2 * kPiece, words);
    }
  }

  // Eight rows of four pieces of 32 columns. A lane has two rows of columns 8 and 64 apart: other chunks of the piece, other
  // pieces.
  __device__ __forceinline__ std::uint32_t wide_place() const {
    const unsigned row = lane_ % 4 * 2, chunk = warp_ % 2 * 4 + lane_ / 16;
    return warp_ / 2 * kPiece + row * 128 + (chunk ^ row) * 16 + lane_ / 4 % 4 * 4;
  }
  __device__ __forceinline__ void stage_wide(int pass, std::uint32_t to, int buffer) const {
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const float2 v = sums_.pair(u, pass);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        ptx::store_shared_4((to ^ (u % 2 * 32 + i * 16)) + (buffer + u / 2 * 2 * kPiece + i * 128), i == 0 ? v.x : v.y);
    }
  }

  // The rows behind the last whole eight of the group, from where the last pass has put them.
  template <bool wide>
  __device__ __forceinline__ void store_end() const {
    const int pass = (m_left_ - 1) / kRowsAPass<wide>, row = pass * kRowsAPass<wide> + own_row<wide>();
    const int rows = m_left_ - row;
    if (rows > 0 && rows < 8)
      store_lines<wide>(staging_ + (pass % kBuffers * kPieces + warp_) * kPiece, row, own_column<wide>(), rows);
  }

  // --- straight: a piece is eight rows of the warp, kBuffers of which take turns

  template <bool wide>
  __device__ __forceinline__ void store_straight() const {
    const bool ends = column_ + n_left_ >= ptx::uniform(tile_.desc.n);  // a box may reach beyond it
    static_assert(Sums::kN % 64 == 0, "whole pieces");
    const unsigned line = lane_ % 8;
    const std::uint32_t own = staging_ + warp_ * (kBuffers * kPiece);
    constexpr int kBlocks = Sums::kN / kColumns<wide>, kFragments = kColumns<wide> / 8;
    std::uint32_t piece = own;
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const int row = u / 2 * 64 + static_cast<int>(warp_) * 16 + u % 2 * 8;  // Sums::row() of lane 0
      if (row >= m_left_) continue;
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        if (block * kColumns<wide> >= n_left_) continue;
        wait_buffer();
        __syncwarp();
#pragma unroll
        for (int j = 0; j < kFragments; ++j) {
          if constexpr (wide) {
            const float2 v = sums_.pair(u, block * kFragments + j);
            ptx::store_shared_8(piece + lane_ / 4 * 128 + ((2 * j + lane_ % 4 / 2) ^ lane_ / 4) * 16 + lane_ % 2 * 8, v);
          } else if (j % 4 == 0) {
            std::uint32_t words[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              const float2 v = sums_.pair(u, block * kFragments + j + i);
              words[i] = pack_here(v.x, v.y, Element{});
            }
            ptx::stmatrix_x4(piece + line * 128 + ((j + lane_ / 8) ^ line) * 16, words);
          }
        }
        const int column = block * kColumns<wide>;
        const bool whole = ends || column + kColumns<wide> <= n_left_;  // else it would reach into the next tile
        ptx::fence_async_proxy();
        __syncwarp();
        if (!whole) store_lines<wide>(piece, row, column, m_left_ - row);
        send<wide>(row, column, whole, piece);
        piece = piece == own + (kBuffers - 1) * kPiece ? own : piece + kPiece;
      }
    }
  }

  // What of a piece lies in the tile and in its first `rows` lines, stored by the lanes.
  template <bool wide>
  __device__ __forceinline__ void store_lines(std::uint32_t piece, int row, int column, int rows) const {
    constexpr int kBytes = wide ? 4 : 2;
    column += static_cast<int>(lane_ % 8) * 16 / kBytes;
    char* const to = static_cast<char*>(tile_.desc.d) + (std::int64_t{tile_.n0} + column) * kBytes;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int line = static_cast<int>(lane_ / 8) + 4 * i;
      if (line >= rows || column >= n_left_) continue;
      std::uint32_t words[4];
      ptx::load_shared_16(words, piece + line * 128 + (lane_ % 8 ^ line) * 16);
      ptx::store_global_16(to + (std::int64_t{tile_.m0} + row + line) * tile_.desc.ldd * kBytes, words);
    }
  }

  // One lane sends the pieces of a warp. All count, also what was not sent, so that wait_buffer() may.
  template <bool wide>
  __device__ __forceinline__ void send(int row, int column, bool whole, std::uint32_t piece) const {
    if (whole && column < n_left_ && ptx::elect_one())
      ptx::store_box(&map_.box, {{column_ + column, row_ + row, group_, 0}}, piece);
    __syncwarp();
    ptx::commit_boxes();
  }
  // Until the last piece but kBuffers that this warp has sent has been read.
  static __device__ __forceinline__ void wait_buffer() { ptx::wait_boxes_read<kBuffers - 1>(); }

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
