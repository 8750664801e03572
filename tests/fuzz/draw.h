// The random choices of one round of the fuzzer. All of them follow from its seed, on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

#include "ggm/ggm.h"

namespace ggm_test::fuzz {

using Index = std::int64_t;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : bits_(seed) {}

  std::uint64_t bits() { return bits_(); }
  Index between(Index low, Index high) {
    return low + static_cast<Index>(bits_() % static_cast<std::uint64_t>(high - low + 1));
  }
  int choice(int low, int high) { return static_cast<int>(between(low, high)); }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <typename T>
  T any_of(std::initializer_list<T> values) {
    return *(values.begin() + between(0, static_cast<Index>(values.size()) - 1));
  }

  // Around the edges of tiles and vectors, now and then nothing, and rarely large.
  Index extent() {
    if (chance(8)) return between(60, 260);
    return any_of<Index>({0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 129});
  }
  // 0 for packed, or a leading dimension of that length or a little more.
  Index leading(Index packed) { return chance(50) ? 0 : packed + between(0, 5); }
  std::int32_t float_type() {
    return any_of<std::int32_t>(
        {GGM_TYPE_FLOAT32, GGM_TYPE_FLOAT32, GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16, GGM_TYPE_FLOAT64});
  }
  // The type of an output: by default, as the input, or float32 of 16-bit inputs.
  std::int32_t output_type(std::int32_t input) {
    if (input == GGM_TYPE_FLOAT32 || input == GGM_TYPE_FLOAT64) return any_of<std::int32_t>({0, input});
    return any_of<std::int32_t>({0, GGM_TYPE_FLOAT32, input});
  }
  // What an output held before: small integers, and -0.0, which adding +0.0 would change.
  double old_value() {
    const int value = choice(-4, 4);
    return value == 0 && chance(50) ? -0.0 : value;
  }
  // Numbers that break arithmetic, narrowing or a limit.
  Index hostile() {
    constexpr Index two32 = Index{1} << 32;
    return any_of<Index>({0,
                          -1,
                          -2,
                          1,
                          2,
                          3,
                          7,
                          INT32_MAX,
                          INT32_MIN,
                          two32 / 2,
                          two32,
                          two32 + 1,
                          -2 * two32,
                          two32 << 8,
                          two32 << 29,
                          two32 << 30,
                          INT64_MAX,
                          INT64_MIN,
                          GGM_MAX_EXPERTS,
                          GGM_MAX_EXPERTS + 1,
                          GGM_MAX_GROUPS,
                          GGM_MAX_GROUPS + 1,
                          GGM_MAX_TOP_K,
                          GGM_MAX_TOP_K + 1});
  }
  // The same as an element of a device array: int32, or int64 when wide.
  Index hostile_element(bool wide) { return wide ? hostile() : static_cast<std::int32_t>(hostile()); }

 private:
  std::mt19937_64 bits_;
};

}  // namespace ggm_test::fuzz
