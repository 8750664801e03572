// What becomes of untrusted counts, sizes and offsets: the one set of rules that every backend applies (sections 4b, 5 and 6 of
// ggm.h). Each function gives the value to use and whether it differs from the caller's, which is what the fault array counts.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace ggm {

struct Clamped {
  std::int64_t value;
  bool changed;
};

struct ClampedRange {
  std::int64_t start, size;
  bool changed;
};

constexpr GGM_HD std::int64_t clamp_between(std::int64_t value, std::int64_t low, std::int64_t high) {
  return value < low ? low : value > high ? high : value;
}

// num_tokens and the sizes of a masked layout: 0 .. limit.
constexpr GGM_HD Clamped clamp_count(std::int64_t value, std::int64_t limit) {
  const std::int64_t kept = clamp_between(value, 0, limit);
  return {kept, kept != value};
}

// Sizes of groups that follow each other: `before` is the sum of the earlier sizes, each first cut to 0 .. rows, so that the
// sum of any number of them below 2^31 cannot overflow. The group starts at min(before, rows) and keeps what fits behind that.
constexpr GGM_HD ClampedRange clamp_size(std::int64_t size, std::int64_t before, std::int64_t rows) {
  const std::int64_t start = before < rows ? before : rows;
  const std::int64_t kept = clamp_between(size, 0, rows - start);
  return {start, kept, kept != size};
}

// Offsets and ends: `previous` is the entry before, already clamped (0 in front of the first). Not below it, not above `rows`.
constexpr GGM_HD Clamped clamp_offset(std::int64_t value, std::int64_t previous, std::int64_t rows) {
  const std::int64_t inside = clamp_between(value, 0, rows);
  const std::int64_t kept = inside < previous ? previous : inside;
  return {kept, kept != value};
}

// First row and size given apart: the start is moved into 0 .. rows, then the size keeps what fits behind it.
constexpr GGM_HD ClampedRange clamp_range(std::int64_t start, std::int64_t size, std::int64_t rows) {
  const std::int64_t first = clamp_between(start, 0, rows);
  const std::int64_t kept = clamp_between(size, 0, rows - first);
  return {first, kept, first != start || kept != size};
}

// The local expert of an id, or -1 when the slot has no row. `mapped` is the expert map's entry for a valid id.
enum class IdKind : std::int32_t { local, skipped, bad };
struct LocalExpert {
  std::int64_t expert;
  IdKind kind;
};

constexpr GGM_HD bool id_in_range(std::int64_t id, std::int64_t experts_total) { return id >= 0 && id < experts_total; }

// An id in 32 bits. What they do not hold is no id, as experts_total is below 2^31; it becomes the bad id -2.
constexpr GGM_HD std::int32_t narrow_id(std::int64_t id) {
  return id < -1 || id > 0x7fffffff ? -2 : static_cast<std::int32_t>(id);
}

// For an id that is not in range: -1 is a silent skip, everything else a fault.
constexpr GGM_HD LocalExpert outside_id(std::int64_t id) { return {-1, id == -1 ? IdKind::skipped : IdKind::bad}; }

// Without an expert map: local experts are first_expert .. first_expert + experts - 1.
constexpr GGM_HD LocalExpert expert_by_range(std::int64_t id, std::int64_t first_expert, std::int64_t experts) {
  const std::int64_t local = id - first_expert;
  return local >= 0 && local < experts ? LocalExpert{local, IdKind::local} : LocalExpert{-1, IdKind::skipped};
}

// With an expert map.
constexpr GGM_HD LocalExpert expert_by_map(std::int64_t mapped, std::int64_t experts) {
  if (mapped >= 0 && mapped < experts) return {mapped, IdKind::local};
  return outside_id(mapped);
}

}  // namespace ggm
