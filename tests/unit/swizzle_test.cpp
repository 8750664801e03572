// The swizzle of operand tiles in shared memory (src/cuda/device/load/swizzle.h) and the kernel table that it serves.
#include "cuda/device/load/swizzle.h"

#include <set>

#include "cuda/device/tile_shape.h"
#include "plan/plan.h"
#include "support/test.h"

namespace {

template <int chunks>
void check_rows() {
  INFO(chunks << " chunks a row");
  for (int row = 0; row < 64; ++row) {
    std::set<int> places;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int at = ggm::cuda::swizzled_chunk<chunks>(row, chunk);
      REQUIRE(at >= 0);
      REQUIRE(at < chunks);
      places.insert(at);
      // Fragment loads take the swizzle of row % 8, add whole blocks of eight rows, and reach other chunks by an exclusive-or.
      REQUIRE(at == ggm::cuda::swizzled_chunk<chunks>(row % 8, chunk));
      REQUIRE(ggm::cuda::swizzled_offset<chunks>(row, chunk) == (row * chunks + at) * 16);
      for (int other = 0; other < chunks; ++other)
        REQUIRE(ggm::cuda::swizzled_offset<chunks>(row, chunk ^ other) ==
                (ggm::cuda::swizzled_offset<chunks>(row, chunk) ^ other * 16));
    }
    REQUIRE(places.size() == chunks);  // a permutation of the row
  }
  // ldmatrix: eight rows from a multiple of 8 on, the same chunk. Copies: eight neighbouring chunks in order.
  for (int row = 0; row < 64; row += 8)
    for (int chunk = 0; chunk < chunks; ++chunk) {
      std::set<int> read, written;
      for (int i = 0; i < 8; ++i) {
        read.insert(ggm::cuda::swizzled_offset<chunks>(row + i, chunk) / 16 % 8);
        const int place = row * chunks + chunk / 8 * 8 + i;
        written.insert(ggm::cuda::swizzled_offset<chunks>(place / chunks, place % chunks) / 16 % 8);
      }
      REQUIRE(read.size() == 8);
      REQUIRE(written.size() == 8);
    }
}

// Transposed float32 operands of 64 rows a warp: the address that a thread computes for its fours is the element's place.
template <int extent, int tile_k, int lanes, bool transposed>
void check_fours() {
  INFO(extent << " rows, steps of " << tile_k << ", " << lanes << " lanes, transposed " << transposed);
  for (int first = 0; first < extent; first += 32)
    for (int k = 0; k < tile_k; ++k)
      for (int lane = 0; lane < lanes; ++lane)
        for (int four = 0; first + 4 * lanes * (four + 1) <= extent; ++four) {
          const int row = first + 4 * lane + 4 * lanes * four;
          const std::uint32_t at = ggm::cuda::four_address<extent, tile_k, lanes, transposed>((first + 4 * lane) * 4, k, four);
          for (int e = 0; e < 4; ++e) {
            const int place =
                transposed ? ggm::cuda::transposed_offset<extent, tile_k>(k, row + e) : (k * extent + row + e) * 4;
            REQUIRE(static_cast<int>(at) + 4 * e == place);
          }
        }
}

template <int extent, int tile_k>
void check_transposed() {
  INFO(extent << " rows, steps of " << tile_k);
  std::set<int> places;
  for (int k = 0; k < tile_k; ++k)
    for (int row = 0; row < extent; ++row) {
      const int at = ggm::cuda::transposed_offset<extent, tile_k>(k, row);
      REQUIRE(at % 4 == 0);
      REQUIRE(at / (extent * 4) == k);
      places.insert(at);
    }
  REQUIRE(places.size() == static_cast<std::size_t>(tile_k * extent));
  // A store of a warp: element e of the chunks of K of 32 / (tile_k / 4) rows. A load: eight fours of one k.
  constexpr int kChunks = tile_k / 4, kRows = 32 / kChunks;
  for (int row = 0; row < extent; row += kRows)
    for (int e = 0; e < 4; ++e) {
      std::set<int> banks;
      for (int lane = 0; lane < 32; ++lane)
        banks.insert(ggm::cuda::transposed_offset<extent, tile_k>(lane % kChunks * 4 + e, row + lane / kChunks) / 4 % 32);
      REQUIRE(banks.size() == 32);
    }
  for (int k = 0; k < tile_k; ++k)
    for (int row = 0; row < extent; row += 32) {
      std::set<int> groups;
      for (int lane = 0; lane < 8; ++lane)
        groups.insert(ggm::cuda::transposed_offset<extent, tile_k>(k, row + 4 * lane) / 16 % 8);
      REQUIRE(groups.size() == 8);
    }
  check_fours<extent, tile_k, 4, true>();
  check_fours<extent, tile_k, 4, false>();
  check_fours<extent, tile_k, 8, true>();
  check_fours<extent, tile_k, 8, false>();
}

}  // namespace

TEST_CASE("swizzle: a permutation of each row, free of bank conflicts", "[host]") {
  check_rows<2>();
  check_rows<4>();
  check_rows<8>();
  check_rows<16>();
  check_rows<32>();
}

TEST_CASE("transposed operands: a permutation of each k, free of bank conflicts, found by the lanes", "[host]") {
  check_transposed<128, 8>();
  check_transposed<128, 16>();
  check_transposed<32, 16>();
}

TEST_CASE("kernel table: what the kernels rely on", "[host]") {
  for (const ggm::GemmKernel& row : ggm::kGemmKernels) {
    INFO(row.name);
    const ggm::cuda::TileShape shape = ggm::cuda::shape_of(row);
    CHECK(row.tile_n == ggm::kTurnColumns);     // one turn counter a tile and token
    CHECK(row.tile_n % ggm::kDotColumns == 0);  // no partial sum over two tiles
    CHECK(shape.threads() <= 1024);
    CHECK(row.tile_k <= shape.threads());                                  // one factor a thread when rows of K are scaled
    CHECK(row.stages >= (row.math == ggm::KernelMath::simple64 ? 1 : 3));  // a step is used, one arrives, one is issued
    CHECK(row.shared_bytes <= 99 * 1024);                                  // capabilities 8.6, 8.9 and 12.x
    CHECK(row.blocks >= 1);
    CHECK(row.tile_m % row.warps_m == 0);
    CHECK(row.tile_n % row.warps_n == 0);
    if (row.math == ggm::KernelMath::mma16) CHECK(row.tile_k % 32 == 0);   // whole pairs of k16 steps
    if (row.math == ggm::KernelMath::simt32) CHECK(16 % row.tile_k == 0);  // the same padding of K
  }
}
