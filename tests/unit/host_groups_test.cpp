// src/host/groups and rows: walks over the caller's arrays, every form, clamped and counted; the counting sort of assignments.
#include "host/groups.h"

#include <string>
#include <vector>

#include "host/rows.h"
#include "support/test.h"

using namespace ggm;
using namespace ggm::host;

namespace {

struct Walked {
  std::vector<std::int64_t> firsts, counts;
  Faults faults;
};

Walked walk(const GroupSource& source) {
  Walked w;
  GroupWalk groups(source, &w.faults);
  GroupRange range;
  while (groups.next(&range)) {
    REQUIRE(range.group == static_cast<std::int64_t>(w.firsts.size()));
    REQUIRE(range.first >= 0);
    REQUIRE(range.first + range.count <= source.rows);
    w.firsts.push_back(range.first);
    w.counts.push_back(range.count);
  }
  return w;
}

template <typename Index>
GroupSource source_of(GroupForm form, const std::vector<Index>& sizes, const std::vector<Index>& offsets, std::int64_t groups,
                      std::int64_t rows) {
  GroupSource s;
  s.form = form;
  s.type = sizeof(Index) == 8 ? IndexType::int64 : IndexType::int32;
  s.sizes = sizes.data();
  s.offsets = offsets.data();
  s.groups = groups;
  s.rows = rows;
  return s;
}

using List = std::vector<std::int64_t>;

template <typename Index>
void check_forms() {
  const std::vector<Index> none;
  Walked w = walk(source_of<Index>(GroupForm::sizes, {5, 0, -3, 8, 100}, none, 5, 20));
  CHECK(w.firsts == List{0, 5, 5, 5, 13});
  CHECK(w.counts == List{5, 0, 0, 8, 7});
  CHECK(w.faults.words[GGM_FAULT_SIZE_CLAMPED] == 2);
  w = walk(source_of<Index>(GroupForm::offsets, none, {2, 7, 4, 90, 12}, 4, 20));
  CHECK(w.firsts == List{2, 7, 7, 20});
  CHECK(w.counts == List{5, 0, 13, 0});
  CHECK(w.faults.words[GGM_FAULT_BAD_ROUTING] == 3);
  w = walk(source_of<Index>(GroupForm::ends, none, {3, 3, -1, 20}, 4, 20));
  CHECK(w.firsts == List{0, 3, 3, 3});
  CHECK(w.counts == List{3, 0, 0, 17});
  CHECK(w.faults.words[GGM_FAULT_BAD_ROUTING] == 1);
  w = walk(source_of<Index>(GroupForm::starts_sizes, {4, 9, 3, 1}, {10, 15, -2, 50}, 4, 20));
  CHECK(w.firsts == List{10, 15, 0, 20});
  CHECK(w.counts == List{4, 5, 3, 0});
  CHECK(w.faults.words[GGM_FAULT_SIZE_CLAMPED] == 3);
}

}  // namespace

TEST_CASE("host groups: each form walks its clamped groups and counts what it changed", "[host]") {
  check_forms<std::int32_t>();
  check_forms<std::int64_t>();
}

TEST_CASE("host groups: masked groups each have rows of their own, and without groups nothing is read", "[host]") {
  const std::vector<std::int32_t> sizes = {3, 9, -1, 4};
  GroupSource masked = source_of<std::int32_t>(GroupForm::sizes, sizes, {}, 4, 4);
  masked.own_rows = true;
  const Walked w = walk(masked);
  CHECK(w.firsts == List{0, 0, 0, 0});
  CHECK(w.counts == List{3, 4, 0, 4});
  CHECK(w.faults.words[GGM_FAULT_SIZE_CLAMPED] == 2);
  GroupSource nothing;
  nothing.form = GroupForm::offsets;
  nothing.rows = 7;
  CHECK(walk(nothing).firsts.empty());
}

TEST_CASE("host rows: the counting sort is stable, drops beyond max_rows and counts bad ids", "[host]") {
  RouteProblem p{};
  p.tokens = 4;
  p.top_k = 2;
  p.experts = 3;
  p.experts_total = 5;
  p.first_expert = 1;
  p.assignments = 8;
  p.max_rows = 4;
  p.ids_ld = 3;
  p.id_type = IndexType::int32;
  // Global ids 1..3 are local 0..2; 0 and 4 belong elsewhere; 9 and -7 are faults. The last token is beyond num_tokens.
  const std::vector<std::int32_t> ids = {3, 1, 99, 1, 9, 99, 2, 1, 99, 1, -7, 99};
  std::vector<std::int32_t> counts(3, -5), offsets(4, -5), row_assignment(4, -5), assignment_row(8, -5);
  Rows rows;
  rows.group_offsets = offsets.data();
  rows.row_assignment = row_assignment.data();
  rows.assignment_row = assignment_row.data();
  rows.real_tokens = 3;
  Faults faults;
  route_rows(p, {ids.data(), nullptr}, counts.data(), rows, &faults);
  CHECK(offsets == std::vector<std::int32_t>{0, 3, 4, 4});
  CHECK(row_assignment == std::vector<std::int32_t>{1, 2, 5, 4});
  CHECK(assignment_row == std::vector<std::int32_t>{-1, 0, 1, -1, 3, 2, -1, -1});
  CHECK(faults.words[GGM_FAULT_BAD_ID] == 1);
  CHECK(faults.words[GGM_FAULT_ROWS_DROPPED] == 1);
}

TEST_CASE("host faults: delivery adds, saturates and leaves other words alone", "[host]") {
  std::uint32_t words[GGM_FAULT_WORDS] = {1, 0xfffffff0u, 0, 7, 0, 5, 6, 7};
  Faults faults;
  faults.add(GGM_FAULT_BAD_ID, 2);
  faults.add(GGM_FAULT_SIZE_CLAMPED, 100);
  faults.add(GGM_FAULT_ROWS_DROPPED, std::int64_t{1} << 40);
  faults.deliver(words);
  const std::vector<std::uint32_t> got(words, words + GGM_FAULT_WORDS);
  CHECK(got == std::vector<std::uint32_t>{3, 0xffffffffu, 0xffffffffu, 7, 0, 5, 6, 7});
  faults.deliver(nullptr);
}
