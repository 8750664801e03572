// What a block of a wgmma kernel keeps in shared memory, and how its parts speak of it.
#pragma once

#include "cuda/device/hopper/relay.h"
#include "cuda/device/ptx/cp_async.cuh"
#include "cuda/device/ptx/mbarrier.cuh"
#include "cuda/device/schedule/tile_claim.cuh"
#include "cuda/device/schedule/tile_pairs.h"

namespace ggm::cuda {

inline constexpr int kWarpgroup = 128, kConsumers = 2;  // two warpgroups multiply
inline constexpr int kStepK = 64;                       // elements of K in a stage: 128 bytes, the width of the swizzle
inline constexpr int kClaimSlots = 4;

// One tile on its way from the scheduler to the copies and to the warpgroups that multiply it.
struct TileNotice {
  // m0, n0 and what is left from there, no more than the tile's own rows and columns; may be 0 or less. The second is for the
  // second warpgroup of a tile that both multiply.
  Tile tiles[kConsumers];
  std::int32_t left, right;  // where it begins in the operands
  std::int32_t width;        // columns of the right tile
  // 1: both blocks of the cluster have the same left tile. 0: in weight gradients the same right tile.
  std::int32_t shares_left;
  std::uint32_t first_step;  // stages that the tiles before have used, modulo 2^32
};

// Pieces of rows on their way through a block that relays them.
template <bool relayed>
struct RelayStorage {};
template <>
struct RelayStorage<true> {
  alignas(128) char pieces[kRelayPieces][kRelayPieceBytes];
  std::uint64_t pieces_full;  // barrier
};

// `gathered`: the right operand's rows come through a list, fetched by four more warps. Where groups have many, that takes
// longest for each row, so both warpgroups multiply the same rows then, each with 128 rows of the left operand: `together`.
// `relayed`: one warp copies those rows to where they follow each other (relay_feed.cuh).
template <int max_right, bool right_outer, int stages, int staging_bytes, bool one_staging, bool gathered, bool relayed,
          bool together, bool few>
struct HopperShared : RelayStorage<relayed> {
  static constexpr int kStages = stages, kMaxRight = max_right;
  static constexpr bool kGathered = gathered, kRelayed = relayed, kTogether = together;
  static constexpr bool kFew = few;            // groups of few rows
  static constexpr bool kOverK = right_outer;  // weight gradients: K runs over rows
  // Notices of tiles. NOTE: with two of them a tile is claimed when the last but one is done. That is early enough for its
  // first copies where tiles are long, and late enough where a block has few of them: none lies claimed while others are idle.
  static constexpr int kSlots = few ? 2 : 4;
  static constexpr int kFirstConsumer = 1 + gathered;  // warpgroups before it feed
  static constexpr int kThreads = (kFirstConsumer + kConsumers) * kWarpgroup;
  static constexpr int kLeftTile = together ? 256 : 128;
  static constexpr int kBlock = 64 * kStepK * 2;  // a box of 64 rows
  static constexpr int kLeftBytes = kLeftTile * kStepK * 2;
  static constexpr int kRightBytes = right_outer ? (max_right + 63) / 64 * kBlock : max_right * kStepK * 2;
  static constexpr int kStaging = staging_bytes;
  static constexpr bool kOneStaging = one_staging;  // the warpgroups take turns with it

  alignas(1024) char left[stages][kLeftBytes];
  char right[stages][kRightBytes];
  char staging[one_staging ? 1 : kConsumers][staging_bytes];
  TileNotice notices[kSlots];
  std::uint64_t claims[kClaimSlots];  // numbers of pairs, sent by the first block of the cluster
  // Barriers: full and empty come in pairs, one for who fills and one for who has read.
  std::uint64_t stage_full[stages], stage_empty[stages];
  std::uint64_t notice_full[kSlots], notice_empty[kSlots];
  std::uint64_t claim_full[kClaimSlots], claim_empty[kClaimSlots];
  std::uint64_t staging_turn[kConsumers];  // with one staging: the other warpgroup is done with it
  std::uint64_t dots_read[kConsumers];     // where rows are gathered: the warpgroup has read those of x for its inner products

  static_assert(kLeftBytes % 1024 == 0 && kRightBytes % 1024 == 0 && staging_bytes % 1024 == 0, "the swizzle's blocks");
};

// Place and parity of a ring's n-th use.
template <int places>
struct RingPlace {
  std::uint32_t at, parity;
  __device__ __forceinline__ explicit RingPlace(std::uint32_t n) : at(n % places), parity(n / places & 1) {}
  __device__ __forceinline__ void next() {
    if (++at == places) {
      at = 0;
      parity ^= 1;
    }
  }
};

}  // namespace ggm::cuda
