// src/host/family: each instruction set computes the same bits as a plain loop with separate rounding of product and sum.
#include <cmath>
#include <cstring>
#include <string>

#include "base/convert.h"
#include "host_families.h"
#include "support/inputs.h"
#include "support/test.h"

using namespace ggm;
using namespace ggm::host;
using ggm_test::uniform;
using ggm_test::usable_families;

namespace {

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// A number whose products need rounding: full mantissas and exponents from 2^-20 to 2^20.
template <typename T>
T rough(std::uint32_t stream, std::int64_t i, std::int64_t j) {
  const int exponent =
      static_cast<int>(ggm_test::mix(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j), stream) % 41) - 20;
  return static_cast<T>(std::ldexp(uniform(stream, i, j) * (1 + 0x1p-30), exponent));
}

template <typename T>
void check_multiply(const Family& family) {
  const MicroKernels<T>& micro = family.micro<T>();
  const int ld = micro.columns + 3;
  for (int rows = 1; rows <= micro.rows; ++rows) {
    for (int inner : {1, 2, 7, 64, 257}) {
      for (bool add : {false, true}) {
        INFO(family.name << " rows " << rows << " inner " << inner << " add " << add << " bytes " << sizeof(T));
        std::vector<T> a, b, tile, expected;
        for (int k = 0; k < inner; ++k)
          for (int i = 0; i < micro.rows; ++i) a.push_back(rough<T>(1, k, i));
        for (int k = 0; k < inner; ++k)
          for (int j = 0; j < micro.columns; ++j) b.push_back(rough<T>(2, k, j));
        for (int i = 0; i < micro.rows * ld; ++i) tile.push_back(rough<T>(3, i, 0));
        expected = tile;
        for (int i = 0; i < rows; ++i) {
          for (int j = 0; j < micro.columns; ++j) {
            T sum = add ? tile[i * ld + j] : T(0);
            for (int k = 0; k < inner; ++k) {
              const T product = a[k * micro.rows + i] * b[k * micro.columns + j];
              sum = sum + product;
            }
            expected[i * ld + j] = sum;
          }
        }
        micro.multiply(rows, inner, add, a.data(), b.data(), tile.data(), ld);
        REQUIRE(same_bits(tile, expected));  // and nothing outside rows x columns was touched
      }
    }
  }
}

template <typename T>
T dot_by_definition(const T* u, const T* v, int columns) {
  const auto two_terms = [&](int i) {
    T sum = 0;
    for (int c : {i / 8 * 16 + i % 8, i / 8 * 16 + i % 8 + 8})
      if (c < columns) sum = std::fma(u[c], v[c], sum);
    return sum;
  };
  // The sum of s_i of i = first .. first + count - 1: of its two halves.
  const auto sum_of = [&](const auto& self, int first, int count) -> T {
    return count == 1 ? two_terms(first) : self(self, first, count / 2) + self(self, first + count / 2, count / 2);
  };
  return sum_of(sum_of, 0, 32);
}

template <typename T>
void check_dot(const Family& family) {
  for (int columns = 1; columns <= 64; ++columns) {
    T u[64], v[64];
    for (int c = 0; c < 64; ++c) u[c] = rough<T>(4, columns, c), v[c] = rough<T>(5, columns, c);
    INFO(family.name << " columns " << columns);
    const T got = family.micro<T>().dot(u, v, columns), expected = dot_by_definition(u, v, columns);
    REQUIRE(std::memcmp(&got, &expected, sizeof(T)) == 0);
  }
}

}  // namespace

TEST_CASE("host families: the plain one is always there and ids resolve to their own tables", "[host]") {
  REQUIRE_FALSE(usable_families().empty());
  CHECK(usable_families().front()->id == GGM_KERNELS_HOST_PLAIN);
  for (const Family* family : usable_families()) CHECK(host::family(family->id).id == family->id);
}

TEST_CASE("host families: micro-kernels equal a plain loop bit for bit, all heights and tails", "[host]") {
  for (const Family* family : usable_families()) {
    check_multiply<float>(*family);
    check_multiply<double>(*family);
  }
}

TEST_CASE("host families: inner products follow the written order with fused multiply-adds", "[host]") {
  for (const Family* family : usable_families()) {
    check_dot<float>(*family);
    check_dot<double>(*family);
  }
}

TEST_CASE("host families: all 65536 patterns of both 16-bit types convert exactly, at every alignment and tail", "[host]") {
  for (const Family* family : usable_families()) {
    for (int count : {65536, 7}) {
      std::vector<std::uint16_t> in;
      for (int i = 0; i < count; ++i) in.push_back(static_cast<std::uint16_t>(count == 7 ? 0x3c00 + i * 321 : i));
      std::vector<float> half(count + 1, -7.0f), brain(count + 1, -7.0f);
      family->float_from_float16(in.data(), count, half.data());
      family->float_from_bfloat16(in.data(), count, brain.data());
      int wrong = 0;
      for (int i = 0; i < count; ++i) {
        const float half_expected = float16_to_float(in[i]), brain_expected = bfloat16_to_float(in[i]);
        // The instruction makes signalling NaNs quiet; any NaN is right.
        wrong += std::isnan(half_expected) ? !std::isnan(half[i]) : float_to_bits(half[i]) != float_to_bits(half_expected);
        wrong += float_to_bits(brain[i]) != float_to_bits(brain_expected);
      }
      INFO(family->name << " count " << count);
      CHECK(wrong == 0);
      CHECK(half[count] == -7.0f);
      CHECK(brain[count] == -7.0f);
    }
  }
}

TEST_CASE("host families: floats round to both 16-bit types as the scalar conversions do", "[host]") {
  std::vector<float> in = {0.0f,
                           -0.0f,
                           65504.0f,
                           65519.996f,
                           65520.0f,
                           -65520.0f,
                           0x1p-24f,
                           0x1p-25f,
                           0x1.8p-25f,
                           -0x1p-25f,
                           0x1p-14f,
                           0x1.ffcp-15f,
                           INFINITY,
                           -INFINITY,
                           bits_to_float(0x7fc12345u),
                           bits_to_float(0xffa00001u),
                           3.38953139e38f,
                           3.4028235e38f,
                           0x1p-140f,
                           1.00390625f,
                           1.01171875f};
  for (int i = 0; i < 200000; ++i) in.push_back(bits_to_float(ggm_test::mix(static_cast<std::uint32_t>(i), 1, 2)));
  for (int i = 0; i < 200000; ++i) in.push_back(rough<float>(9, i, 0));
  const auto count = static_cast<std::int64_t>(in.size());
  REQUIRE(count % 8 != 0);  // the last vector is a tail
  for (const Family* family : usable_families()) {
    std::vector<std::uint16_t> half(in.size() + 1, 0xabcd), brain(in.size() + 1, 0xabcd);
    family->float16_from_float(in.data(), count, half.data());
    family->bfloat16_from_float(in.data(), count, brain.data());
    int wrong = 0;
    for (std::int64_t i = 0; i < count; ++i)
      wrong += half[i] != float_to_float16(in[i]) || brain[i] != float_to_bfloat16(in[i]);
    INFO(family->name);
    CHECK(wrong == 0);
    CHECK(half.back() == 0xabcd);
    CHECK(brain.back() == 0xabcd);
  }
}
