#include "host/moe_product.h"

namespace ggm::host {
namespace {

// Bias of one tile's columns in the accumulator type; nullptr without bias.
template <typename T>
const T* tile_bias(const Family& family, const RowProduct& p, std::int64_t expert, const Tile& tile, T* buffer) {
  if (p.bias == nullptr) return nullptr;
  return view(family, p.bias_type, p.bias, expert * p.bias_stride + tile.j0, tile.columns, buffer);
}

template <typename T>
void store_dots(const Family& family, const Rows& rows, const RowProduct& p, std::int64_t r, const Tile& tile,
                const T* values) {
  const std::int64_t x_row = p.x_grouped ? r : rows.row_token[r];
  T* dots = static_cast<T*>(p.dots) + r * ceil_div(p.n, kDotColumns) + tile.j0 / kDotColumns;
  T buffer[kDotColumns];
  for (int j = 0; j < tile.columns; j += kDotColumns) {
    const int columns = static_cast<int>(min64(tile.columns - j, kDotColumns));
    const T* x = view(family, p.x_type, p.x, x_row * p.x_ld + tile.j0 + j, columns, buffer);
    *dots++ = family.micro<T>().dot(values + j, x, columns);
  }
}

// One finished row of accumulators, `values`, which it may overwrite.
template <typename T>
void finish_row(const Family& family, const Rows& rows, const RowProduct& p, std::int64_t r, const Tile& tile, const T* bias,
                T* values) {
  const std::int64_t token = rows.row_token[r];
  if (token < 0) return;
  if (p.dots != nullptr) store_dots(family, rows, p, r, tile, values);
  if (p.kind == RowOutput::none) return;
  const int n = tile.columns;
  if (bias != nullptr)
    for (int j = 0; j < n; ++j) values[j] = values[j] + bias[j];
  if (p.kind == RowOutput::products) return store(family, p.output_type, p.output, r * p.output_ld + tile.j0, n, values);
  round_to(family, p.product_type, n, values);
  if (const T* weights = rows.weights<T>(); weights != nullptr) {
    const T weight = weights[r];
    for (int j = 0; j < n; ++j) values[j] = weight * values[j];
  }
  if (p.kind == RowOutput::ordered) {
    T* sum = p.sums == nullptr ? static_cast<T*>(p.output) + token * p.output_ld : static_cast<T*>(p.sums) + token * p.n;
    for (int j = 0; j < n; ++j) sum[tile.j0 + j] = sum[tile.j0 + j] + values[j];
    return;
  }
  const std::int64_t at = r * p.output_ld + tile.j0;
  if (p.add) {
    T buffer[kRun];
    const T* old = view(family, p.output_type, p.output, at, n, buffer);
    for (int j = 0; j < n; ++j) values[j] = old[j] + values[j];
  }
  store(family, p.output_type, p.output, at, n, values);
}

template <typename T>
void run_row_tile(const Engine& engine, const Rows& rows, const RowProduct& p, std::int64_t expert, const Tile& tile,
                  const Scratch<T>& scratch) {
  const std::int64_t first = rows.group_offsets[expert];
  Operand a, b;
  if (p.k > 0) {
    a = row_operand(rows, p.a, p.a_type, p.a_ld, p.a_grouped, first);
    b.data = element(p.b, p.b_type, expert * p.b_stride);
    b.type = p.b_type;
    b.ld = p.b_ld;
    b.order = p.b_order;
  }
  multiply_tile(engine.family, a, b, tile, p.k, scratch);
  T buffer[kRun];
  const T* bias = tile_bias(engine.family, p, expert, tile, buffer);
  for (int i = 0; i < tile.rows; ++i)
    finish_row(engine.family, rows, p, first + tile.i0 + i, tile, bias, scratch.tile + i * kHostBlocking.columns);
}

// Tiles of all experts in any order: each is stored to memory of its own.
template <typename T>
void run_tiles(const Engine& engine, const Rows& rows, const RowProduct& p, int threads) {
  std::int64_t row_tiles = 0;
  for (std::int64_t e = 0; e < p.experts; ++e)
    row_tiles += ceil_div(rows.group_offsets[e + 1] - rows.group_offsets[e], kHostBlocking.rows);
  if (row_tiles == 0) return;
  const int columns = tile_columns(row_tiles, p.n, threads);
  std::atomic<std::int64_t> next_tile{0};
  engine.pool.run(threads, [&](int thread) {
    const Scratch<T> scratch(p.scratch, thread);
    std::int64_t before = 0, mine = next_tile++;
    for (std::int64_t e = 0; e < p.experts; ++e) {
      const TileGrid grid{rows.group_offsets[e + 1] - rows.group_offsets[e], p.n, columns};
      const std::int64_t count = grid.count();
      for (; mine < before + count; mine = next_tile++) run_row_tile(engine, rows, p, e, grid.tile(mine - before), scratch);
      before += count;
    }
  });
}

// The sums start at the old output, or at -0: x + -0 is x for every x, so the first product starts the sum, whatever its sign.
template <typename T>
void start_sums(const Family& family, const Rows& rows, const RowProduct& p, std::int64_t j0, std::int64_t n) {
  if (p.add && p.sums == nullptr) return;
  for (std::int64_t t = 0; t < rows.real_tokens; ++t) {
    T* sum = p.sums == nullptr ? static_cast<T*>(p.output) + t * p.output_ld : static_cast<T*>(p.sums) + t * p.n;
    if (p.add)
      load(family, p.output_type, p.output, t * p.output_ld + j0, n, sum + j0);
    else
      for (std::int64_t j = 0; j < n; ++j) sum[j0 + j] = static_cast<T>(-0.0);
  }
}

bool has_row(const Rows& rows, std::int64_t t, std::int64_t top_k) {
  for (std::int64_t j = 0; j < top_k; ++j)
    if (rows.assignment_row[t * top_k + j] >= 0) return true;
  return false;
}

template <typename T>
void finish_sums(const Family& family, const Rows& rows, const RowProduct& p, std::int64_t j0, std::int64_t n) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const std::int64_t at = t * p.output_ld + j0;
    const bool real = t < rows.real_tokens;
    if (real && has_row(rows, t, p.top_k)) {
      if (p.sums != nullptr) store(family, p.output_type, p.output, at, n, static_cast<const T*>(p.sums) + t * p.n + j0);
    } else if (real ? !p.add : !p.keep_unused) {
      store_zeros(p.output_type, p.output, at, n);
    }
  }
}

