// Inputs by rule: small integers from a hash of the indices, so that every sum below 2^24 is exact in float32 in any order, and
// random numbers from a fixed generator. Two experts or two rows are never equal, unlike with a linear rule.
#pragma once

#include <cmath>
#include <cstdint>

#include "support/types.h"

namespace ggm_test {

constexpr std::uint32_t mix(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t h = a * 2971215073u + b * 1405695061u + c * 3141592653u + 2718281829u;
  h ^= h >> 15;
  h *= 1597334677u;
  h ^= h >> 13;
  h *= 3812015801u;
  h ^= h >> 16;
  return h;
}

// Rows of x, A or dy: -3 .. 3.
constexpr int P(std::int64_t row, std::int64_t column) {
  return static_cast<int>(mix(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column), 0) % 7) - 3;
}
// A second row operand (B of a variable-K product).
constexpr int P2(std::int64_t row, std::int64_t column) { return P(row + 1000000, column); }
// Weights [expert, n, k]: -2 .. 2.
constexpr int Q(std::int64_t expert, std::int64_t n, std::int64_t k) {
  return static_cast<int>(
             mix(static_cast<std::uint32_t>(expert), static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(k + 1)) % 5) -
         2;
}
// Bias [expert, n]: -4 .. 4.
constexpr int bias_rule(std::int64_t expert, std::int64_t n) {
  return static_cast<int>(mix(static_cast<std::uint32_t>(expert), static_cast<std::uint32_t>(n), 77777u) % 9) - 4;
}
// Routing weights that keep every product exact: 2^-((t+j) mod 4).
inline double power_weight(std::int64_t token, std::int64_t slot) {
  return std::ldexp(1.0, -static_cast<int>((token + slot) % 4));
}

// TAG weights (K = N): (expert+1) * identity, so an output row is its input times the number of its expert. In the 16-bit
// types, which hold integers to 256 only, even places of the diagonal hold (expert mod 128) + 1 and odd ones floor(expert/128)
// + 1.
constexpr double tag_weight(std::int32_t type, std::int64_t expert, std::int64_t n, std::int64_t k) {
  if (n != k) return 0;
  if (!is_16bit(type)) return static_cast<double>(expert + 1);
  return static_cast<double>(n % 2 == 0 ? expert % 128 + 1 : expert / 128 + 1);
}

// Uniform in [-1, 1) with 24 bits, from indices: the same on every machine and backend.
constexpr double uniform(std::uint32_t stream, std::int64_t row, std::int64_t column) {
  const std::uint32_t bits = mix(static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column), stream + 1000u);
  return static_cast<double>(bits >> 8) / 8388608.0 - 1.0;
}

}  // namespace ggm_test
