// The short way out of a tensor-core kernel: sums go from registers to memory without a stop in shared memory, so that the
// copies of the next tile are under way meanwhile. For the plain forms of EpilogueKind::store (and inner products): no bias,
// alpha, beta or old values; rows of D aligned to what a thread stores. Everything else takes run_epilogue. Both give the same
// bits.
//
// A quad of lanes holds, of each row and 8 columns, a pair a lane (ptx/mma.cuh). 16-bit results: the quad turns four such
// pieces around, so that each lane stores 8 neighbours in 16 bytes and a warp's store covers 64 contiguous bytes of each of
// eight rows.
#pragma once

#include "cuda/device/epilogue/dot_rows.cuh"
#include "cuda/device/load/swizzle.h"
#include "cuda/device/pair.cuh"
#include "cuda/device/ptx/cp_async.cuh"
#include "cuda/device/ptx/thread.cuh"

namespace ggm::cuda {

template <typename Element>
inline constexpr Type kTypeOf = Type::none;
template <>
inline constexpr Type kTypeOf<__nv_bfloat16> = Type::bfloat16;
template <>
inline constexpr Type kTypeOf<__half> = Type::float16;

// Word j of quad lane t becomes word t of quad lane j: two exchanges, first of odd with even lanes, then of pairs.
__device__ __forceinline__ void transpose_quad(std::uint32_t (&words)[4], int thread) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool upper = (thread & bit) != 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if ((j & bit) != 0) continue;
      const std::uint32_t mine = upper ? words[j] : words[j | bit];
      const std::uint32_t theirs = __shfl_xor_sync(0xffffffffu, mine, bit);
      (upper ? words[j] : words[j | bit]) = theirs;
    }
  }
}

// Whether all rows have values, and no weights.
__device__ __forceinline__ bool rounds_all(const GemmCall& call) {
  return call.epilogue.row_weight == nullptr && call.all_rows_stored();
}

// Whether this tile may go the short way. The same for all threads. The columns that are left must be whole stores of a thread;
// a whole tile is, whatever follows it. `anywhere`: rows of D may start anywhere if nothing but a rounding is asked.
template <typename Element, int warp_columns, bool anywhere = false>
__device__ __forceinline__ bool goes_direct(const GemmCall& call, const Tile& tile) {
  const Epilogue& e = call.epilogue;
  if (e.kind == EpilogueKind::ordered) return false;
  constexpr int kTile = warp_columns > kTileColumns ? warp_columns : kTileColumns;
  const auto whole = [&](int columns) { return tile.n_left >= kTile || tile.n_left % columns == 0; };
  if (e.dots != nullptr) {
    const std::uint64_t bits = reinterpret_cast<std::uint64_t>(e.dot_x) | static_cast<std::uint64_t>(e.dot_x_ld) * 2;
    if (warp_columns != kDotBlock || (bits & 3) != 0 || !whole(2)) return false;
  }
  if (e.kind == EpilogueKind::none) return true;
  if (!e.only_rounds(kTypeOf<Element>)) return false;
  const bool narrow = e.d_type == kTypeOf<Element>;
  if (!narrow && e.d_type != Type::float32) return false;
  if (anywhere && narrow && whole(8) && e.dots == nullptr && e.d_rows == nullptr && rounds_all(call)) return true;
  const std::uint64_t bits =
      reinterpret_cast<std::uint64_t>(tile.desc.d) | static_cast<std::uint64_t>(tile.desc.ldd) * (narrow ? 2 : 4);
  return narrow ? (bits & 15) == 0 && whole(8) : (bits & 7) == 0 && whole(2);
}

// The warp's part of the tile; `Sums` is a WarpTile. `anywhere`: see goes_direct.
template <typename Element, typename Sums, bool anywhere = false>
class DirectRows {
 public:
  // `free`: shared memory of kFreeBytes that nothing else uses meanwhile, aligned to 128 bytes.
  __device__ __forceinline__ DirectRows(const GemmCall& call, const Tile& tile, const Sums& sums, std::uint32_t free)
      : view_{call, tile, nullptr}, sums_(sums), thread_(ptx::fresh_thread()), free_(free) {}

