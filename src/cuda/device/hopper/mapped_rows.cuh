// Results by the copy engine: sums rounded to the type of the operands, or as they are, into rows that lie in D as they do in
// the group. They pass through pieces of shared memory of eight rows by 256 bytes, swizzled as the map says, and the warpgroup
// goes on while the copy engine takes them from there. Same bits as the other ways out.
//
// NOTE: memory wants whole 256 bytes at a time: boxes of 128 bytes are written at 3.8 TB/s, these at 4.4 (docs/kernels.md).
#pragma once

#include "cuda/device/hopper/hopper_call.h"
#include "cuda/device/pair.cuh"
#include "cuda/device/ptx/cp_async.cuh"
#include "cuda/device/ptx/mbarrier.cuh"
#include "cuda/device/ptx/stmatrix.cuh"
#include "cuda/device/ptx/tma.cuh"

namespace ggm::cuda {

// The work of one warpgroup. Sums: a WgmmaTile.
template <typename Element, typename Sums, int staging_bytes>
class MappedRows {
 public:
  static constexpr int kPiece = 8 * 256, kPassBytes = 2 * kPiece;
  // The staging is a ring of parts, each of some passes that are staged and sent together: two where there are many.
  static constexpr int kBuffers = staging_bytes / kPassBytes;
  static constexpr int kPartPasses = kBuffers % 2 == 0 ? 2 : 1, kParts = kBuffers / kPartPasses;

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

  // NOTE: a form of its own for each kind of map: tests behind every piece made weight gradients of few rows 3 % slower.
  __device__ __forceinline__ void store() const {
    if (map_.paired)
      map_.wide ? store<true, true>() : store<false, true>();
    else
      map_.wide ? store<true, false>() : store<false, false>();
  }

 private:
  // Pass p has rows kRowsAPass * p and on of all 128 columns: two pieces one below the other, or of float32 one beside the
  // other. Registers run along columns of D, so every piece has parts of all warps.
  template <bool wide>
  static constexpr int kRowsAPass = wide ? 8 : 16;

  template <bool wide, bool paired>
  __device__ __forceinline__ void store() const {
    constexpr int kPasses = Sums::kN / kRowsAPass<wide>;
    const std::uint32_t to = staging_ + (wide ? wide_place<paired>() : narrow_place<paired>());
#pragma unroll
    for (int part = 0; part * kPartPasses < kPasses; ++part) {
      if (part * kPartPasses * kRowsAPass<wide> >= m_left_) continue;
      if (part >= kParts) {
        wait_part();
        ptx::named_sync(barrier_, 128);
      }
#pragma unroll
      for (int i = 0; i < kPartPasses; ++i) {
        const int pass = part * kPartPasses + i;
        if (pass >= kPasses || pass * kRowsAPass<wide> >= m_left_) continue;
        if constexpr (wide)
          stage_wide<paired>(pass, to, buffer_of(pass));
        else
          stage_narrow<paired>(pass, to + buffer_of(pass));
      }
      ptx::fence_async_proxy();
      ptx::named_sync(barrier_, 128);
      send<wide, paired>(part);
    }
    if (m_left_ % 8 != 0) store_end<wide, paired>();
  }

  // Where in the staging the rows of a pass lie.
  static constexpr __device__ __forceinline__ int buffer_of(int pass) { return pass % (kParts * kPartPasses) * kPassBytes; }

  // A piece is sixteen lines of 128 bytes, whose 16-byte chunks are swizzled by the line's number, as the copy engine does it
  // by address bits: [row][half] where the map is paired, else [half][row].
  template <bool paired>
  static __device__ __forceinline__ std::uint32_t chunk_at(unsigned row, unsigned half, unsigned chunk) {
    const unsigned line = paired ? 2 * row + half : 8 * half + row;
    return line * 128 + (chunk ^ line % 8) * 16;
  }

