// Plain results of a tensor-core kernel from shared memory to rows of D that may start anywhere: nothing but rounding and a
// weight, where DirectRows (direct_rows.cuh) wants rows aligned to what a thread stores. Neighbours go two a store, 4 bytes,
// whatever their row begins with. Both, and run_epilogue, give the same bits.
#pragma once

#include "cuda/device/epilogue/direct_rows.cuh"

namespace ggm::cuda {

// Whether this tile may go that way. The same for all threads.
template <typename Element>
__device__ __forceinline__ bool goes_plain(const GemmCall& call) {
  const Epilogue& e = call.epilogue;
  return e.kind == EpilogueKind::store && e.only_rounds(kTypeOf<Element>) && e.dots == nullptr &&
         (e.d_type == kTypeOf<Element> || e.d_type == Type::float32);
}

// The tile's rows, by `warps` warps.
template <typename Element, int tile_m, int warps>
class PlainRows {
 public:
  __device__ __forceinline__ PlainRows(const GemmCall& call, const Tile& tile, const float* staging)
      : view_{call, tile, staging},
        columns_(min(tile.n_left, kTileColumns)),
        lane_(static_cast<int>(threadIdx.x % 32)),
        wide_(call.epilogue.d_type == Type::float32),
        rounded_(call.epilogue.product_type != Type::none),
        weighted_(call.epilogue.row_weight != nullptr),
        d_(static_cast<char*>(tile.desc.d)),
        ldd_(tile.desc.ldd),
        n0_(tile.n0) {}

  __device__ __forceinline__ void run() const {
    const Epilogue& e = view_.call.epilogue;
    const int rows = view_.rows(tile_m);
#pragma unroll 1
    for (int first = static_cast<int>(threadIdx.x) / 32 * kBatch; first < rows; first += warps * kBatch) {
      std::int32_t to[kBatch];
      float weight[kBatch];
      unsigned valid = 0;
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        to[u] = -1;
        weight[u] = 0;
        if (first + u >= rows) continue;
        const std::int64_t r = view_.sorted_row(first + u);
        const bool live = view_.row_valid(r);
        valid |= static_cast<unsigned>(live) << u;
        if (live) weight[u] = view_.row_weight(r);
        if (live || !e.keep_invalid) to[u] = e.d_rows != nullptr ? __ldg(e.d_rows + r) : view_.tile.m0 + first + u;
      }
#pragma unroll
      for (int u = 0; u < kBatch; ++u) {
        if (to[u] < 0) continue;
        if (wide_)
          store_wide(first + u, to[u], valid >> u & 1, weight[u]);
        else
          store_narrow(first + u, to[u], valid >> u & 1, weight[u]);
      }
    }
  }

 private:
  static constexpr int kBatch = 4;  // rows that are looked up together, so that their latencies overlap

  __device__ __forceinline__ float value(int row, int column, bool valid, float weight) const {
    float v = valid ? view_.staging[row * kStagingPitch + column] : 0.0f;
    if (rounded_) v = unpack(pack(v, 0.0f, Element{}), Element{}).x;
    return weighted_ ? __fmul_rn(weight, v) : v;
  }

  __device__ __forceinline__ void store_narrow(int row, std::int32_t to, bool valid, float weight) const {
    auto* start = reinterpret_cast<unsigned short*>(d_) + to * ldd_ + n0_;
    const int before =
        static_cast<int>(reinterpret_cast<std::uint64_t>(start) / 2 % 2);  // elements before the first whole word
    const auto store_one = [&](int column) {
      start[column] = static_cast<unsigned short>(pack(value(row, column, valid, weight), 0.0f, Element{}));
    };
#pragma unroll
    for (int w = 0; w < kTileColumns / 2; w += 32) {
      const int column = before + (w + lane_) * 2;
      if (column + 1 < columns_)
        *reinterpret_cast<std::uint32_t*>(start + column) =
            pack(value(row, column, valid, weight), value(row, column + 1, valid, weight), Element{});
    }
    if (lane_ == 0 && before != 0) store_one(0);
    if (lane_ == 1 && (columns_ - before) % 2 != 0) store_one(columns_ - 1);
  }

  __device__ __forceinline__ void store_wide(int row, std::int32_t to, bool valid, float weight) const {
    float* start = reinterpret_cast<float*>(d_) + to * ldd_ + n0_;
#pragma unroll
    for (int first = 0; first < kTileColumns; first += 32)
      if (first + lane_ < columns_) start[first + lane_] = value(row, first + lane_, valid, weight);
  }

  TileView<float> view_;
  // What every row needs: the call and the tile are memory, which a store may have changed for all the compiler knows.
  int columns_, lane_;
  bool wide_, rounded_, weighted_;
  char* d_;
  std::int64_t ldd_;
  std::int32_t n0_;
};

// Barriers as for run_epilogue, and not inlined for its reasons.
template <typename Element, int tile_m, int warps>
__device__ __noinline__ void store_plain_rows(const GemmCall& call, const Tile& tile, const float* staging) {
  PlainRows<Element, tile_m, warps>(call, tile, staging).run();
}

}  // namespace ggm::cuda
