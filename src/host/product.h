// Products of groups, tile by tile: the block loop over packed panels, and the store epilogue of the bare grouped products and
// of weight gradients.
#pragma once

#include <atomic>

#include "host/engine.h"
#include "host/pack.h"

namespace ggm::host {

// One thread's part of the scratch region.
template <typename T>
struct Scratch {
  T* a;
  T* b;
  T* tile;  // [kHostBlocking.rows, kHostBlocking.columns]

  Scratch(void* region, int thread) {
    char* base = static_cast<char*>(region) + thread * host_scratch_bytes(sizeof(T));
    a = reinterpret_cast<T*>(base);
    b = a + kHostBlocking.rows * kHostBlocking.inner;
    tile = b + kHostBlocking.columns * kHostBlocking.inner;
  }
};

// Rows and columns of one tile.
struct Tile {
  std::int64_t i0, j0;
  int rows, columns;
};

// How an m x n result is cut into tiles. Bits never depend on it.
struct TileGrid {
  std::int64_t m, n;
  int columns;  // width of a tile

  std::int64_t row_tiles() const { return ceil_div(m, kHostBlocking.rows); }
  std::int64_t count() const { return row_tiles() * ceil_div(n, columns); }
  Tile tile(std::int64_t index) const {
    const std::int64_t i0 = index % row_tiles() * kHostBlocking.rows, j0 = index / row_tiles() * columns;
    return {i0, j0, static_cast<int>(min64(m - i0, kHostBlocking.rows)), static_cast<int>(min64(n - j0, columns))};
  }
};

// Narrower tiles when there would be too few to keep the threads busy; a multiple of 64 always.
int tile_columns(std::int64_t row_tiles, std::int64_t n, int threads);

// scratch.tile(i, j) = sum over kk ascending of A(i0 + i, kk) * B(j0 + j, kk); +0 when inner is 0.
template <typename T>
void multiply_tile(const Family& family, const Operand& a, const Operand& b, const Tile& tile, std::int64_t inner,
                   const Scratch<T>& scratch);

// One group of a grouped product.
struct Product {
  Operand a, b;
  std::int64_t m = 0, n = 0, k = 0;
  const void* c = nullptr;
  void* d = nullptr;
  std::int64_t ldc = 0, ldd = 0;
  const std::int32_t* cd_rows = nullptr;  // memory row of C and D for each row i; nullptr: i
};

struct StoreEpilogue {
  double alpha = 1, beta = 0;  // beta 0: C is not read
  Type c_type = Type::none, d_type = Type::none;
};

template <typename T>
void run_product_tile(const Family& family, const Product& product, const StoreEpilogue& epilogue, const Tile& tile,
                      const Scratch<T>& scratch);

// Computes every product that a walk gives. Walk is copied for each thread and has `bool next(Product*)`; every copy gives the
// same products in the same order, so tiles need no table: each thread walks, and claims tiles by their number from one
// counter.
template <typename T, typename Walk>
void run_products(const Engine& engine, int thread_limit, void* scratch_region, const Walk& walk,
                  const StoreEpilogue& epilogue) {
  std::int64_t row_tiles = 0, work = 0, widest = 0;
  Product product;
  for (Walk ahead = walk; ahead.next(&product);) {
    if (product.m == 0 || product.n == 0) continue;
    row_tiles += ceil_div(product.m, kHostBlocking.rows);
    widest = max64(widest, product.n);
    work = (Checked(work) + Checked(work_of(product.m, product.n, product.k + 1))).overflow
               ? INT64_MAX
               : work + work_of(product.m, product.n, product.k + 1);
  }
  if (row_tiles == 0) return;
  const int threads = threads_for(work, thread_limit);
  const int columns = tile_columns(row_tiles, widest, threads);
  std::atomic<std::int64_t> next_tile{0};
  engine.pool.run(threads, [&](int thread) {
    const Scratch<T> scratch(scratch_region, thread);
    std::int64_t before = 0, mine = next_tile++;
    Product group;
    for (Walk own = walk; own.next(&group);) {
      if (group.m == 0 || group.n == 0) continue;
      const TileGrid grid{group.m, group.n, columns};
      const std::int64_t count = grid.count();
      for (; mine < before + count; mine = next_tile++)
        run_product_tile(engine.family, group, epilogue, grid.tile(mine - before), scratch);
      before += count;
    }
  });
}

}  // namespace ggm::host
