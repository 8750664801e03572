// The warps that feed a block of a wgmma kernel: the scheduler claims pairs of tiles and tells everyone, two others copy one
// operand each. All run ahead of the warpgroups that multiply.
#pragma once

#include "cuda/device/hopper/dot_stages.cuh"
#include "cuda/device/hopper/hopper_call.h"
#include "cuda/device/hopper/storage.cuh"
#include "cuda/device/ptx/thread.cuh"
#include "cuda/device/ptx/tma.cuh"

namespace ggm::cuda {

// Finds the groups of ascending pair numbers; a warp's own. Mostly the group is the last one or one of the 32 behind it, which
// takes no load or a single one.
class GroupCursor {
 public:
  __device__ __forceinline__ explicit GroupCursor(const GemmCall& call)
      : offsets_(reinterpret_cast<const long long*>(call.tile_offsets)),
        groups_(call.group_count),
        total_(groups_ > 0 ? offsets_[groups_] : 0),
        ahead_(groups_ > 0 ? offsets_[probe()] : 0) {}

  // Whether there is a pair of that number.
  __device__ __forceinline__ bool find(std::int64_t number) {
    moved_ = false;
    if (number >= total_) return false;
    while (number >= end_) {
      moved_ = true;
      const long long offset = ahead_;
      const int below = __popc(__ballot_sync(0xffffffffu, offset <= number));  // those of the first lanes, as offsets ascend
      if (below > 0) begin_ = __shfl_sync(0xffffffffu, offset, below - 1);
      group_ += below;
      if (below < 32) end_ = __shfl_sync(0xffffffffu, offset, below);
      ahead_ = offsets_[probe()];
    }
    return true;
  }

  __device__ __forceinline__ int group() const { return group_; }
  __device__ __forceinline__ std::int64_t pairs() const { return total_; }
  __device__ __forceinline__ std::int64_t begin() const { return begin_; }
  __device__ __forceinline__ bool moved() const { return moved_; }  // to another group than that of the number before

 private:
  // The lane's own of the 32 groups behind this one.
  __device__ __forceinline__ int probe() const { return min(group_ + 1 + static_cast<int>(threadIdx.x % 32), groups_); }

  const long long* offsets_;
  int groups_, group_ = -1;
  std::int64_t total_, begin_ = 0, end_ = 0;  // pairs before the group, and before the next one
  long long ahead_;                           // pairs before group probe(), under way when it is needed
  bool moved_ = false;
};

// Where the tile of this block lies in pair `index` of its group, whose descriptor is there; the work of one lane.
template <typename Shared>
__device__ __forceinline__ void place_tile(const HopperCall& call, std::int64_t index, int block, std::uint32_t first_step,
                                           TileNotice& notice) {
  const std::int64_t left = notice.tiles[0].desc.n, right = notice.tiles[0].desc.m;
  const TilePairs pairs(left, right, Shared::kLeftTile, Shared::kMaxRight, Shared::kOverK);
  const TilePairs::Corner corner = pairs.corner(index, block, Shared::kRelayed ? call.relay.part_rows : 0);
  const std::int64_t left0 = min(corner.left, left), right0 = min(corner.right, right);
  notice.left = static_cast<std::int32_t>(left0);
  notice.right = static_cast<std::int32_t>(right0);
  notice.width = pairs.width;
  notice.shares_left = pairs.shares_left;
  notice.first_step = first_step;
  for (int i = 0; i < (Shared::kTogether ? kConsumers : 1); ++i) {
    constexpr int kColumns = 128;
    const std::int64_t own = min(left0 + i * kColumns, left);
    Tile& tile = notice.tiles[i];
    tile.m0 = notice.right;
    tile.n0 = static_cast<std::int32_t>(own);
    tile.m_left = static_cast<std::int32_t>(min(right - right0, std::int64_t{pairs.width}));
    tile.n_left = static_cast<std::int32_t>(min(left - own, std::int64_t{kColumns}));
    tile.group = static_cast<std::int32_t>(tile.desc.group);
  }
}

// The numbers of pairs that a cluster works on. The first block takes them from the counter and sends each to both. In kernels
// for few rows when the next one is wanted; else two ahead: one is on its way between the blocks and the counter's answer to
// another, while a third is described. Of no more than two pairs a cluster, in kernels for few rows, each has its own.
// A scheduler's own.
template <typename Shared>
class PairClaims {
 public:
  __device__ __forceinline__ PairClaims(const GemmCall& call, Shared& shared)
      : counter_(call.tile_counter),
        claims_(ptx::shared_address(shared.claims)),
        full_(ptx::shared_address(shared.claim_full)),
        empty_(ptx::shared_address(shared.claim_empty)),
        takes_(ptx::block_in_cluster() == 0 && threadIdx.x % 32 == 0),
        // The first pair of a cluster is its own number, so that it need not wait for the counter; not where a tile waits for
        // those before it, because a cluster may start late.
        first_(Shared::kRelayed || call.epilogue.kind == EpilogueKind::ordered ? 0 : gridDim.x / 2) {
    if (!Shared::kFew) take();
  }

