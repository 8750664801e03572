// Checks of single fields. Each returns GGM_STATUS_SUCCESS or leaves a text with the field's name, its value and the limit.
// Used by the make_problem functions and by the tensor checks of src/api.
#pragma once

#include <cstdint>

#include "base/checked.h"
#include "base/status.h"
#include "base/types.h"

namespace ggm::check {

ggm_status_t at_least(const char* field, std::int64_t value, std::int64_t low);
ggm_status_t range(const char* field, std::int64_t value, std::int64_t low, std::int64_t high);
// 0 <= value (INVALID_VALUE) and value <= limit (LIMIT_EXCEEDED).
ggm_status_t size(const char* field, std::int64_t value, std::int64_t limit);
// A field that this mode does not use.
ggm_status_t unused(const char* field, std::int64_t value, const char* because);
ggm_status_t flags(const char* field, std::uint32_t value, std::uint32_t allowed);
// One of 0 .. last, or (with `required`) 1 .. last.
ggm_status_t enumeration(const char* field, std::int32_t value, std::int32_t last, bool required = false);
ggm_status_t type(const char* field, std::int32_t value, bool required, Type* out);
ggm_status_t compute_type(std::int32_t value);
ggm_status_t index_type(const char* field, std::int32_t value, bool required, IndexType* out);

// 0: packed; else at least `packed`.
ggm_status_t leading_dimension(const char* field, std::int64_t value, std::int64_t packed, std::int64_t* out);
enum class Shared { no, yes };
// Stride between groups: 0: `packed`; GGM_STRIDE_SHARED: 0 where allowed; else at least `low`.
ggm_status_t stride(const char* field, std::int64_t value, Checked packed, std::int64_t low, Shared shared, std::int64_t* out);

// Bytes of [groups, rows, columns] with the given strides fit 64 bits.
ggm_status_t extent(const char* tensor, std::int64_t groups, std::int64_t stride, std::int64_t rows, std::int64_t ld,
                    std::int64_t columns, int element_bytes);

ggm_status_t unsupported(const char* field, Type value, const char* rule);

}  // namespace ggm::check
