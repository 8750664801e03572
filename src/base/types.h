// The data-type table: one row a type. Loops over types (tests, benches, plans) walk it.
#pragma once

#include <cstdint>

#include "ggm/ggm.h"

#if defined(__CUDACC__)
#define GGM_HD __host__ __device__
#else
#define GGM_HD
#endif

namespace ggm {

enum class Type : std::int32_t {
  none = GGM_TYPE_DEFAULT,
  float32 = GGM_TYPE_FLOAT32,
  bfloat16 = GGM_TYPE_BFLOAT16,
  float16 = GGM_TYPE_FLOAT16,
  float64 = GGM_TYPE_FLOAT64,
};

struct TypeRow {
  Type type;
  const char* name;
  int bytes;
  Type accumulator;  // products of this type are summed in it
};

inline constexpr TypeRow kTypes[] = {
    {Type::float32, "float32", 4, Type::float32},
    {Type::bfloat16, "bfloat16", 2, Type::float32},
    {Type::float16, "float16", 2, Type::float32},
    {Type::float64, "float64", 8, Type::float64},
};

constexpr const TypeRow* find_type(Type type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return &row;
  return nullptr;
}

// 0 for Type::none.
constexpr GGM_HD int bytes_of(Type type) {
  return type == Type::none ? 0 : type == Type::float32 ? 4 : type == Type::float64 ? 8 : 2;
}
constexpr const char* name_of(Type type) { return find_type(type) ? find_type(type)->name : "none"; }
constexpr GGM_HD bool is_16bit(Type type) { return type == Type::bfloat16 || type == Type::float16; }
constexpr GGM_HD Type accumulator_of(Type type) { return type == Type::float64 ? Type::float64 : Type::float32; }

enum class IndexType : std::int32_t { none = 0, int32 = GGM_INDEX_INT32, int64 = GGM_INDEX_INT64 };
constexpr GGM_HD int bytes_of(IndexType type) { return type == IndexType::none ? 0 : type == IndexType::int32 ? 4 : 8; }

}  // namespace ggm