// Rows of one token meet in one sum, so a thread owns a block of columns and takes the rows in their order.
template <typename T>
void run_ordered(const Engine& engine, const Rows& rows, const RowProduct& p, int threads) {
  const int columns = tile_columns(1, p.n, threads);
  engine.pool.for_ranges(threads, ceil_div(p.n, columns), 1, [&](std::int64_t block, std::int64_t, int thread) {
    const Scratch<T> scratch(p.scratch, thread);
    const std::int64_t j0 = block * columns, n = min64(columns, p.n - j0);
    start_sums<T>(engine.family, rows, p, j0, n);
    for (std::int64_t e = 0; e < p.experts; ++e) {
      const std::int64_t count = rows.group_offsets[e + 1] - rows.group_offsets[e];
      for (std::int64_t i0 = 0; i0 < count; i0 += kHostBlocking.rows) {
        const Tile tile{i0, j0, static_cast<int>(min64(count - i0, kHostBlocking.rows)), static_cast<int>(n)};
        run_row_tile(engine, rows, p, e, tile, scratch);
      }
    }
    finish_sums<T>(engine.family, rows, p, j0, n);
  });
}

void zero_unused_rows(const Rows& rows, const RowProduct& p) {
  for (std::int64_t r = 0; r < p.max_rows; ++r)
    if (rows.row_token[r] < 0) store_zeros(p.output_type, p.output, r * p.output_ld, p.n);
}

}  // namespace

Operand row_operand(const Rows& rows, const void* base, Type type, std::int64_t ld, bool grouped, std::int64_t first) {
  Operand x;
  x.type = type;
  x.ld = ld;
  x.data = grouped ? element(base, type, first * ld) : base;
  (grouped ? x.valid : x.rows) = rows.row_token + first;
  return x;
}

template <typename T>
void run_row_product(const Engine& engine, const Rows& rows, const RowProduct& p) {
  if (p.n == 0) return;
  const std::int64_t count = rows.group_offsets[p.experts] - rows.group_offsets[0];
  const int threads = threads_for(work_of(count, p.n, p.k + 1), p.threads);
  if (p.kind == RowOutput::ordered) return run_ordered<T>(engine, rows, p, threads);
  if (p.kind == RowOutput::grouped && !p.keep_unused) zero_unused_rows(rows, p);
  run_tiles<T>(engine, rows, p, threads);
}

template void run_row_product<float>(const Engine&, const Rows&, const RowProduct&);
template void run_row_product<double>(const Engine&, const Rows&, const RowProduct&);

}  // namespace ggm::host
