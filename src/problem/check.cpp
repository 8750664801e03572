#include "problem/check.h"

namespace ggm::check {
namespace {

long long ll(std::int64_t v) { return static_cast<long long>(v); }

}  // namespace

ggm_status_t at_least(const char* field, std::int64_t value, std::int64_t low) {
  if (value >= low) return GGM_STATUS_SUCCESS;
  return fail(GGM_STATUS_INVALID_VALUE, "%s = %lld; must be at least %lld", field, ll(value), ll(low));
}

ggm_status_t range(const char* field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return GGM_STATUS_SUCCESS;
  return fail(GGM_STATUS_INVALID_VALUE, "%s = %lld; must be in %lld .. %lld", field, ll(value), ll(low), ll(high));
}

ggm_status_t size(const char* field, std::int64_t value, std::int64_t limit) {
  GGM_TRY(at_least(field, value, 0));
  if (value <= limit) return GGM_STATUS_SUCCESS;
  return fail(GGM_STATUS_LIMIT_EXCEEDED, "%s = %lld; this version's limit is %lld", field, ll(value), ll(limit));
}

ggm_status_t unused(const char* field, std::int64_t value, const char* because) {
  if (value == 0) return GGM_STATUS_SUCCESS;
  return fail(GGM_STATUS_RESERVED_NOT_ZERO, "%s = %lld; must be 0: %s", field, ll(value), because);
}

ggm_status_t flags(const char* field, std::uint32_t value, std::uint32_t allowed) {
  if ((value & ~allowed) == 0) return GGM_STATUS_SUCCESS;
  return fail(GGM_STATUS_INVALID_FLAGS, "%s = 0x%x; unknown here: 0x%x, allowed bits: 0x%x", field, value, value & ~allowed,
              allowed);
}

ggm_status_t enumeration(const char* field, std::int32_t value, std::int32_t last, bool required) {
  if (value >= (required ? 1 : 0) && value <= last) return GGM_STATUS_SUCCESS;
  if (required && value == 0) return fail(GGM_STATUS_INVALID_ENUM, "%s = 0; it is required, one of 1 .. %d", field, last);
  return fail(GGM_STATUS_INVALID_ENUM, "%s = %d; known values are %d .. %d", field, value, required ? 1 : 0, last);
}

ggm_status_t type(const char* field, std::int32_t value, bool required, Type* out) {
  GGM_TRY(enumeration(field, value, GGM_TYPE_FLOAT64, required));
  *out = static_cast<Type>(value);
  return GGM_STATUS_SUCCESS;
}

ggm_status_t compute_type(std::int32_t value) {
  GGM_TRY(enumeration("compute_type", value, GGM_COMPUTE_TF32X3));
  if (value == GGM_COMPUTE_EXACT) return GGM_STATUS_SUCCESS;
  return fail(GGM_STATUS_UNSUPPORTED, "compute_type = %d (%s); this version has exact arithmetic only, GGM_COMPUTE_EXACT = 0",
              value, value == GGM_COMPUTE_TF32 ? "TF32" : "three-product TF32");
}

ggm_status_t index_type(const char* field, std::int32_t value, bool required, IndexType* out) {
  GGM_TRY(enumeration(field, value, GGM_INDEX_INT64, required));
  *out = static_cast<IndexType>(value);
  return GGM_STATUS_SUCCESS;
}

ggm_status_t leading_dimension(const char* field, std::int64_t value, std::int64_t packed, std::int64_t* out) {
  if (value != 0 && value < packed)
    return fail(GGM_STATUS_INVALID_VALUE, "%s = %lld; must be 0 (packed) or at least %lld, the length of a row", field,
                ll(value), ll(packed));
  *out = value == 0 ? packed : value;
  return GGM_STATUS_SUCCESS;
}

ggm_status_t stride(const char* field, std::int64_t value, Checked packed, std::int64_t low, Shared shared, std::int64_t* out) {
  if (value == GGM_STRIDE_SHARED && shared == Shared::yes) {
    *out = 0;
    return GGM_STATUS_SUCCESS;
  }
  if (value == 0) {
    if (packed.overflow) return fail(GGM_STATUS_OVERFLOW, "%s: the packed size of one group exceeds 2^63-1 elements", field);
    *out = packed.value;
    return GGM_STATUS_SUCCESS;
  }
  if (value < low)
    return fail(GGM_STATUS_INVALID_VALUE, "%s = %lld; must be 0 (packed)%s or at least %lld, the length of a row", field,
                ll(value), shared == Shared::yes ? ", GGM_STRIDE_SHARED" : "", ll(low));
  *out = value;
  return GGM_STATUS_SUCCESS;
}

ggm_status_t extent(const char* tensor, std::int64_t groups, std::int64_t stride, std::int64_t rows, std::int64_t ld,
                    std::int64_t columns, int element_bytes) {
  // Also of an empty tensor: offsets of its groups and rows are computed even where nothing is read.
  const Checked elements =
      Checked(max64(groups - 1, 0)) * Checked(stride) + Checked(max64(rows - 1, 0)) * Checked(ld) + Checked(columns);
  if ((elements * Checked(element_bytes)).overflow)
    return fail(GGM_STATUS_OVERFLOW, "%s: %lld groups of stride %lld, %lld rows of leading dimension %lld exceed 2^63-1 bytes",
                tensor, ll(groups), ll(stride), ll(rows), ll(ld));
  return GGM_STATUS_SUCCESS;
}

ggm_status_t unsupported(const char* field, Type value, const char* rule) {
  return fail(GGM_STATUS_UNSUPPORTED, "%s = %d (%s); %s", field, static_cast<int>(value), name_of(value), rule);
}

}  // namespace ggm::check