  // A warp has 16 columns of each half, of two times eight rows. A lane gives the address of a row of one of four 8x8 matrices.
  template <bool paired>
  __device__ __forceinline__ std::uint32_t narrow_place() const {
    return lane_ / 16 * kPiece + chunk_at<paired>(lane_ % 8, 0, warp_ * 2 + lane_ / 8 % 2);
  }
  template <bool paired>
  __device__ __forceinline__ void stage_narrow(int pass, std::uint32_t to) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 v = sums_.pair(2 * half + i % 2, 2 * pass + i / 2);
        words[i] = pack_here(v.x, v.y, Element{});
      }
      ptx::stmatrix_x4_turned(half == 0 ? to : paired ? (to ^ 16) + 128 : to + 1024, words);  // chunk_at of the half
    }
  }

  // A lane has two rows of columns 8 and 64 apart: other chunks, other pieces.
  template <bool paired>
  __device__ __forceinline__ std::uint32_t wide_place() const {
    return chunk_at<paired>(lane_ % 4 * 2, warp_ / 2, warp_ % 2 * 4 + lane_ / 16) + lane_ / 4 % 4 * 4;
  }
  template <bool paired>
  __device__ __forceinline__ void stage_wide(int pass, std::uint32_t to, int buffer) const {
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const float2 v = sums_.pair(u, pass);
#pragma unroll
      for (int i = 0; i < 2; ++i) {  // the row and the next: chunk_at has two lines more, or one, to swizzle by
        constexpr std::uint32_t kSwap = paired ? 32 : 16, kLines = paired ? 256 : 128;
        ptx::store_shared_4((to ^ u % 2 * 32 ^ i * kSwap) + (buffer + u / 2 * kPiece + i * kLines), i == 0 ? v.x : v.y);
      }
    }
  }

  // The warps send the pieces of a part, but for those with rows behind the group's end. All count, also what was not sent, so
  // that wait_part() may.
  template <bool wide, bool paired>
  __device__ __forceinline__ void send(int part) const {
    const std::uint32_t pieces = staging_ + buffer_of(part * kPartPasses);
    if constexpr (paired) {
      if (warp_ < 2 * kPartPasses) send_box<wide, paired>(part, warp_, 0, pieces + warp_ * kPiece);
    } else {
#pragma unroll
      for (int i = 0; i < kPartPasses; ++i)
        send_box<wide, paired>(part, 2 * i + warp_ / 2, warp_ % 2, pieces + 2 * i * kPiece + warp_ * (kPiece / 2));
    }
    __syncwarp();
    ptx::commit_boxes();
  }
  template <bool wide, bool paired>
  __device__ __forceinline__ void send_box(int part, unsigned piece, unsigned half, std::uint32_t from) const {
    constexpr unsigned kColumns = wide ? 32 : 64;  // 128 bytes
    const int row =
        part * kPartPasses * kRowsAPass<wide> + static_cast<int>(piece / 2 * kRowsAPass<wide> + (wide ? 0 : piece % 2 * 8));
    const int column = static_cast<int>((wide ? piece % 2 * 64 : 0) + half * kColumns);
    if (row + 8 > m_left_ || column >= n_left_ || !ptx::elect_one()) return;
    if constexpr (paired)
      ptx::store_box(&map_.box, {{0, static_cast<int>(static_cast<unsigned>(column_ + column) / kColumns), row_ + row, group_}},
                     from);
    else
      ptx::store_box(&map_.box, {{column_ + column, row_ + row, group_, 0}}, from);
  }
  // Until the last part but kParts that this warp has sent has been read.
  static __device__ __forceinline__ void wait_part() { ptx::wait_boxes_read<kParts - 1>(); }

  // The rows behind the last whole eight of the group, from where the last pass has put them: two rows of a piece a warp.
  template <bool wide, bool paired>
  __device__ __forceinline__ void store_end() const {
    constexpr int kBytes = wide ? 4 : 2;
    const int pass = (m_left_ - 1) / kRowsAPass<wide>, first = m_left_ / 8 * 8;
    const unsigned line = warp_ * 2 + lane_ / 16, half = lane_ / 8 % 2, chunk = lane_ % 8;
    const int row = first + static_cast<int>(line);
    if (row >= m_left_) return;
    const std::uint32_t from = staging_ + buffer_of(pass) + chunk_at<paired>(line, half, chunk);
    char* const to = static_cast<char*>(tile_.desc.d) + (std::int64_t{tile_.m0} + row) * tile_.desc.ldd * kBytes;
#pragma unroll
    for (int piece = 0; piece < (wide ? 2 : 1); ++piece) {
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
