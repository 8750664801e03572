// src/host/pack and product: every operand form packs to the same panels as its definition, and whole tiles agree between
// instruction sets.
#include "host/pack.h"

#include <cmath>
#include <cstring>

#include "base/convert.h"
#include "host/product.h"
#include "host_families.h"
#include "support/inputs.h"
#include "support/test.h"

using namespace ggm;
using namespace ggm::host;
using ggm_test::uniform;
using ggm_test::usable_families;

namespace {

constexpr int kLd = 300;

// A matrix of kLd columns in any type; rows listed in `poisoned` are NaN, so that reading one shows.
std::vector<char> matrix(Type type, int rows, const std::vector<int>& poisoned) {
  std::vector<char> bytes(static_cast<std::size_t>(rows) * kLd * bytes_of(type));
  for (int r = 0; r < rows; ++r) {
    bool bad = false;
    for (int p : poisoned) bad |= p == r;
    for (int c = 0; c < kLd; ++c) {
      const double value = bad ? NAN : uniform(11, r, c);
      char* to = bytes.data() + (static_cast<std::size_t>(r) * kLd + c) * bytes_of(type);
      if (type == Type::float64) {
        std::memcpy(to, &value, 8);
      } else if (type == Type::float32) {
        const float f = static_cast<float>(value);
        std::memcpy(to, &f, 4);
      } else {
        const float f = static_cast<float>(value);
        const std::uint16_t h = type == Type::bfloat16 ? float_to_bfloat16(f) : float_to_float16(f);
        std::memcpy(to, &h, 2);
      }
    }
  }
  return bytes;
}

double value_at(const std::vector<char>& bytes, Type type, std::int64_t index) {
  const char* from = bytes.data() + index * bytes_of(type);
  if (type == Type::float64) return *reinterpret_cast<const double*>(from);
  if (type == Type::float32) return *reinterpret_cast<const float*>(from);
  std::uint16_t h;
  std::memcpy(&h, from, 2);
  return type == Type::bfloat16 ? bfloat16_to_float(h) : float16_to_float(h);
}

// The rule for round_to(type, scale * value), one rounding to the accumulator type and one to the element's.
double scaled(Type type, double scale, double value) {
  if (type == Type::float64) return scale * value;
  const float product = static_cast<float>(scale) * static_cast<float>(value);
  if (type == Type::float32) return product;
  return type == Type::bfloat16 ? bfloat16_to_float(float_to_bfloat16(product)) : float16_to_float(float_to_float16(product));
}

struct PackCase {
  Type type;
  Order order;
  bool gathered, scaled_rows;
};

template <typename T>
void check_pack(const Family& family, const PackCase& c, int outer, int inner, int panel) {
  const int rows = 280;
  const std::vector<int> missing = {0, 5, 277};
  const std::vector<char> data = matrix(c.type, rows, missing);
  std::vector<std::int32_t> map(rows), valid(rows, 1);
  std::vector<T> scale(rows);
  for (int r = 0; r < rows; ++r) {
    map[r] = (r * 37 + 11) % rows;  // a permutation: 37 and 280 have no common factor
    scale[r] = static_cast<T>(uniform(12, r, 0));
  }
  for (int r = 0; r < rows; ++r)
    for (int m : missing) {
      if (map[r] == m) map[r] = -1;
      valid[m] = -1;
    }
  Operand x;
  x.data = data.data();
  x.type = c.type;
  x.ld = kLd;
  x.order = c.order;
  (c.gathered ? x.rows : x.valid) = c.gathered ? map.data() : valid.data();
  if (c.scaled_rows) x.scale = scale.data();

  const int outer0 = 3, inner0 = 2, panels = (outer + panel - 1) / panel;
  std::vector<T> packed(static_cast<std::size_t>(panels) * panel * inner + 1, T(77)), expected = packed;
  for (int p = 0; p < panels; ++p) {
    for (int kk = 0; kk < inner; ++kk) {
      for (int i = 0; i < panel; ++i) {
        const int o = p * panel + i;
        const bool strided = c.order == Order::inner_strided;
        const int logical = strided ? inner0 + kk : outer0 + o, column = strided ? outer0 + o : inner0 + kk;
        double value = 0;
        if (o < outer) {
          const int row = c.gathered ? map[logical] : valid[logical] < 0 ? -1 : logical;
          if (row >= 0) value = value_at(data, c.type, static_cast<std::int64_t>(row) * kLd + column);
          if (row >= 0 && c.scaled_rows) value = scaled(c.type, scale[logical], value);
        }
        expected[(static_cast<std::size_t>(p) * inner + kk) * panel + i] = static_cast<T>(value);
      }
    }
  }
  pack(family, x, outer0, outer, inner0, inner, panel, packed.data());
  INFO(family.name << " " << name_of(c.type) << " order " << static_cast<int>(c.order) << " gathered " << c.gathered
                   << " scaled " << c.scaled_rows << " outer " << outer << " inner " << inner << " panel " << panel);
  REQUIRE(std::memcmp(packed.data(), expected.data(), packed.size() * sizeof(T)) == 0);
}

template <typename T>
void check_packs(const Family& family, Type type) {
  const MicroKernels<T>& micro = family.micro<T>();
  for (Order order : {Order::inner_contiguous, Order::inner_strided})
    for (bool gathered : {false, true})
      for (bool scale : {false, true}) {
        if (scale && order == Order::inner_contiguous) continue;  // scaling belongs to the strided form
        for (int outer : {1, 5, 12, 33, 192, 255})
          for (int inner : {1, 3, 64, 67, 256})
            for (int panel : {micro.rows, micro.columns})
              check_pack<T>(family, {type, order, gathered, scale}, outer, inner, panel);
      }
}

template <typename T>
std::vector<T> tile_of(const Family& family, Type type, Order a_order, Order b_order, const Tile& tile, int inner) {
  const std::vector<char> a = matrix(type, 600, {}), b = matrix(type, 600, {});
  Operand x, y;
  x.data = a.data() + 2 * bytes_of(type);
  y.data = b.data() + 7 * bytes_of(type);
  x.type = y.type = type;
  x.ld = y.ld = kLd;
  x.order = a_order;
  y.order = b_order;
  std::vector<T> memory((host_scratch_bytes(sizeof(T)) + 7) / sizeof(T));
  const Scratch<T> scratch(memory.data(), 0);
  multiply_tile(family, x, y, tile, inner, scratch);
  std::vector<T> result;
  for (int i = 0; i < tile.rows; ++i)
    result.insert(result.end(), scratch.tile + i * kHostBlocking.columns,
                  scratch.tile + i * kHostBlocking.columns + tile.columns);
  return result;
}

}  // namespace

