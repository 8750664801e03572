// Where a pass of the sort gets its items: the first pass reads expert ids, the second the pairs that the first left.
// Used by the kernels of route.cu. A reader lives in a thread and fills the thread's items of one tile at a time.
#pragma once

#include <cstdint>

#include "cuda/routing/tile_sort.cuh"
#include "cuda/runtime/faults.cuh"
#include "plan/clamp.h"

namespace ggm::cuda {

// An assignment that the first pass found local.
struct alignas(8) Pair {
  std::int32_t expert;
  std::int32_t assignment;
};

template <typename Id>
struct IdSource {
  const Id* ids;
  const std::int32_t* expert_map;
  const std::int32_t* num_tokens;
  std::uint32_t* faults;  // nullptr: not counted, as by the second kernel that reads the same ids
  std::int64_t tokens, assignments, ids_ld, experts, experts_total, first_expert;
  std::uint32_t top_k;
};

// NOTE: items are counted in 32 bits without sign: there are fewer than 2^31, and a tile may begin before and end behind that.
template <typename Id>
class IdReader {
 public:
  __device__ explicit IdReader(const IdSource<Id>& source)
      : source_(source),
        real_(static_cast<std::uint32_t>(real_tokens(source.num_tokens, source.tokens, source.faults) * source.top_k)) {}

  __device__ std::uint32_t items() const { return static_cast<std::uint32_t>(source_.assignments); }

  // Items tile .. tile+count-1. All ids are loaded before the first is used: the latency is paid once.
  __device__ void read(std::uint32_t tile, int count, int rounds, TileItems& items) {
    Id ids[kSortItems];
    if (source_.ids_ld == source_.top_k)  // packed: no division
      load(tile, count, rounds, ids, [](std::uint32_t assignment) { return std::int64_t{assignment}; });
    else
      load(tile, count, rounds, ids, [this](std::uint32_t assignment) {
        const std::uint32_t token = assignment / source_.top_k;
        return token * source_.ids_ld + (assignment - token * source_.top_k);
      });
#pragma unroll
    for (int i = 0; i < kSortItems; ++i) {
      const int at = tile_item(threadIdx.x, i, rounds);
      items.value[i] = static_cast<std::int32_t>(tile + at);
      items.key[i] = i < rounds && at < count ? kSkipped : kOutside;
    }
    std::int32_t narrow[kSortItems];
#pragma unroll
    for (int i = 0; i < kSortItems; ++i) narrow[i] = narrow_id(ids[i]);
    if (source_.expert_map != nullptr)
      keys_by_map(narrow, items);
    else
      keys_by_range(narrow, items);
  }

  // Every thread of the warp must call it.
  __device__ void report() const { count_faults_of_warp(source_.faults, GGM_FAULT_BAD_ID, bad_); }

 private:
  template <typename Place>
  __device__ void load(std::uint32_t tile, int count, int rounds, Id (&ids)[kSortItems], Place place) const {
    const Id* given = source_.ids;
#pragma unroll
    for (int i = 0; i < kSortItems; ++i) {
      const int at = tile_item(threadIdx.x, i, rounds);
      ids[i] = i < rounds && at < count && tile + at < real_ ? given[place(tile + at)] : Id{-1};
    }
  }

  __device__ void keys_by_range(const std::int32_t (&ids)[kSortItems], TileItems& items) {
#pragma unroll
    for (int i = 0; i < kSortItems; ++i)
      set_key(id_in_range(ids[i], source_.experts_total) ? expert_by_range(ids[i], source_.first_expert, source_.experts)
                                                         : outside_id(ids[i]),
              items.key[i]);
  }

  __device__ void keys_by_map(const std::int32_t (&ids)[kSortItems], TileItems& items) {
    std::int32_t mapped[kSortItems];
#pragma unroll
    for (int i = 0; i < kSortItems; ++i)
      mapped[i] = id_in_range(ids[i], source_.experts_total) ? source_.expert_map[ids[i]] : -1;
#pragma unroll
    for (int i = 0; i < kSortItems; ++i)
      set_key(id_in_range(ids[i], source_.experts_total) ? expert_by_map(mapped[i], source_.experts) : outside_id(ids[i]),
              items.key[i]);
  }

  // Items outside the tile came with id -1, so they are never bad nor local.
  __device__ void set_key(LocalExpert found, std::int32_t& key) {
    bad_ += found.kind == IdKind::bad;
    if (found.kind == IdKind::local) key = static_cast<std::int32_t>(found.expert);
  }

  const IdSource<Id>& source_;
  const std::uint32_t real_;  // assignments of real tokens
  std::uint32_t bad_ = 0;
};

struct PairSource {
  const Pair* pairs;
  const std::uint32_t* count;
};

class PairReader {
 public:
  __device__ explicit PairReader(const PairSource& source) : pairs_(source.pairs), items_(*source.count) {}

  __device__ std::uint32_t items() const { return items_; }

  __device__ void read(std::uint32_t tile, int count, int rounds, TileItems& items) const {
#pragma unroll
    for (int i = 0; i < kSortItems; ++i) {
      const int at = tile_item(threadIdx.x, i, rounds);
      const Pair pair = i < rounds && at < count ? pairs_[tile + at] : Pair{kOutside, 0};
      items.key[i] = pair.expert;
      items.value[i] = pair.assignment;
    }
  }

  __device__ void report() const {}

 private:
  const Pair* pairs_;
  const std::uint32_t items_;
};

template <typename Source>
struct ReaderOf;
template <typename Id>
struct ReaderOf<IdSource<Id>> {
  using Type = IdReader<Id>;
};
template <>
struct ReaderOf<PairSource> {
  using Type = PairReader;
};
template <typename Source>
using Reader = typename ReaderOf<Source>::Type;

}  // namespace ggm::cuda
