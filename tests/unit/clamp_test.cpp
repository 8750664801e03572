// src/plan/clamp.h: what becomes of untrusted counts, sizes, offsets and ids, on every backend.
#include "plan/clamp.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "support/test.h"

using namespace ggm;

namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

void check_count(std::int64_t value, std::int64_t limit, std::int64_t kept) {
  const Clamped c = clamp_count(value, limit);
  CHECK(c.value == kept);
  CHECK(c.changed == (kept != value));
}

void check_range(std::int64_t start, std::int64_t size, std::int64_t rows, std::int64_t kept_start, std::int64_t kept_size) {
  const ClampedRange r = clamp_range(start, size, rows);
  CHECK(r.start == kept_start);
  CHECK(r.size == kept_size);
  CHECK(r.changed == (kept_start != start || kept_size != size));
}

}  // namespace

TEST_CASE("clamp: counts stay in 0..limit", "[host]") {
  check_count(0, 0, 0);
  check_count(5, 10, 5);
  check_count(10, 10, 10);
  check_count(11, 10, 10);
  check_count(-1, 10, 0);
  check_count(kLowest, 10, 0);
  check_count(kLargest, 10, 10);
}

TEST_CASE("clamp: sizes from a sum of cut sizes are those of a walk from group to group", "[host]") {
  // CUDA adds max(0, min(size, rows)) of all earlier groups at once; the host walks. Both must give the same rows and faults.
  const std::int64_t rows = 100;
  std::uint32_t state = 1;
  for (int round = 0; round < 200; ++round) {
    std::int64_t walked = 0, summed = 0;
    for (int g = 0; g < 20; ++g) {
      state = state * 1664525u + 1013904223u;
      const std::int64_t size = state % 7 == 0 ? kLargest : state % 11 == 0 ? kLowest : static_cast<int>(state >> 20) % 30 - 5;
      const ClampedRange by_sum = clamp_size(size, summed, rows), by_walk = clamp_size(size, walked, rows);
      CHECK(by_sum.start == by_walk.start);
      CHECK(by_sum.size == by_walk.size);
      CHECK(by_sum.changed == by_walk.changed);
      CHECK(by_sum.start + by_sum.size <= rows);
      CHECK(by_sum.changed == (by_sum.size != size));
      walked = by_walk.start + by_walk.size;
      summed += clamp_between(size, 0, rows);
    }
  }
}

TEST_CASE("clamp: offsets become monotone and stay inside the rows", "[host]") {
  const std::vector<std::int64_t> given = {-4, 3, 2, 7, kLargest, 5, 10}, expected = {0, 3, 3, 7, 10, 10, 10};
  std::int64_t previous = 0, largest = 0;
  int changed = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Clamped c = clamp_offset(given[i], previous, 10);
    CHECK(c.value == expected[i]);
    changed += c.changed;
    previous = c.value;
    // CUDA takes the running maximum of the cut offsets instead.
    largest = largest < clamp_between(given[i], 0, 10) ? clamp_between(given[i], 0, 10) : largest;
    CHECK(largest == c.value);
  }
  CHECK(changed == 4);
}

TEST_CASE("clamp: starts and sizes given apart", "[host]") {
  check_range(0, 0, 0, 0, 0);
  check_range(3, 4, 10, 3, 4);
  check_range(3, 8, 10, 3, 7);
  check_range(10, 0, 10, 10, 0);
  check_range(10, 1, 10, 10, 0);
  check_range(11, 0, 10, 10, 0);
  check_range(-1, 4, 10, 0, 4);
  check_range(3, -1, 10, 3, 0);
  check_range(kLargest, kLargest, 10, 10, 0);
  check_range(kLowest, kLowest, 10, 0, 0);
}

TEST_CASE("clamp: ids by range and by map", "[host]") {
  CHECK(id_in_range(0, 8));
  CHECK(id_in_range(7, 8));
  CHECK_FALSE(id_in_range(8, 8));
  CHECK_FALSE(id_in_range(-1, 8));
  CHECK(outside_id(-1).kind == IdKind::skipped);
  CHECK(outside_id(-2).kind == IdKind::bad);
  CHECK(outside_id(8).kind == IdKind::bad);
  CHECK(expert_by_range(4, 4, 2).expert == 0);
  CHECK(expert_by_range(5, 4, 2).expert == 1);
  CHECK(expert_by_range(6, 4, 2).kind == IdKind::skipped);
  CHECK(expert_by_range(3, 4, 2).kind == IdKind::skipped);
  CHECK(expert_by_map(1, 2).kind == IdKind::local);
  CHECK(expert_by_map(-1, 2).kind == IdKind::skipped);
  CHECK(expert_by_map(2, 2).kind == IdKind::bad);
  CHECK(expert_by_map(-2, 2).kind == IdKind::bad);
}

TEST_CASE("clamp: an id that 32 bits do not hold becomes a bad id, every other stays", "[host]") {
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{65535}, std::int64_t{0x7fffffff}})
    CHECK(narrow_id(id) == id);
  for (const std::int64_t id : {std::int64_t{-2}, kLowest, kLargest, std::int64_t{1} << 31, std::int64_t{1} << 32,
                                (std::int64_t{1} << 32) - 1, -(std::int64_t{1} << 32)})
    CHECK(outside_id(narrow_id(id)).kind == IdKind::bad);
}