  // The next number, of `pairs`, the same for all lanes of both blocks.
  __device__ __forceinline__ std::int64_t next(std::int64_t pairs) {
    const auto clusters = static_cast<std::int64_t>(first_);
    if (clusters != 0 && (own_ == 0 || (Shared::kFew && pairs <= 2 * clusters))) return blockIdx.x / 2 + clusters * own_++;
    if constexpr (Shared::kFew) {
      take();
      send();
    } else {
      if (sent_ == 0) send_and_take();
      send_and_take();
    }
    const RingPlace<kClaimSlots> place(read_++);
    ptx::wait(full_ + place.at * 8, place.parity);
    const std::uint64_t number = ptx::load_shared_8(claims_ + place.at * 8);
    ptx::arrive_remote(ptx::map_to_block(empty_ + place.at * 8, 0));
    return static_cast<std::int64_t>(number);
  }

  // What was sent and is not wanted must come before the block may leave.
  __device__ __forceinline__ void end() const {
    if (sent_ == read_) return;
    const RingPlace<kClaimSlots> place(read_);
    ptx::wait(full_ + place.at * 8, place.parity);
  }

 private:
  // The answer of the counter is waited for where it is sent.
  __device__ __forceinline__ void take() { ptx::add_if(takes_, counter_, 1, &taken_); }
  __device__ __forceinline__ void send() {
    const std::uint64_t number = first_ + taken_;
    const RingPlace<kClaimSlots> place(sent_++);
    const std::uint32_t at = place.at * 8;
    if (threadIdx.x % 32 == 0) ptx::arrive_expecting(full_ + at, 8);
    if (takes_) {
      ptx::wait(empty_ + at, place.parity ^ 1);
      for (unsigned to = 0; to < 2; ++to)
        ptx::store_remote_counted(ptx::map_to_block(claims_ + at, to), number, ptx::map_to_block(full_ + at, to));
    }
    __syncwarp();
  }
  __device__ __forceinline__ void send_and_take() {
    send();
    take();
  }

