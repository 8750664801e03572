#include "host/groups.h"

namespace ggm::host {

void GroupWalk::take(const ClampedRange& kept, GroupRange* range) {
  if (faults_ != nullptr && kept.changed) faults_->add(GGM_FAULT_SIZE_CLAMPED);
  range->first = kept.start;
  range->count = kept.size;
}

std::int64_t GroupWalk::monotone(std::int64_t offset) {
  const Clamped kept = clamp_offset(offset, end_, source_.rows);
  if (faults_ != nullptr && kept.changed) faults_->add(GGM_FAULT_BAD_ROUTING);
  return kept.value;
}

bool GroupWalk::next(GroupRange* range) {
  const GroupSource& s = source_;
  if (group_ == s.groups) return false;
  if (group_ == 0 && s.form == GroupForm::offsets) end_ = monotone(read_index(s.type, s.offsets, 0));
  range->group = group_;
  switch (s.form) {
    case GroupForm::sizes: take(clamp_size(read_index(s.type, s.sizes, group_), s.own_rows ? 0 : end_, s.rows), range); break;
    case GroupForm::starts_sizes:
      take(clamp_range(read_index(s.type, s.offsets, group_), read_index(s.type, s.sizes, group_), s.rows), range);
      break;
    default:
      range->first = end_;
      range->count = monotone(read_index(s.type, s.offsets, s.form == GroupForm::offsets ? group_ + 1 : group_)) - end_;
      break;
  }
  end_ = range->first + range->count;
  ++group_;
  return true;
}

}  // namespace ggm::host