TEST_CASE("host pack: types, orders, gathered and missing rows, scaling, tails of panels", "[host]") {
  for (const Family* family : usable_families()) {
    check_packs<float>(*family, Type::float32);
    check_packs<float>(*family, Type::bfloat16);
    check_packs<float>(*family, Type::float16);
    check_packs<double>(*family, Type::float64);
  }
}

TEST_CASE("host product: whole tiles have the same bits in every family, whatever the tails", "[host]") {
  const Tile tiles[] = {{0, 0, 1, 1}, {0, 0, 13, 37}, {3, 5, 47, 130}, {1, 2, 191, 200}};
  for (Order a : {Order::inner_contiguous, Order::inner_strided})
    for (Order b : {Order::inner_contiguous, Order::inner_strided})
      for (const Tile& tile : tiles)
        for (int inner : {0, 1, 100, 256, 290}) {
          const Tile& t = tile;
          for (Type type : {Type::float32, Type::bfloat16, Type::float16}) {
            const std::vector<float> plain = tile_of<float>(kPlainFamily, type, a, b, t, inner);
            for (const Family* family : usable_families()) {
              INFO(family->name << " " << name_of(type) << " rows " << t.rows << " columns " << t.columns << " inner "
                                << inner);
              REQUIRE(std::memcmp(plain.data(), tile_of<float>(*family, type, a, b, t, inner).data(), plain.size() * 4) == 0);
            }
          }
          const std::vector<double> plain = tile_of<double>(kPlainFamily, Type::float64, a, b, t, inner);
          for (const Family* family : usable_families())
            REQUIRE(std::memcmp(plain.data(), tile_of<double>(*family, Type::float64, a, b, t, inner).data(),
                                plain.size() * 8) == 0);
        }
}

TEST_CASE("host product: an element does not depend on the tile around it", "[host]") {
  for (const Family* family : usable_families()) {
    const std::vector<float> whole =
        tile_of<float>(*family, Type::float32, Order::inner_contiguous, Order::inner_contiguous, {0, 0, 40, 70}, 290);
    for (int i : {0, 1, 11, 12, 39})
      for (int j : {0, 31, 32, 69}) {
        const std::vector<float> alone =
            tile_of<float>(*family, Type::float32, Order::inner_contiguous, Order::inner_contiguous, {i, j, 1, 1}, 290);
        INFO(family->name << " element " << i << "," << j);
        REQUIRE(float_to_bits(alone[0]) == float_to_bits(whole[i * 70 + j]));
      }
  }
}

TEST_CASE("host product: tiles of a grid cover every element once", "[host]") {
  for (std::int64_t m : {1, 191, 192, 193, 500})
    for (std::int64_t n : {1, 63, 64, 65, 700})
      for (int threads : {1, 2, 64}) {
        const TileGrid grid{m, n, tile_columns(ceil_div(m, kHostBlocking.rows), n, threads)};
        REQUIRE(grid.columns % 64 == 0);
        REQUIRE(grid.columns <= kHostBlocking.columns);
        std::vector<int> seen(static_cast<std::size_t>(m * n), 0);
        for (std::int64_t t = 0; t < grid.count(); ++t) {
          const Tile tile = grid.tile(t);
          REQUIRE(tile.rows <= kHostBlocking.rows);
          for (int i = 0; i < tile.rows; ++i)
            for (int j = 0; j < tile.columns; ++j) ++seen[static_cast<std::size_t>((tile.i0 + i) * n + tile.j0 + j)];
        }
        bool once = true;
        for (int count : seen) once &= count == 1;
        INFO("m " << m << " n " << n << " threads " << threads);
        REQUIRE(once);
      }
}
