// src/base: sizes that remember overflow, 16-bit conversions, texts, log.
#include "base/checked.h"
#include "base/convert.h"
#include "base/log.h"
#include "base/status.h"
#include "base/types.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "support/test.h"

using namespace ggm;

namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

// The value of a binary format with `mantissa` bits, bias and all, by definition.
double decode(std::uint32_t bits, int mantissa_bits, int exponent_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double fraction = std::ldexp(static_cast<double>(bits & ((1u << mantissa_bits) - 1)), -mantissa_bits);
  const double sign = bits >> (mantissa_bits + exponent_bits) & 1 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1 + fraction, exponent - bias);
}

}  // namespace

TEST_CASE("checked sizes: an overflow anywhere stays", "[host]") {
  CHECK_FALSE((Checked(3) * Checked(4) + Checked(5)).overflow);
  CHECK((Checked(3) * Checked(4) + Checked(5)).value == 17);
  CHECK((Checked(kMax) + Checked(1)).overflow);
  CHECK((Checked(kMax / 2 + 1) * Checked(2)).overflow);
  CHECK(((Checked(kMax) * Checked(2)) * Checked(0) + Checked(1)).overflow);
  CHECK_FALSE((Checked(kMax) * Checked(1)).overflow);
  CHECK(ceil_div(0, 8) == 0);
  CHECK(ceil_div(1, 8) == 1);
  CHECK(ceil_div(16, 8) == 2);
  CHECK(ceil_div(kMax, 1) == kMax);
}

TEST_CASE("16-bit types: every code decodes to its definition and converts back to itself", "[host]") {
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    const auto h = static_cast<std::uint16_t>(code);
    const double b = decode(code, 7, 8), f = decode(code, 10, 5);
    INFO("code " << code);
    if (std::isnan(b)) {
      REQUIRE(std::isnan(bfloat16_to_float(h)));
      REQUIRE(std::isnan(bfloat16_to_float(float_to_bfloat16(bfloat16_to_float(h)))));
    } else {
      REQUIRE(static_cast<double>(bfloat16_to_float(h)) == b);
      REQUIRE(float_to_bfloat16(bfloat16_to_float(h)) == h);
    }
    if (std::isnan(f)) {
      REQUIRE(std::isnan(float16_to_float(h)));
      REQUIRE(std::isnan(float16_to_float(float_to_float16(float16_to_float(h)))));
    } else {
      REQUIRE(static_cast<double>(float16_to_float(h)) == f);
      REQUIRE(float_to_float16(float16_to_float(h)) == h);
    }
  }
}

TEST_CASE("16-bit types: halfway values go to the even neighbour, the rest to the nearer", "[host]") {
  for (std::uint32_t code = 0; code < 0x7c00; ++code) {
    const double low = decode(code, 10, 5);
    const double high = code == 0x7bff ? 65536.0 : decode(code + 1, 10, 5);
    const auto middle = static_cast<float>((low + high) / 2);
    INFO("float16 code " << code);
    REQUIRE(float_to_float16(middle) == (code & 1 ? code + 1 : code));
    REQUIRE(float_to_float16(std::nextafter(middle, 0.0f)) == code);
    REQUIRE(float_to_float16(std::nextafter(middle, INFINITY)) == code + 1);
    REQUIRE(float_to_float16(-middle) == (0x8000u | (code & 1 ? code + 1 : code)));
  }
  for (std::uint32_t code = 0; code < 0x7f80; code += 7) {
    const float middle = bits_to_float((code << 16) | 0x8000u);
    INFO("bfloat16 code " << code);
    REQUIRE(float_to_bfloat16(middle) == (code & 1 ? code + 1 : code));
    REQUIRE(float_to_bfloat16(bits_to_float((code << 16) | 0x7fffu)) == code);
    REQUIRE(float_to_bfloat16(bits_to_float((code << 16) | 0x8001u)) == code + 1);
  }
}

TEST_CASE("the type table: sizes, accumulators, names", "[host]") {
  for (const TypeRow& row : kTypes) {
    CHECK(bytes_of(row.type) == row.bytes);
    CHECK(accumulator_of(row.type) == row.accumulator);
    CHECK(std::string(name_of(row.type)) == row.name);
    CHECK(is_16bit(row.type) == (row.bytes == 2));
  }
  CHECK(bytes_of(Type::none) == 0);
  CHECK(find_type(static_cast<Type>(99)) == nullptr);
}

TEST_CASE("last error: its own text in every thread", "[host]") {
  CHECK(fail(GGM_STATUS_INVALID_VALUE, "tokens = %d; must be at least %d", -3, 0) == GGM_STATUS_INVALID_VALUE);
  std::string other = "unset";
  std::thread([&] {
    other = last_error();
    (void)fail(GGM_STATUS_OVERFLOW, "another text");
  }).join();
  CHECK(other.empty());
  CHECK(std::string(last_error()) == "tokens = -3; must be at least 0");
}

TEST_CASE("last error: a failure that a call gets over can be taken back", "[host]") {
  (void)fail(GGM_STATUS_INVALID_VALUE, "first");
  const KeptError before;
  (void)fail(GGM_STATUS_OVERFLOW, "a longer second text");
  before.put_back();
  CHECK(std::string(last_error()) == "first");
}

TEST_CASE("log: only lines at or below the level reach the callback", "[host]") {
  std::vector<std::string> lines;
  const auto callback = [](void* user, std::int32_t, const char* text) {
    static_cast<std::vector<std::string>*>(user)->push_back(text);
  };
  const Log log{GGM_LOG_PLAN, callback, &lines};
  log.line(GGM_LOG_ERROR, "error %d", 1);
  log.line(GGM_LOG_PLAN, "plan %s", "x");
  log.line(GGM_LOG_TRACE, "trace");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "error 1");
  CHECK(lines[1] == "plan x");
}
