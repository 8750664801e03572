// Results of a turned product (gemm_wgmma.cuh): a thread's registers run along columns of D, so all results pass through shared
// memory. Rounded ones, a half of 64 columns at a time, as 16-byte pieces of rows; everything else in float32, 32 rows at a
// time, through the epilogue that all kernels share. Both give the same bits. The work of one warpgroup.
#pragma once

#include "cuda/device/epilogue/direct_rows.cuh"
#include "cuda/device/epilogue/epilogue.cuh"
#include "cuda/device/ptx/cp_async.cuh"
#include "cuda/device/ptx/mbarrier.cuh"
#include "cuda/device/ptx/stmatrix.cuh"

namespace ggm::cuda {

template <typename Element, typename Sums, int staging_bytes, bool only_plain>
class TurnedRows {
 public:
  static constexpr int kColumns = Sums::kN * 128 <= staging_bytes ? 64 : 32;         // rounded columns at a time
  static constexpr int kRows = staging_bytes >= 32 * kStagingPitch * 4 ? 32 : 16;  // float32 rows at a time
  static_assert(Sums::kN * kColumns * 2 <= staging_bytes && kRows * kStagingPitch * 4 <= staging_bytes);

  __device__ __forceinline__ TurnedRows(const GemmCall& call, const Tile& tile, const Sums& sums, char* staging, int barrier)
      : view_{call, tile, reinterpret_cast<float*>(staging)},
        sums_(sums),
        staging_(ptx::shared_address(staging)),
        barrier_(barrier),
        thread_(static_cast<int>(threadIdx.x) % kThreads) {}

  __device__ __forceinline__ void run() {
    if constexpr (only_plain) {
      store_plain();
    } else {
      if (is_plain())
        store_plain();
      else
        store_general();
    }
  }

 private:
  static constexpr int kThreads = 128, kWarps = 4;

  // Rounded results with at most a weight behind the rounding; rows of D aligned to 16 bytes.
  __device__ __forceinline__ bool is_plain() const {
    const Epilogue& e = view_.call.epilogue;
    if (e.d_type != kTypeOf<Element> || e.dots != nullptr || e.kind != EpilogueKind::store) return false;
    if (e.row_weight != nullptr && e.product_type != kTypeOf<Element>) return false;
    return goes_direct<Element, Sums::kN>(view_.call, view_.tile);
  }

  __device__ __forceinline__ void store_plain() const {
#pragma unroll
    for (int part = 0; part < 128 / kColumns; ++part) {
      ptx::named_sync(barrier_, kThreads);  // the staging has been read
      stage_columns(part);
      ptx::named_sync(barrier_, kThreads);
      store_columns(part);
    }
  }

  // The staging of rounded columns: [row][16-byte chunk], chunks swizzled so that eight rows of one chunk, and all chunks of
  // neighbouring rows, lie in different banks.
  static constexpr int kChunks = kColumns / 8, kPitch = kColumns * 2;
  __device__ __forceinline__ std::uint32_t chunk_at(int row, int chunk) const {
    return staging_ + row * kPitch + (chunk ^ row / (8 / kChunks) % kChunks) * 16;
  }

  // Columns kColumns * part and on, of all rows. A warp has 16 columns of each half of the tile.
  __device__ __forceinline__ void stage_columns(int part) const {
    constexpr int kWarpsAPart = kColumns / 16;
    const int lane = thread_ % 32, half = part * kColumns / 64;
    if (kWarpsAPart < kWarps && thread_ / 32 / kWarpsAPart != part % 2) return;
    const std::uint32_t to = chunk_at(lane / 16 * 8 + lane % 8, thread_ / 32 % kWarpsAPart * 2 + lane / 8 % 2);
#pragma unroll
    for (int j = 0; j < Sums::kFragmentsN; j += 2) {
      if (8 * j >= view_.tile.m_left) continue;
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 v = sums_.pair(2 * half + i % 2, j + i / 2);
        words[i] = pack(v.x, v.y, Element{});
      }
      ptx::stmatrix_x4_turned(to + j * 8 * kPitch, words);
    }
  }

  __device__ __forceinline__ void store_columns(int part) const {
    const Epilogue& e = view_.call.epilogue;
    const GroupDesc& d = view_.tile.desc;
    const int chunk = thread_ % kChunks, column = part * kColumns + chunk * 8;
    if (column >= view_.tile.n_left) return;
    Element* const to = static_cast<Element*>(d.d) + view_.tile.n0 + column;
#pragma unroll 3
    for (int row = thread_ / kChunks; row < view_.tile.m_left; row += kThreads / kChunks) {
      const std::int64_t r = view_.sorted_row(row);
      const bool live = view_.row_valid(r);
      if (!live && e.keep_invalid) continue;
      const std::int64_t at = e.d_rows != nullptr ? __ldg(e.d_rows + r) : view_.group_row(row);
      if (at < 0) continue;
      std::uint32_t words[4] = {0, 0, 0, 0};
      if (live) {
        ptx::load_shared_16(words, chunk_at(row, chunk));
        if (e.row_weight != nullptr) {
          const float weight = view_.row_weight(r);
#pragma unroll
          for (std::uint32_t& word : words) {
            const float2 v = unpack(word, Element{});
            word = pack(__fmul_rn(weight, v.x), __fmul_rn(weight, v.y), Element{});
          }
        }
      }
      *reinterpret_cast<uint4*>(to + at * d.ldd) = make_uint4(words[0], words[1], words[2], words[3]);
    }
  }

  __device__ __forceinline__ void store_general() {
    const Epilogue& e = view_.call.epilogue;
#pragma unroll
    for (int part = 0; part < (Sums::kN + kRows - 1) / kRows; ++part) {
      view_.row0 = part * kRows;
      if (view_.row0 >= view_.tile.m_left) return;
      ptx::named_sync(barrier_, kThreads);
      stage_part(part);
      ptx::named_sync(barrier_, kThreads);
      if (e.dots != nullptr) dot_rows<float, kRows, kWarps>(view_);
      if (e.kind == EpilogueKind::store) store_rows<float, kRows, kWarps>(view_);
      if (e.kind == EpilogueKind::ordered) ordered_rows<float, kRows, kWarps>(view_);
    }
  }

  __device__ __forceinline__ void stage_part(int part) const {
    float* staging = const_cast<float*>(view_.staging);
    const int row = thread_ % 4 * 2;
#pragma unroll
    for (int j = 0; j < kRows / 8; ++j) {
      if (part * kRows / 8 + j >= Sums::kFragmentsN) continue;
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        const float2 v = sums_.pair(u, part * (kRows / 8) + j);
        float* to = staging + (8 * j + row) * kStagingPitch + Sums::row(u, thread_);
        to[0] = v.x;
        to[kStagingPitch] = v.y;
      }
    }
  }

  TileView<float> view_;
  const Sums& sums_;
  std::uint32_t staging_;
  int barrier_, thread_;
};

}  // namespace ggm::cuda
