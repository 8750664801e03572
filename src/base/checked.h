// Arithmetic on sizes that remembers an overflow instead of wrapping. All sizes of the library are 64-bit.
#pragma once

#include <cstdint>

namespace ggm {

// A non-negative size. Once an operation overflows int64, `overflow` stays set and `value` is meaningless.
struct Checked {
  std::int64_t value = 0;
  bool overflow = false;

  constexpr Checked() = default;
  constexpr Checked(std::int64_t v) : value(v) {}  // NOLINT: sizes convert silently on purpose
};

inline Checked operator*(Checked a, Checked b) {
  Checked r;
  r.overflow = __builtin_mul_overflow(a.value, b.value, &r.value) || a.overflow || b.overflow;
  return r;
}
inline Checked operator+(Checked a, Checked b) {
  Checked r;
  r.overflow = __builtin_add_overflow(a.value, b.value, &r.value) || a.overflow || b.overflow;
  return r;
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }
constexpr std::int64_t min64(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t max64(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

}  // namespace ggm