  __device__ __forceinline__ void run() const {
    const Epilogue& e = view_.call.epilogue;
    if constexpr (Sums::kN == kDotBlock) {
      if (e.dots != nullptr) store_dots();
    }
    if (e.kind != EpilogueKind::store) return;
    if constexpr (anywhere) {
      if (e.d_type == kTypeOf<Element> && e.dots == nullptr && e.d_rows == nullptr && rounds_all(view_.call))
        return store_anywhere();
    }
    if constexpr (kTurned) {
      if (e.d_type == kTypeOf<Element> && e.d_rows == nullptr && rounds_all(view_.call)) return store_in_order();
    }
    // Looked up for all rows before the first store, so that their latencies overlap. Rows in order of which none is left out
    // need none: some 25 instructions and four branches a row, which wait for each other.
    std::int32_t to[kRows];
    unsigned valid = 0;
    if (e.d_rows == nullptr && view_.call.all_rows_stored()) {
      valid = ~0u;
#pragma unroll
      for (int u = 0; u < kRows; ++u) {
        const int row = Sums::row(u, thread_);
        to[u] = row < view_.tile.m_left ? view_.tile.m0 + row : -1;
      }
    } else {
#pragma unroll
      for (int u = 0; u < kRows; ++u) find_row(u, &to[u], &valid);
    }
    if (e.d_type == kTypeOf<Element> && rounds_all(view_.call)) return store_rounded(to);
#pragma unroll
    for (int u = 0; u < kRows; ++u) {
      if (e.d_type == Type::float32)
        store_wide(u, to[u], valid >> u & 1);
      else
        store_narrow(u, to[u], valid >> u & 1);
    }
  }

 private:
  static constexpr int kRows = 2 * Sums::kFragmentsM;  // of a lane: row 8u + lane / 4 of the warp's
  static_assert(Sums::kFragmentsN % 4 == 0, "a quad turns four pieces of 8 columns around");

  // Memory row of D, -1: not stored; and whether it has a value or reads as zeros.
  __device__ __forceinline__ void find_row(int u, std::int32_t* to, unsigned* valid) const {
    const Epilogue& e = view_.call.epilogue;
    const int row = Sums::row(u, thread_);
    const std::int64_t r = view_.sorted_row(row);
    *to = -1;
    if (row >= view_.tile.m_left) return;
    const bool live = view_.row_valid(r);
    *valid |= static_cast<unsigned>(live) << u;
    if (live || !e.keep_invalid) *to = e.d_rows != nullptr ? __ldg(e.d_rows + r) : view_.tile.m0 + row;
  }

  // The pair of piece j in row u, as GemmCall's epilogue says.
  __device__ __forceinline__ float2 value(int u, int j, bool valid, float weight) const {
    const Epilogue& e = view_.call.epilogue;
    float2 v = valid ? sums_.pair(u, j) : make_float2(0, 0);
    if (e.product_type != Type::none) v = unpack(pack(v.x, v.y, Element{}), Element{});
    if (e.row_weight != nullptr) v = make_float2(__fmul_rn(weight, v.x), __fmul_rn(weight, v.y));
    return v;
  }

  __device__ __forceinline__ float weight(int u, std::int32_t to, bool valid) const {
    return to >= 0 && valid ? view_.row_weight(view_.sorted_row(Sums::row(u, thread_))) : 0.0f;
  }

  __device__ __forceinline__ void store_narrow(int u, std::int32_t to, bool valid) const {
    const GroupDesc& d = view_.tile.desc;
    const float w = weight(u, to, valid);
    const int column = Sums::column(thread_) + thread_ % 4 * 8;
    Element* row = static_cast<Element*>(d.d) + std::int64_t{to} * d.ldd + view_.tile.n0 + column;
#pragma unroll
    for (int j = 0; j < Sums::kFragmentsN; j += 4) {
      std::uint32_t words[4];
#pragma unroll
      for (int p = 0; p < 4; ++p) {
        const float2 v = value(u, j + p, valid, w);
        words[p] = pack(v.x, v.y, Element{});
      }
      transpose_quad(words, thread_);
      if (to >= 0 && column + 8 * j < view_.tile.n_left)
        *reinterpret_cast<uint4*>(row + 8 * j) = make_uint4(words[0], words[1], words[2], words[3]);
    }
  }