  unsigned long long* counter_;
  std::uint32_t claims_, full_, empty_;
  bool takes_;
  unsigned long long first_, taken_ = 0;
  std::uint32_t own_ = 0, sent_ = 0, read_ = 0;
};

// The scheduler: each block's own, but for the numbers.
template <typename Shared>
__device__ __forceinline__ void schedule_tiles(const HopperCall& hopper, Shared& shared) {
  const GemmCall& call = hopper.gemm;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const auto block = static_cast<int>(ptx::block_in_cluster());
  PairClaims<Shared> claims(call, shared);
  GroupCursor cursor(call);
  std::uint32_t first_step = 0;
  const TileNotice* before = nullptr;
  for (std::uint32_t n = 0;; ++n) {
    const RingPlace<Shared::kSlots> place(n);
    const std::uint32_t word = place.at * 8;
    const auto wait_for_place = [&] { ptx::wait(ptx::shared_address(shared.notice_empty) + word, place.parity ^ 1); };
    if (Shared::kFew) wait_for_place();
    const std::int64_t number = claims.next(cursor.pairs());
    const bool some = cursor.find(number);
    if (!Shared::kFew) wait_for_place();
    TileNotice& notice = shared.notices[place.at];
    if (some) {
      for (int i = 0; i < (Shared::kTogether ? kConsumers : 1); ++i)
        copy_descriptor(cursor.moved() || before == nullptr ? call.groups[cursor.group()] : before->tiles[0].desc,
                        notice.tiles[i].desc);
      __syncwarp();
      if (lane == 0) place_tile<Shared>(hopper, number - cursor.begin(), block, first_step, notice);
      first_step += (notice.tiles[0].desc.k + kStepK - 1) / kStepK + (hopper.dots_by_stages ? DotStages<Shared>::kCount : 0);
      before = &notice;
    } else if (lane == 0) {
      notice.tiles[0].group = -1;
    }
    __syncwarp();
    ptx::arrive(ptx::shared_address(shared.notice_full) + word);
    if (some) continue;
    // The end, once more for the other warpgroup that multiplies.
    const RingPlace<Shared::kSlots> last(n + 1);
    ptx::wait(ptx::shared_address(shared.notice_empty) + last.at * 8, last.parity ^ 1);
    if (lane == 0) shared.notices[last.at].tiles[0].group = -1;
    __syncwarp();
    ptx::arrive(ptx::shared_address(shared.notice_full) + last.at * 8);
    claims.end();
    return;
  }
}

// A warp that puts the copies of one operand under way. All lanes go through it together, so that addresses and coordinates lie
// in uniform registers, as the copy instruction wants them; one lane issues. `operand` says what a step copies, and
// each of the stages for inner products that come behind the steps of a tile.
template <typename Shared, typename Operand>
__device__ __forceinline__ void feed_operand(Shared& shared, Operand operand, int dot_stages) {
  const std::uint32_t full = ptx::shared_address(shared.stage_full), empty = ptx::shared_address(shared.stage_empty);
  RingPlace<Shared::kStages> stage(0);
  for (std::uint32_t n = 0;; ++n) {
    const RingPlace<Shared::kSlots> place(n);
    ptx::wait(ptx::shared_address(shared.notice_full) + place.at * 8, place.parity);
    const TileNotice& notice = shared.notices[place.at];
    if (ptx::uniform(notice.tiles[0].group) < 0) return;
    const int steps = (ptx::uniform(notice.tiles[0].desc.k) + kStepK - 1) / kStepK;
    operand.begin(notice);
    ptx::arrive(ptx::shared_address(shared.notice_empty) + place.at * 8);
    for (int step = 0; step < steps; ++step, stage.next()) {
      ptx::wait(empty + stage.at * 8, stage.parity ^ 1);
      if (ptx::elect_one()) {
        ptx::arrive_expecting(full + stage.at * 8, operand.bytes());
        operand.copy(stage.at, full + stage.at * 8);
      }
      __syncwarp();
      operand.next();
    }
    for (int step = 0; step < dot_stages; ++step, stage.next()) {
      ptx::wait(empty + stage.at * 8, stage.parity ^ 1);
      if (ptx::elect_one()) operand.copy_for_dots(step, stage.at, full + stage.at * 8);
      __syncwarp();
    }
  }
}

// Where a box of an operand begins, at k = 0; `outer` in the direction that is not K. K goes on in coordinate k_at.
template <bool k_outer>
struct OperandCorner {
  static constexpr int kAt = k_outer ? 1 : 0, kOuterAt = 1 - kAt;
  ptx::BoxCorner corner;

  __device__ __forceinline__ void begin(const OperandMap& map, const TileNotice& notice, std::int32_t outer) {
    const int k = ptx::uniform(notice.tiles[0].desc.k), first_row = ptx::uniform(notice.tiles[0].desc.first_row);
    const int group = map.by_group ? ptx::uniform(notice.tiles[0].group) : 0;
    if (!k_outer)
      corner = {{0, outer + (map.from_first_row ? first_row : 0), group, 0}};
    else if (map.ends_with_group)
      corner = {{outer, kRaggedRows - k, first_row + k, kRaggedRows}};
    else
      corner = {{outer, 0, group, 0}};
  }
  __device__ __forceinline__ ptx::BoxCorner moved(int outer) const {
    ptx::BoxCorner c = corner;
    c.at[kOuterAt] += outer;
    return c;
  }
  __device__ __forceinline__ void next() { corner.at[kAt] += kStepK; }
};

// The left operand: boxes of 64 rows. What both blocks of the cluster read, each copies one half of to both.
template <typename Shared, bool k_outer>
class LeftFeed {
 public:
  __device__ __forceinline__ LeftFeed(const OperandMap& map, Shared& shared)
      : map_(map), to_(ptx::shared_address(shared.left)), block_(ptx::uniform(static_cast<int>(ptx::block_in_cluster()))) {}

