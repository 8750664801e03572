// Finding a tile by the expert ids themselves, without a routing before the product: one warp holds all ids, two a lane, and
// knows by votes how many of them come before each in the sorted rows (section 4b of ggm.h).
#pragma once

#include "cuda/device/epilogue/values.cuh"
#include "cuda/gemm/find_group.cuh"
#include "cuda/runtime/faults.cuh"

namespace ggm::cuda {

// All threads of a warp make one, and call its functions together. An assignment is an item here; sets of items are bits.
class LaneIds {
 public:
  __device__ __forceinline__ explicit LaneIds(const FewIds& ids) : top_k_(static_cast<std::uint32_t>(ids.top_k)) {
    const std::uint32_t real = static_cast<std::uint32_t>(real_tokens(ids.num_tokens, ids.tokens)) * top_k_;
    std::int64_t given[kHeld];
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      given[i] = item(i) < real ? read_index(ids.ids, ids.id_type, place_of(item(i), ids.ids_ld)) : -1;
#pragma unroll
    for (int i = 0; i < kHeld; ++i) find_expert(ids, narrow_id(given[i]), i);
    compare_experts(ids.experts);
#pragma unroll
    for (int i = 0; i < kHeld; ++i) local_ |= vote(expert_[i] < ids.experts, i);
  }

  // The n-th tile of `rows` rows, from 0, in the order of the groups. The tokens of its rows go to `tokens`, an array of the
  // warp's own in shared memory.
  template <int rows>
  __device__ __forceinline__ GroupTile tile(int n, std::int32_t* tokens) const {
    std::uint64_t heads = 0;  // items that begin a tile
#pragma unroll
    for (int i = 0; i < kHeld; ++i) heads |= vote(in_group(i) % rows == 0, i);
    heads &= local_;
    GroupTile found{0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const bool here = is_local(i) && __popcll(heads & lower_[i]) + in_group(i) / rows == n;
      if (!here) continue;
      found = {expert_[i], __popcll(lower_[i]), __popcll(same_[i]), in_group(i) / rows * rows};
      tokens[in_group(i) % rows] = static_cast<std::int32_t>(item(i) / top_k_);
    }
    __syncwarp();
    return from_holder(found);
  }

  // What is read of the routing behind the product, and faults; by one warp of the grid, the first.
  __device__ __forceinline__ void store_rows(const FewIds& ids) const {
    real_tokens(ids.num_tokens, ids.tokens, ids.faults);
    count_faults_of_warp(ids.faults, GGM_FAULT_BAD_ID, bad_);
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      if (item(i) >= static_cast<std::uint32_t>(ids.tokens) * top_k_) continue;
      const std::int32_t row = is_local(i) ? __popcll(lower_[i]) + in_group(i) : -1;
      ids.assignment_row[item(i)] = row;
      if (row >= 0 && ids.row_weight != nullptr)
        ids.row_weight[row] = load_value<float>(ids.weights, place_of(item(i), ids.weights_ld), ids.weight_type);
    }
  }

 private:
  static constexpr int kHeld = FewIds::kMost / 32;
  static_assert(kHeld == 2, "one word has a bit for every item, and same_ begins with all of them");
  static constexpr unsigned kWarp = 0xffffffffu;

  static __device__ __forceinline__ std::uint32_t item(int i) { return threadIdx.x % 32 + 32 * i; }
  static __device__ __forceinline__ std::uint64_t vote(bool yes, int i) {
    return std::uint64_t{__ballot_sync(kWarp, yes)} << 32 * i;
  }
  // Where an item lies in an array [tokens, top_k].
  __device__ __forceinline__ std::int64_t place_of(std::uint32_t item, std::int64_t ld) const {
    const std::uint32_t token = item / top_k_;
    return token * ld + (item - token * top_k_);
  }
  // The local expert; behind all of them when the slot has no row.
  __device__ __forceinline__ void find_expert(const FewIds& ids, std::int32_t id, int i) {
    LocalExpert local = outside_id(id);
    if (id_in_range(id, ids.experts_total))
      local = ids.expert_map != nullptr ? expert_by_map(ids.expert_map[id], ids.experts)
                                        : expert_by_range(id, ids.first_expert, ids.experts);
    expert_[i] = local.kind == IdKind::local ? static_cast<std::int32_t>(local.expert) : ids.experts;
    bad_ += local.kind == IdKind::bad;
  }
  // Bit after bit, the highest first: which items have all bits so far alike, and which a lower expert.
  __device__ __forceinline__ void compare_experts(std::int32_t experts) {
#pragma unroll 1
    for (int bit = 1 << (31 - __clz(experts)); bit > 0; bit /= 2) {
      std::uint64_t with = 0;
#pragma unroll
      for (int i = 0; i < kHeld; ++i) with |= vote((expert_[i] & bit) != 0, i);
#pragma unroll
      for (int i = 0; i < kHeld; ++i) {
        const bool own = (expert_[i] & bit) != 0;
        lower_[i] |= own ? same_[i] & ~with : 0;
        same_[i] &= own ? with : ~with;
      }
    }
  }
  __device__ __forceinline__ bool is_local(int i) const { return (local_ >> item(i) & 1) != 0; }
  // Items of the same expert before item i of the lane.
  __device__ __forceinline__ int in_group(int i) const { return __popcll(same_[i] & ((std::uint64_t{1} << item(i)) - 1)); }

  std::uint32_t top_k_, bad_ = 0;
  std::int32_t expert_[kHeld];
  std::uint64_t same_[kHeld] = {~std::uint64_t{0}, ~std::uint64_t{0}};  // items of the same expert
  std::uint64_t lower_[kHeld] = {};                                     // of lower ones
  std::uint64_t local_ = 0;                                             // that have a row
};

}  // namespace ggm::cuda
