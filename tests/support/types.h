// Element types of the tests and exact conversions, written apart from the library's: one rounding (to nearest, ties to even)
// straight from float64. Integer arrays (ids, sizes, faults) are elements too, so one Tensor class serves all.
#pragma once

#include <cstdint>

#include "ggm/ggm.h"

namespace ggm_test {

// Element kinds beyond GGM_TYPE_*.
enum : std::int32_t { kInt32 = 101, kInt64 = 102, kUint32 = 103 };

constexpr bool is_integer(std::int32_t type) { return type >= kInt32; }
constexpr bool is_16bit(std::int32_t type) { return type == GGM_TYPE_BFLOAT16 || type == GGM_TYPE_FLOAT16; }
constexpr std::int32_t index_element(std::int32_t index_type) { return index_type == GGM_INDEX_INT64 ? kInt64 : kInt32; }
constexpr std::int32_t accumulator(std::int32_t type) { return type == GGM_TYPE_FLOAT64 ? GGM_TYPE_FLOAT64 : GGM_TYPE_FLOAT32; }

int bytes_of(std::int32_t type);
const char* name_of(std::int32_t type);  // f32, bf16, f16, f64, i32, i64, u32

// The bits of `value` rounded to `type`, and the value of bits. Subnormals are kept; overflow gives infinity; NaN a quiet NaN.
std::uint64_t encode(std::int32_t type, double value);
double decode(std::int32_t type, std::uint64_t bits);
// decode(encode(value)): `value` rounded to `type`. 0 (GGM_TYPE_DEFAULT) rounds nothing.
double round_to(std::int32_t type, double value);
inline double f32(double value) { return static_cast<float>(value); }

// The types that products take, in the order of every table.
inline constexpr std::int32_t kFloatTypes[] = {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16, GGM_TYPE_FLOAT64};

}  // namespace ggm_test
