#include "host/product.h"

#include "plan/plan.h"

namespace ggm::host {

static_assert(kHostBlocking.rows % 12 == 0 && kHostBlocking.columns % 64 == 0 && kHostBlocking.columns % kDotColumns == 0,
              "a tile holds whole micro-tiles of every family and whole blocks of inner products");

int tile_columns(std::int64_t row_tiles, std::int64_t n, int threads) {
  int columns = kHostBlocking.columns;
  while (columns > 64 && row_tiles * ceil_div(n, columns) < 3 * std::int64_t{threads}) columns /= 2;
  return columns;
}

template <typename T>
void multiply_tile(const Family& family, const Operand& a, const Operand& b, const Tile& tile, std::int64_t inner,
                   const Scratch<T>& scratch) {
  constexpr int kLd = kHostBlocking.columns;
  const MicroKernels<T>& micro = family.micro<T>();
  if (inner == 0) std::memset(scratch.tile, 0, sizeof(T) * kLd * tile.rows);
  for (std::int64_t kk = 0; kk < inner; kk += kHostBlocking.inner) {
    const int steps = static_cast<int>(min64(inner - kk, kHostBlocking.inner));
    pack(family, a, tile.i0, tile.rows, kk, steps, micro.rows, scratch.a);
    pack(family, b, tile.j0, tile.columns, kk, steps, micro.columns, scratch.b);
    for (int j = 0; j < tile.columns; j += micro.columns) {
      for (int i = 0; i < tile.rows; i += micro.rows) {
        const int rows = tile.rows - i < micro.rows ? tile.rows - i : micro.rows;
        micro.multiply(rows, steps, kk > 0, scratch.a + i * steps, scratch.b + j * steps, scratch.tile + i * kLd + j, kLd);
      }
    }
  }
}

template <typename T>
void run_product_tile(const Family& family, const Product& product, const StoreEpilogue& epilogue, const Tile& tile,
                      const Scratch<T>& scratch) {
  multiply_tile(family, product.a, product.b, tile, product.k, scratch);
  const T alpha = static_cast<T>(epilogue.alpha), beta = static_cast<T>(epilogue.beta);
  const bool use_beta = epilogue.beta != 0;
  // An empty sum is +0 whatever the sign of alpha.
  const bool use_alpha = epilogue.alpha != 1 && product.k > 0;
  T buffer[kRun];
  for (int i = 0; i < tile.rows; ++i) {
    T* row = scratch.tile + i * kHostBlocking.columns;
    const std::int64_t memory_row = product.cd_rows == nullptr ? tile.i0 + i : product.cd_rows[tile.i0 + i];
    if (use_alpha)
      for (int j = 0; j < tile.columns; ++j) row[j] = alpha * row[j];
    if (use_beta) {
      const T* c = view(family, epilogue.c_type, product.c, memory_row * product.ldc + tile.j0, tile.columns, buffer);
      for (int j = 0; j < tile.columns; ++j) row[j] = row[j] + beta * c[j];
    }
    store(family, epilogue.d_type, product.d, memory_row * product.ldd + tile.j0, tile.columns, row);
  }
}

template void multiply_tile<float>(const Family&, const Operand&, const Operand&, const Tile&, std::int64_t,
                                   const Scratch<float>&);
template void multiply_tile<double>(const Family&, const Operand&, const Operand&, const Tile&, std::int64_t,
                                    const Scratch<double>&);
template void run_product_tile<float>(const Family&, const Product&, const StoreEpilogue&, const Tile&, const Scratch<float>&);
template void run_product_tile<double>(const Family&, const Product&, const StoreEpilogue&, const Tile&,
                                       const Scratch<double>&);

}  // namespace ggm::host