  __device__ __forceinline__ void begin(const TileNotice& notice) {
    shares_ = ptx::uniform(notice.shares_left) != 0;
    at_.begin(map_, notice, ptx::uniform(notice.left));
  }
  __device__ __forceinline__ unsigned bytes() const { return Shared::kLeftBytes; }
  __device__ __forceinline__ void copy(std::uint32_t stage, std::uint32_t barrier) const {
    const std::uint32_t to = to_ + stage * Shared::kLeftBytes;
    constexpr int kBoxes = Shared::kLeftBytes / Shared::kBlock;
    if (shares_) {
#pragma unroll
      for (int i = 0; i < kBoxes / 2; ++i) {
        const int box = block_ * (kBoxes / 2) + i;
        ptx::copy_box_to_cluster(to + box * Shared::kBlock, &map_.boxes[0], at_.moved(box * 64), barrier, 3);
      }
    } else {
#pragma unroll
      for (int box = 0; box < kBoxes; ++box)
        ptx::copy_box(to + box * Shared::kBlock, &map_.boxes[0], at_.moved(box * 64), barrier);
    }
  }
  __device__ __forceinline__ void copy_for_dots(int, std::uint32_t, std::uint32_t barrier) const { ptx::arrive(barrier); }
  __device__ __forceinline__ void next() { at_.next(); }

 private:
  const OperandMap& map_;
  std::uint32_t to_;
  int block_;
  bool shares_ = false;
  OperandCorner<k_outer> at_;
};

// The right operand: with K inside, boxes of 128, 64, 32, 16 and 8 rows that add up to the width. Else boxes of 64 columns;
// where both blocks of the cluster read the same, each copies one half of a step of K to both. For inner products the same rows
// of `dots_map`, 64 of the tile's columns a stage.
template <typename Shared, bool k_outer>
class RightFeed {
 public:
  __device__ __forceinline__ RightFeed(const OperandMap& map, const OperandMap& dots_map, Shared& shared)
      : map_(map),
        dots_map_(dots_map),
        to_(ptx::shared_address(shared.right)),
        block_(ptx::uniform(static_cast<int>(ptx::block_in_cluster()))) {}

  __device__ __forceinline__ void begin(const TileNotice& notice) { begin_at(notice, ptx::uniform(notice.right)); }
  __device__ __forceinline__ void begin_at(const TileNotice& notice, std::int32_t outer) {
    width_ = ptx::uniform(notice.width);
    shares_ = k_outer && ptx::uniform(notice.shares_left) == 0;
    at_.begin(map_, notice, outer);
    if constexpr (!k_outer) {
      dots_at_.begin(dots_map_, notice, ptx::uniform(notice.right));
      dots_at_.corner.at[0] = ptx::uniform(notice.left);
    }
  }
  __device__ __forceinline__ unsigned bytes() const {
    return k_outer ? (width_ + 63) / 64 * Shared::kBlock : width_ * kStepK * 2;
  }
  __device__ __forceinline__ void copy(std::uint32_t stage, std::uint32_t barrier) const {
    const std::uint32_t to = to_ + stage * Shared::kRightBytes;
    if constexpr (k_outer) {
#pragma unroll
      for (int box = 0; box < Shared::kRightBytes / Shared::kBlock; ++box) {
        if (box * 64 >= width_) continue;
        ptx::BoxCorner at = at_.moved(box * 64);
        if (shares_) {
          at.at[at_.kAt] += block_ * (kStepK / 2);
          const int half = block_ * (Shared::kBlock / 2);
          ptx::copy_box_to_cluster(to + box * Shared::kBlock + half, &map_.boxes[1], at, barrier, 3);
        } else {
          ptx::copy_box(to + box * Shared::kBlock, &map_.boxes[0], at, barrier);
        }
      }
    } else {
      copy_rows(map_, at_, to, barrier);
    }
  }
  __device__ __forceinline__ void copy_for_dots(int step, std::uint32_t stage, std::uint32_t barrier) const {
    ptx::arrive_expecting(barrier, width_ * kStepK * 2);
    OperandCorner<false> at = dots_at_;
    at.corner.at[0] += step * kStepK;
    copy_rows(dots_map_, at, to_ + stage * Shared::kRightBytes, barrier);
  }
  __device__ __forceinline__ void next() { at_.next(); }

 private:
  __device__ __forceinline__ void copy_rows(const OperandMap& map, const OperandCorner<false>& at, std::uint32_t to,
                                            std::uint32_t barrier) const {
#pragma unroll
    for (int box = kRightBoxes - 1; box >= 0; --box) {
      const int rows = 8 << box, before = width_ & ~(2 * rows - 1);
      if (width_ & rows) ptx::copy_box(to + before * kStepK * 2, &map.boxes[box], at.moved(before), barrier);
    }
  }

  const OperandMap& map_;
  const OperandMap& dots_map_;
  std::uint32_t to_;
  int block_, width_ = 0;
  bool shares_ = false;
  OperandCorner<k_outer> at_;
  OperandCorner<false> dots_at_;
};

}  // namespace ggm::cuda
