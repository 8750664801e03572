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

// A reader fetches a tile, which costs the latency of memory once, and hands out its items later: what lies between is free.
// NOTE: items are counted in 32 bits without sign: there are fewer than 2^31, and a tile may begin before and end behind that.
template <typename Id, int rounds>
class IdReader {
 public:
  __device__ explicit IdReader(const IdSource<Id>& source)
      : source_(source),
        real_(static_cast<std::uint32_t>(real_tokens(source.num_tokens, source.tokens, source.faults) * source.top_k)) {}

  __device__ std::uint32_t items() const { return static_cast<std::uint32_t>(source_.assignments); }

  // Loads the ids of items tile .. tile+count-1.
  __device__ void fetch(std::uint32_t tile, int count) {
    tile_ = tile;
    count_ = count;
    if (source_.ids_ld == source_.top_k)  // packed: no division
      load([](std::uint32_t assignment) { return std::int64_t{assignment}; });
    else
      load([this](std::uint32_t assignment) {
        const std::uint32_t token = assignment / source_.top_k;
        return token * source_.ids_ld + (assignment - token * source_.top_k);
      });
  }

  __device__ void take(TileItems<rounds>& items) {
    std::int32_t experts[rounds];  // local, or less than 0
    if (source_.expert_map != nullptr)
      experts_by_map(experts);
    else
      experts_by_range(experts);
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const int at = tile_item(threadIdx.x, i, rounds);
      items.value[i] = static_cast<std::int32_t>(tile_ + at);
      items.key[i] = at >= count_ ? kOutside : experts[i] < 0 ? kSkipped : experts[i];
    }
  }

  // Every thread of the warp must call it.
  __device__ void report() const { count_faults_of_warp(source_.faults, GGM_FAULT_BAD_ID, bad_); }

 private:
  template <typename Place>
  __device__ void load(Place place) {
    const Id* given = source_.ids;
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const int at = tile_item(threadIdx.x, i, rounds);
      ids_[i] = at < count_ && tile_ + at < real_ ? given[place(tile_ + at)] : Id{-1};
    }
  }

  __device__ void experts_by_range(std::int32_t (&experts)[rounds]) {
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const std::int32_t id = narrow_id(ids_[i]);
      experts[i] = checked(id_in_range(id, source_.experts_total) ? expert_by_range(id, source_.first_expert, source_.experts)
                                                                  : outside_id(id));
    }
  }

  __device__ void experts_by_map(std::int32_t (&experts)[rounds]) {
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const std::int32_t id = narrow_id(ids_[i]);
      experts[i] = id_in_range(id, source_.experts_total) ? source_.expert_map[id] : -1;
    }
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const std::int32_t id = narrow_id(ids_[i]);
      experts[i] =
          checked(id_in_range(id, source_.experts_total) ? expert_by_map(experts[i], source_.experts) : outside_id(id));
    }
  }

  // Items outside the tile came with id -1, so they are never bad nor local.
  __device__ std::int32_t checked(LocalExpert found) {
    bad_ += found.kind == IdKind::bad;
    return found.kind == IdKind::local ? static_cast<std::int32_t>(found.expert) : -1;
  }

  const IdSource<Id>& source_;
  const std::uint32_t real_;  // assignments of real tokens
  Id ids_[rounds];
  std::uint32_t tile_ = 0;
  int count_ = 0;
  std::uint32_t bad_ = 0;
};

struct PairSource {
  const Pair* pairs;
  const std::uint32_t* count;
};

template <int rounds>
class PairReader {
 public:
  __device__ explicit PairReader(const PairSource& source) : given_(source.pairs), items_(*source.count) {}

  __device__ std::uint32_t items() const { return items_; }

  __device__ void fetch(std::uint32_t tile, int count) {
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      const int at = tile_item(threadIdx.x, i, rounds);
      pairs_[i] = at < count ? given_[tile + at] : Pair{kOutside, 0};
    }
  }

  __device__ void take(TileItems<rounds>& items) const {
#pragma unroll
    for (int i = 0; i < rounds; ++i) {
      items.key[i] = pairs_[i].expert;
      items.value[i] = pairs_[i].assignment;
    }
  }

  __device__ void report() const {}

 private:
  const Pair* given_;
  const std::uint32_t items_;
  Pair pairs_[rounds];
};

template <typename Source, int rounds>
struct ReaderOf;
template <typename Id, int rounds>
struct ReaderOf<IdSource<Id>, rounds> {
  using Type = IdReader<Id, rounds>;
};
template <int rounds>
struct ReaderOf<PairSource, rounds> {
  using Type = PairReader<rounds>;
};
template <typename Source, int rounds>
using Reader = typename ReaderOf<Source, rounds>::Type;

}  // namespace ggm::cuda
