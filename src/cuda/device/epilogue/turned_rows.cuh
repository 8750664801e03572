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

template <typename Element, typename Sums, int staging_bytes>
class TurnedRows {
 public:
  static constexpr int kColumns = Sums::kN * 128 <= staging_bytes ? 64 : 32;       // rounded columns at a time
  static constexpr int kRows = staging_bytes >= 32 * kStagingPitch * 4 ? 32 : 16;  // float32 rows at a time
  static_assert(Sums::kN * kColumns * 2 <= staging_bytes && kRows * kStagingPitch * 4 <= staging_bytes);

  __device__ __forceinline__ TurnedRows(const GemmCall& call, const Tile& tile, const Sums& sums, char* staging, int barrier)
      : view_{call, tile, reinterpret_cast<float*>(staging)},
        sums_(sums),
        staging_(ptx::shared_address(staging)),
        barrier_(barrier),
        thread_(ptx::fresh_thread() % kThreads) {}

  __device__ __forceinline__ void run() {
    if (view_.call.epilogue.dots != nullptr) store_dots();
    if (is_plain())
      store_plain();
    else if (is_wide())
      store_wide();
    else if (view_.call.epilogue.kind != EpilogueKind::none)
      store_general();
  }

 private:
  static constexpr int kThreads = 128, kWarps = 4;

  // Rounded results with at most a weight behind the rounding; rows of D aligned to 16 bytes.
  __device__ __forceinline__ bool is_plain() const {
    const Epilogue& e = view_.call.epilogue;
    const GroupDesc& d = view_.tile.desc;
    if (e.kind != EpilogueKind::store || e.bias != nullptr || e.use_alpha || e.use_beta || e.add_to != nullptr) return false;
    if (e.d_type != kTypeOf<Element> || (e.product_type != Type::none && e.product_type != kTypeOf<Element>)) return false;
    if (e.row_weight != nullptr && e.product_type != kTypeOf<Element>) return false;
    if (d.ldd > 0x3fffffff || (view_.tile.n_left % 8 != 0 && view_.tile.n_left < kTileColumns)) return false;
    return ((reinterpret_cast<std::uint64_t>(d.d) | static_cast<std::uint64_t>(d.ldd) * 2) & 15) == 0;
  }

  // The sums as they are, in rows of D aligned to 16 bytes.
  __device__ __forceinline__ bool is_wide() const {
    const Epilogue& e = view_.call.epilogue;
    const GroupDesc& d = view_.tile.desc;
    if (e.kind != EpilogueKind::store || e.bias != nullptr || e.use_alpha || e.use_beta || e.add_to != nullptr) return false;
    if (e.d_type != Type::float32 || e.product_type != Type::none || e.row_weight != nullptr) return false;
    if (view_.tile.n_left % 4 != 0 && view_.tile.n_left < kTileColumns) return false;
    return ((reinterpret_cast<std::uint64_t>(d.d) | static_cast<std::uint64_t>(d.ldd) * 4) & 15) == 0;
  }

  __device__ __forceinline__ void store_plain() const {
    std::int32_t to[kMine];
    unsigned zeros = 0;
#pragma unroll
    for (int i = 0; i < kMine; ++i) find_row(i, &to[i], &zeros);
#pragma unroll
    for (int part = 0; part < 128 / kColumns; ++part) {
      ptx::named_sync(barrier_, kThreads);  // the staging has been read
      stage_columns(part);
      ptx::named_sync(barrier_, kThreads);
      if (view_.call.epilogue.row_weight != nullptr)
        store_columns<true>(part, to, zeros);
      else
        store_columns<false>(part, to, zeros);
    }
  }

  // The staging of rounded columns: [row][16-byte chunk], chunks swizzled so that eight rows of one chunk, and all chunks of
  // neighbouring rows, lie in different banks.
  static constexpr int kChunks = kColumns / 8, kPitch = kColumns * 2;
  static constexpr int kRowStep = kThreads / kChunks, kMine = (Sums::kN + kRowStep - 1) / kRowStep;  // rows of a thread
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

  // The memory row of D for the thread's row i, -1: not stored; and whether it gets zeros. All are looked up before the first
  // store, so that their latencies overlap.
  __device__ __forceinline__ void find_row(int i, std::int32_t* to, unsigned* zeros) const {
    const Epilogue& e = view_.call.epilogue;
    const int row = thread_ / kChunks + i * kRowStep;
    *to = -1;
    if (row >= view_.tile.m_left) return;
    const std::int64_t r = view_.sorted_row(row);
    const bool live = view_.row_valid(r);
    *zeros |= static_cast<unsigned>(!live) << i;
    if (live || !e.keep_invalid) *to = e.d_rows != nullptr ? __ldg(e.d_rows + r) : view_.tile.m0 + row;
  }

