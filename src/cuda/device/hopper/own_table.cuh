// A table of groups that each block makes for itself, in shared memory, from the sizes or offsets of the call: nothing then has
// to be launched before the product. For products of few groups of few rows, whose time such a launch would be a part of. The
// work of the scheduler, one warp. Groups come out as build_few (src/cuda/gemm/few_groups.cu) finds them.
#pragma once

#include "cuda/device/hopper/hopper_call.h"
#include "cuda/device/hopper/storage.cuh"
#include "cuda/runtime/faults.cuh"
#include "plan/clamp.h"

namespace ggm::cuda {

// Walks the groups of ascending pair numbers, as GroupCursor does in a table in memory.
template <typename Shared>
class OwnCursor {
 public:
  __device__ __forceinline__ OwnCursor(const OwnGroups& own, Shared& shared)
      : table_(shared.own_table), groups_(own.group_count), lane_(static_cast<int>(threadIdx.x % 32)) {
    // The lane's word of every descriptor, and what it is made of.
    const int word = min(lane_, kDescWords - 1);
    base_ = own.words.base[word];
    by_row_ = own.words.by_row[word];
    by_group_ = own.words.by_group[word];
    has_size_ = word == own.words.size_word;
    find_rows(own);
    number_tiles(own.rule);
    __syncwarp();
  }

  // Whether there is a pair of that number.
  __device__ __forceinline__ bool find(std::int64_t number) {
    moved_ = false;
    if (number >= table_.tiles_before[groups_]) return false;
    const auto wanted = static_cast<std::uint32_t>(number);
    while (wanted >= end_) {
      moved_ = true;
      const std::uint32_t offset = table_.tiles_before[min(group_ + 1 + lane_, groups_)];
      const int below = __popc(__ballot_sync(0xffffffffu, offset <= wanted));  // those of the first lanes, as offsets ascend
      if (below > 0) begin_ = __shfl_sync(0xffffffffu, offset, below - 1);
      group_ += below;
      if (below < 32) end_ = __shfl_sync(0xffffffffu, offset, below);
    }
    return true;
  }

  __device__ __forceinline__ std::int64_t begin() const { return begin_; }
  __device__ __forceinline__ bool moved() const { return moved_; }
  __device__ __forceinline__ void describe(GroupDesc& to) const {
    if (lane_ >= kDescWords) return;
    std::uint64_t value = base_ + table_.start[group_] * by_row_ + static_cast<std::uint64_t>(group_) * by_group_;
    if (has_size_) value += table_.size[group_];
    reinterpret_cast<unsigned long long*>(&to)[lane_] = value;
  }

 private:
  static __device__ __forceinline__ std::int64_t read(const void* values, IndexType type, int i) {
    return type == IndexType::int64 ? static_cast<const std::int64_t*>(values)[i] : static_cast<const std::int32_t*>(values)[i];
  }
  static __device__ __forceinline__ std::uint32_t cut(std::int64_t value, std::uint32_t most) {
    return static_cast<std::uint32_t>(clamp_between(value, 0, most));
  }

  // visit(group) for the neighbouring groups that are the lane's.
  template <typename Visit>
  __device__ __forceinline__ void each(const Visit& visit) const {
    const int share = (groups_ + 31) / 32, first = lane_ * share;
#pragma unroll 4
    for (int i = 0; i < share; ++i)
      if (first + i < groups_) visit(first + i, i);
  }

  // First rows and sizes. What a group begins with follows from the lower ones: their sum, or the largest of their ends.
  __device__ __forceinline__ void find_rows(const OwnGroups& own) {
    const bool ends = own.ends != nullptr, sums = !ends && !own.apart;
    const std::uint32_t rows = own.rows;
    const auto join = [&](std::uint32_t a, std::uint32_t b) { return ends ? max(a, b) : min(a + b, rows); };
    std::uint32_t wrong = 0, carry = 0;  // bits of the lane's groups
    if (ends && own.begins != nullptr) {
      const std::int64_t begin = read(own.begins, own.index_type, 0);
      carry = cut(begin, rows);
      if (lane_ == 0 && carry != begin) wrong_begin_ = 1;
    }
    const std::uint32_t front = carry;
    each([&](int group, int i) {
      const std::int64_t value = read(ends ? own.ends : own.sizes, own.index_type, group);
      const std::uint32_t kept = cut(value, rows);
      wrong |= static_cast<std::uint32_t>(kept != value) << i;
      table_.size[group] = kept;
      if (ends || sums) carry = join(carry, kept);
    });
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const std::uint32_t lower = __shfl_up_sync(0xffffffffu, carry, step);
      if (lane_ >= step) carry = join(lower, carry);
    }
    carry = __shfl_up_sync(0xffffffffu, carry, 1);
    if (lane_ == 0) carry = front;
    each([&](int group, int i) {
      const std::uint32_t kept = table_.size[group];
      const std::uint32_t start = own.apart ? 0 : carry;
      const std::uint32_t size = ends ? max(start, kept) - start : min(kept, rows - start);
      wrong |= static_cast<std::uint32_t>((ends ? start + size : size) != kept) << i;
      table_.start[group] = start;
      table_.size[group] = size;
      if (ends || sums) carry = join(carry, kept);
    });
    if (blockIdx.x != 0) return;  // counted once
    const std::uint32_t count = static_cast<std::uint32_t>(__popc(wrong)) + wrong_begin_;
    count_faults_of_warp(own.faults, ends ? GGM_FAULT_BAD_ROUTING : GGM_FAULT_SIZE_CLAMPED, count);
  }

  __device__ __forceinline__ void number_tiles(const TileRule& rule) {
    std::uint32_t sum = 0;
    each([&](int group, int) { sum += static_cast<std::uint32_t>(rule.count(table_.size[group])); });
    std::uint32_t before = sum;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const std::uint32_t lower = __shfl_up_sync(0xffffffffu, before, step);
      if (lane_ >= step) before += lower;
    }
    if (lane_ == 31) table_.tiles_before[groups_] = before;
    before -= sum;
    each([&](int group, int) {
      table_.tiles_before[group] = before;
      before += static_cast<std::uint32_t>(rule.count(table_.size[group]));
    });
  }

  OwnTable<Shared::kOwnGroups>& table_;
  int groups_, lane_, group_ = -1;
  std::uint64_t base_, by_row_, by_group_;
  bool has_size_, moved_ = false;
  std::uint32_t wrong_begin_ = 0;
  std::uint32_t begin_ = 0, end_ = 0;  // pairs before the group, and before the next one
};

}  // namespace ggm::cuda
