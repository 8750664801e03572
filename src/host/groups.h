// Groups of rows from the caller's arrays, clamped as ggm.h says, one after the other and without storage.
#pragma once

#include "host/faults.h"
#include "plan/clamp.h"
#include "problem/problem.h"

namespace ggm::host {

struct GroupRange {
  std::int64_t group, first, count;
};

struct GroupSource {
  GroupForm form = GroupForm::sizes;  // row_group does not occur here: its rows were sorted into offsets before
  IndexType type = IndexType::int32;
  const void* sizes = nullptr;
  const void* offsets = nullptr;
  std::int64_t groups = 0;
  std::int64_t rows = 0;  // that the groups divide
  bool own_rows = false;  // masked: each group has `rows` rows of its own, starting at 0
};

class GroupWalk {
 public:
  // faults: where clamped values are counted; nullptr in every walk but the first.
  GroupWalk(const GroupSource& source, Faults* faults) : source_(source), faults_(faults) {}

  bool next(GroupRange* range);

 private:
  std::int64_t monotone(std::int64_t offset);
  void take(const ClampedRange& kept, GroupRange* range);

  GroupSource source_;
  Faults* faults_;
  std::int64_t group_ = 0;
  std::int64_t end_ = 0;  // of the previous group
};

inline std::int64_t read_index(IndexType type, const void* array, std::int64_t i) {
  return type == IndexType::int64 ? static_cast<const std::int64_t*>(array)[i] : static_cast<const std::int32_t*>(array)[i];
}

}  // namespace ggm::host