  template <bool weighted>
  __device__ __forceinline__ void store_columns(int part, const std::int32_t (&to)[kMine], unsigned zeros) const {
    constexpr int kBatch = 3;  // rows under way at once
    const int chunk = thread_ % kChunks, column = part * kColumns + chunk * 8;
    if (column >= view_.tile.n_left) return;
    const GroupDesc& d = view_.tile.desc;
    char* const base = static_cast<char*>(d.d) + (std::int64_t{view_.tile.n0} + column) * 2;
    const auto pitch = static_cast<std::uint32_t>(d.ldd * 2);
#pragma unroll
    for (int first = 0; first < kMine; first += kBatch) {
      std::uint32_t words[kBatch][4];
#pragma unroll
      for (int u = 0; u < kBatch; ++u)
        if (first + u < kMine)
          ptx::load_shared_16(words[u], chunk_at(min(thread_ / kChunks + (first + u) * kRowStep, Sums::kN - 1), chunk));
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        const int i = first + u;
        if (i >= kMine) continue;
        if (to[i] < 0) continue;
        if (weighted) weigh(i, words[u]);
        ptx::store_global_16(base + std::uint64_t{static_cast<std::uint32_t>(to[i])} * pitch, words[u]);
      }
    }
    if (zeros == 0) return;
    constexpr std::uint32_t kZero[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < kMine; ++i)
      if ((zeros >> i & 1) != 0 && to[i] >= 0)
        ptx::store_global_16(base + std::uint64_t{static_cast<std::uint32_t>(to[i])} * pitch, kZero);
  }

  __device__ __forceinline__ void weigh(int i, std::uint32_t (&words)[4]) const {
    const float weight = view_.row_weight(view_.sorted_row(thread_ / kChunks + i * kRowStep));
#pragma unroll
    for (std::uint32_t& word : words) {
      const float2 v = unpack(word, Element{});
      word = pack(__fmul_rn(weight, v.x), __fmul_rn(weight, v.y), Element{});
    }
  }

  // A warp stores whole rows of the tile, kBatch of them under way at once.
  __device__ __forceinline__ void store_wide() {
    constexpr int kBatch = 4;
    const Epilogue& e = view_.call.epilogue;
    const GroupDesc& d = view_.tile.desc;
    const int warp = thread_ / 32, column = thread_ % 32 * 4;
    float* const base = static_cast<float*>(d.d) + view_.tile.n0 + column;
#pragma unroll 1
    for (int part = 0; part * kRows < view_.tile.m_left; ++part) {
      view_.row0 = part * kRows;
      stage_rows(part);
      const int rows = view_.rows(kRows);
#pragma unroll 1
      for (int first = warp * kBatch; first < rows; first += kWarps * kBatch) {
        std::int64_t to[kBatch];
        float4 sums[kBatch];
#pragma unroll
        for (int u = 0; u < kBatch; ++u) {
          const std::int64_t r = view_.sorted_row(first + u);
          const bool exists = first + u < rows && column < view_.tile.n_left, live = exists && view_.row_valid(r);
          to[u] = -1;
          if (exists && (live || !e.keep_invalid))
            to[u] = e.d_rows != nullptr ? __ldg(e.d_rows + r) : view_.group_row(first + u);
          sums[u] = make_float4(0, 0, 0, 0);
          if (live) sums[u] = *reinterpret_cast<const float4*>(view_.staging + (first + u) * kStagingPitch + column);
        }
#pragma unroll
        for (int u = 0; u < kBatch; ++u)
          if (to[u] >= 0) *reinterpret_cast<float4*>(base + to[u] * d.ldd) = sums[u];
      }
    }
  }

  // Inner products, from float32 rows in shared memory, kRows at a time. The words of x for the next rows are under way
  // meanwhile.
  __device__ __forceinline__ void store_dots() {
    if (words_of_x(view_.call, view_.tile)) {
      store_dots_by_words();
    } else {
#pragma unroll 1
      for (int part = 0; part * kRows < view_.tile.m_left; ++part) {
        view_.row0 = part * kRows;
        stage_rows(part);
        dot_rows<float, kRows, kWarps>(view_);
      }
    }
    view_.row0 = 0;
  }

  __device__ __forceinline__ void store_dots_by_words() {
    constexpr int kAtOnce = 16, kPassesAPart = kRows / kAtOnce;
    const int lane = thread_ % 32, block = lane / 4 % 2 * kDotBlock, l = lane % 4, own = thread_ / 32 * 4 + lane / 8;
    const auto row_of = [&](int pass) {
      const TileView<float> whole{view_.call, view_.tile, view_.staging};
      return static_cast<std::int32_t>(dot_row(whole, pass * kAtOnce + own, view_.tile.m_left));
    };
    std::int32_t x_row = row_of(0), next_row = row_of(1);
    std::uint32_t words[kChainWords];
    load_chain(view_, block, l, x_row, words);
#pragma unroll 1
    for (int pass = 0; pass * kAtOnce < view_.tile.m_left; ++pass) {
      if (pass % kPassesAPart == 0) {
        view_.row0 = pass * kAtOnce;
        stage_rows(pass / kPassesAPart);
      }
      const int i = pass % kPassesAPart * kAtOnce + own;
      store_dot(view_, i, block, l, x_row >= 0, dot_words(view_, i, block, l, words));
      load_chain(view_, block, l, next_row, words);
      x_row = next_row;
      next_row = row_of(pass + 2);
    }
  }

  __device__ __forceinline__ void store_general() {
    const bool ordered = view_.call.epilogue.kind == EpilogueKind::ordered;
#pragma unroll 1
    for (int part = 0; part * kRows < view_.tile.m_left; ++part) {
      view_.row0 = part * kRows;
      stage_rows(part);
      if (ordered)
        ordered_rows<float, kRows, kWarps>(view_);
      else
        store_rows<float, kRows, kWarps>(view_);
    }
  }

  // Float32 rows kRows * part and on. The registers that hold them are other ones in each part, so each has code of its own;
  // what is done with the rows has not.
  __device__ __forceinline__ void stage_rows(int part) const {
    ptx::named_sync(barrier_, kThreads);  // the staging has been read
#pragma unroll
    for (int p = 0; p < (Sums::kN + kRows - 1) / kRows; ++p)
      if (p == part) stage_part(p);
    ptx::named_sync(barrier_, kThreads);
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