  // store_narrow() of rows that all have values, and no weights: little more than the products' roundings. The same code for
  // everything is four times as long, and a tile passes through it once.
  __device__ __forceinline__ void store_rounded(const std::int32_t (&to)[kRows]) const {
    const GroupDesc& d = view_.tile.desc;
    const int column = Sums::column(thread_) + thread_ % 4 * 8;
    Element* base = static_cast<Element*>(d.d) + view_.tile.n0 + column;
    const std::int64_t ldd = d.ldd;
    const int left = view_.tile.n_left - column;
#pragma unroll
    for (int u = 0; u < kRows; ++u) {
#pragma unroll
      for (int j = 0; j < Sums::kFragmentsN; j += 4) {
        std::uint32_t words[4];
#pragma unroll
        for (int p = 0; p < 4; ++p) {
          const float2 v = sums_.pair(u, j + p);
          words[p] = pack(v.x, v.y, Element{});
        }
        transpose_quad(words, thread_);
        if (to[u] >= 0 && 8 * j < left)
          *reinterpret_cast<uint4*>(base + to[u] * ldd + 8 * j) = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  }

  // store_rounded() to rows in order, by way of shared memory: half as many instructions as to turn pieces around between
  // lanes, and a warp's store covers 128 contiguous bytes of each of four rows. Chunks of 16 bytes lie swizzled as operands do
  // (load/swizzle.h), so neither side has bank conflicts.
  static constexpr int kPassRows = Sums::kM < 32 ? Sums::kM : 32, kRowBytes = Sums::kN * 2;
  static constexpr bool kTurned = kRowBytes == 128;
  __device__ __forceinline__ void store_in_order() const {
    const GroupDesc& d = view_.tile.desc;
    const int lane = thread_ % 32, eighth = lane / 8, chunk = lane % 8;
    const std::uint32_t part = free_ + thread_ / 32 * (kPassRows * kRowBytes);
    const std::uint32_t put = part + lane / 4 * (kRowBytes + kChunkBytes) + lane % 4 * 4;  // row lane / 4, chunk 0
    const std::uint32_t get = part + eighth * kRowBytes + (chunk ^ eighth) * kChunkBytes;
    const int row = Sums::row(0, thread_ - lane) + eighth, column = Sums::column(thread_) + chunk * 8;
    const int left = column < view_.tile.n_left ? view_.tile.m_left - row : 0;
    const std::int64_t step = 8 * d.ldd;
    char* to = static_cast<char*>(d.d) + ((std::int64_t{view_.tile.m0} + row) * d.ldd + view_.tile.n0 + column) * 2;
#pragma unroll
    for (int pass = 0; pass < Sums::kM / kPassRows; ++pass) {
      if (pass > 0) __syncwarp();
#pragma unroll
      for (int u = 0; u < kPassRows / 8; ++u)
#pragma unroll
        for (int j = 0; j < Sums::kFragmentsN; ++j) {
          const float2 v = sums_.pair(pass * (kPassRows / 8) + u, j);
          ptx::store_shared_word((put ^ j * kChunkBytes) + u * 8 * kRowBytes, pack(v.x, v.y, Element{}));
        }
      __syncwarp();
#pragma unroll
      for (int four = 0; four < kPassRows / 4; four += 4) {
        std::uint32_t words[4][4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          ptx::load_shared_16(words[i], (get ^ (four + i) % 2 * 4 * kChunkBytes) + (four + i) * 4 * kRowBytes);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (pass * kPassRows + (four + i) * 4 < left) ptx::store_global_16(to, words[i]);
          to += step;
        }
      }
    }
  }

  // store_rounded() to rows in order that may start anywhere: 4 bytes a lane, whole words of memory. In a row that starts
  // between two words a lane's word is its second element and the first one of the next lane, behind the quad's last lane that
  // of the next piece; the first and the last element of the warp's columns go alone. The rows of a lane are eight apart, so
  // they all start between words or none does.
  __device__ __forceinline__ void store_anywhere() const {
    const GroupDesc& d = view_.tile.desc;
    const int lane = thread_ % 4, first = Sums::row(0, thread_), column = Sums::column(thread_);
    char* const start =
        static_cast<char*>(d.d) + ((std::int64_t{view_.tile.m0} + first) * d.ldd + view_.tile.n0 + column + lane * 2) * 2;
    const std::int64_t step = 16 * d.ldd;
    const bool between = (reinterpret_cast<std::uint64_t>(start) & 2) != 0;
    const std::uint32_t chosen = between ? 0x5432 : 0x3210;  // bytes of this lane's and the next one's word
    const int rows = view_.tile.m_left - first, columns = min(view_.tile.n_left - column, Sums::kN);
    const int words = between && lane == 3 ? columns - 8 : columns, end = between && lane == 3 ? columns - 8 : -1;
    char* const to = start + (between ? 2 : 0);
#pragma unroll
    for (int u = 0; u < Sums::kFragmentsM * 2; ++u) {
      std::uint32_t own[Sums::kFragmentsN];
#pragma unroll
      for (int j = 0; j < Sums::kFragmentsN; ++j) {
        const float2 v = sums_.pair(u, j);
        own[j] = pack(v.x, v.y, Element{});
      }
      const bool exists = 8 * u < rows;
      const int last = exists ? words : 0;
      char* const row = to + u * step;
      if (between && lane == 0 && exists && columns > 0)
        *reinterpret_cast<unsigned short*>(row - 2) = static_cast<unsigned short>(own[0]);
#pragma unroll
      for (int j = 0; j < Sums::kFragmentsN; ++j) {
        const std::uint32_t given = lane == 0 ? own[min(j + 1, Sums::kFragmentsN - 1)] : own[j];
        const std::uint32_t other = __shfl_sync(0xffffffffu, given, (lane + 1) % 4, 4);
        const std::uint32_t word = __byte_perm(own[j], other, chosen);
        if (8 * j < last) *reinterpret_cast<std::uint32_t*>(row + 16 * j) = word;
        if (8 * j == end && exists) *reinterpret_cast<unsigned short*>(row + 16 * j) = static_cast<unsigned short>(word);
      }
    }
  }

  __device__ __forceinline__ void store_wide(int u, std::int32_t to, bool valid) const {
    const GroupDesc& d = view_.tile.desc;
    const float w = weight(u, to, valid);
    const int column = Sums::column(thread_) + thread_ % 4 * 2;
    float* row = static_cast<float*>(d.d) + std::int64_t{to} * d.ldd + view_.tile.n0 + column;
#pragma unroll
    for (int j = 0; j < Sums::kFragmentsN; ++j)
      if (to >= 0 && column + 8 * j < view_.tile.n_left) *reinterpret_cast<float2*>(row + 8 * j) = value(u, j, valid, w);
  }

  // dot_rows() on registers: the quad's lanes hold the row's 64 columns as it wants them.
  __device__ __forceinline__ void store_dots() const {
    const Epilogue& e = view_.call.epilogue;
    const int column = view_.tile.n0 + Sums::column(thread_), first = thread_ % 4 * 2;
    const int left = view_.tile.n_left - Sums::column(thread_) - first;
#pragma unroll
    for (int u = 0; u < kRows; ++u) {
      const int row = Sums::row(u, thread_);
      const std::int64_t r = view_.sorted_row(row);
      std::int64_t x_row = -1;
      if (row < view_.tile.m_left && view_.row_valid(r))
        x_row = e.dot_rows != nullptr ? std::int64_t{__ldg(e.dot_rows + r)} : r;
      const std::uint32_t* x =
          reinterpret_cast<const std::uint32_t*>(static_cast<const Element*>(e.dot_x) + x_row * e.dot_x_ld + column + first);
      std::uint32_t words[Sums::kFragmentsN];
#pragma unroll
      for (int j = 0; j < Sums::kFragmentsN; ++j) words[j] = x_row >= 0 && 8 * j < left ? __ldg(x + 4 * j) : 0;
      QuadSums<float> dot;
#pragma unroll
      for (int j = 0; j < Sums::kFragmentsN; ++j) {
        if (8 * j >= left) continue;
        const float2 v = unpack(words[j], Element{}), sum = sums_.pair(u, j);
        dot.add(j, 0, sum.x, v.x);
        dot.add(j, 1, sum.y, v.y);
      }
      const float s = dot.total();
      if (first == 0 && x_row >= 0 && left > 0) static_cast<float*>(e.dots)[r * e.dot_blocks + column / kDotBlock] = s;
    }
  }

  TileView<float> view_;
  const Sums& sums_;
  int thread_;
  std::uint32_t free_;

 public:
  static constexpr int kFreeBytes = kTurned ? Sums::shape.warps() * kPassRows * kRowBytes : 0;
};

}  // namespace ggm::cuda
