#include "api/tensors.h"

#include "base/checked.h"
#include "ggm/ggm.h"

namespace ggm::api {
namespace {

// Whether two tensors of the same row pitch lie side by side in one wider matrix, as two column ranges do: their address ranges
// meet, their elements do not.
bool side_by_side(const Cover& a, std::uintptr_t a_begin, const Cover& b, std::uintptr_t b_begin) {
  const Checked row = Checked(a.ld) * Checked(a.element_bytes);
  const std::int64_t pitch = row.value;
  const auto regular = [pitch](const Cover& c) {
    const Checked bytes = Checked(c.ld) * Checked(c.element_bytes), group = Checked(c.stride) * Checked(c.element_bytes);
    return !bytes.overflow && bytes.value == pitch && (c.groups == 1 || (!group.overflow && group.value % pitch == 0));
  };
  if (row.overflow || pitch <= 0 || !regular(a) || !regular(b)) return false;
  std::int64_t shift = static_cast<std::int64_t>(b_begin - a_begin) % pitch;
  if (shift < 0) shift += pitch;
  return shift >= a.columns * a.element_bytes && shift + b.columns * b.element_bytes <= pitch;
}

// Whether the groups of one tensor lie in the gaps between those of another with the same stride, as the parameters of each
// expert do in one flat buffer.
bool in_turns(const Cover& a, std::uintptr_t a_begin, const Cover& b, std::uintptr_t b_begin) {
  const Cover& more = a.groups > 1 ? a : b;
  const Checked period = Checked(more.stride) * Checked(more.element_bytes);
  const auto fits = [&](const Cover& c) {
    const Checked stride = Checked(c.stride) * Checked(c.element_bytes);
    return c.groups == 1 || (!stride.overflow && stride.value == period.value);
  };
  if (more.groups == 1 || period.overflow || period.value <= 0 || !fits(a) || !fits(b)) return false;
  std::int64_t shift = static_cast<std::int64_t>(b_begin - a_begin) % period.value;
  if (shift < 0) shift += period.value;
  return shift >= a.group_bytes() && b.group_bytes() <= period.value - shift;
}

}  // namespace

ggm_status_t TensorList::add(const char* name, const void* pointer, Cover cover, Access access) {
  if (pointer == nullptr || cover.empty()) return GGM_STATUS_SUCCESS;
  if (reinterpret_cast<std::uintptr_t>(pointer) % static_cast<unsigned>(cover.element_bytes) != 0)
    return fail(GGM_STATUS_MISALIGNED, "%s = %p; must be aligned to its element, %d bytes", name, pointer, cover.element_bytes);
  if (count_ == kCapacity) return fail(GGM_STATUS_INTERNAL_ERROR, "more than %d tensors in one call", kCapacity);
  entries_[count_++] = {name, static_cast<const char*>(pointer), cover, access};
  return GGM_STATUS_SUCCESS;
}

ggm_status_t TensorList::required(const char* name, const void* pointer, Cover cover, Access access) {
  if (pointer == nullptr && !cover.empty())
    return fail(GGM_STATUS_NULL_POINTER, "%s is NULL; it must hold %lld bytes", name, static_cast<long long>(cover.bytes()));
  return add(name, pointer, cover, access);
}

ggm_status_t TensorList::typed(const char* name, const void* pointer, const char* type_field, std::int32_t type, Cover cover,
                               Access access) {
  if (type == 0) {
    if (pointer == nullptr) return GGM_STATUS_SUCCESS;
    return fail(GGM_STATUS_TYPE_MISMATCH, "%s = %p is given, but %s = 0; name its type or pass NULL", name, pointer,
                type_field);
  }
  if (pointer == nullptr && !cover.empty())
    return fail(GGM_STATUS_TYPE_MISMATCH, "%s is NULL, but %s = %d; it must hold %lld bytes", name, type_field, type,
                static_cast<long long>(cover.bytes()));
  return add(name, pointer, cover, access);
}

ggm_status_t TensorList::optional(const char* name, const void* pointer, Cover cover, Access access) {
  return add(name, pointer, cover, access);
}

ggm_status_t TensorList::absent(const char* name, const void* pointer, const char* because) {
  if (pointer == nullptr) return GGM_STATUS_SUCCESS;
  return fail(GGM_STATUS_TYPE_MISMATCH, "%s = %p; must be NULL: %s", name, pointer, because);
}

ggm_status_t TensorList::check_pair(const Entry& a, const Entry& b) const {
  // Distances instead of ends: sizes come from the caller, and an end may lie behind the last address.
  const auto a_begin = reinterpret_cast<std::uintptr_t>(a.begin), b_begin = reinterpret_cast<std::uintptr_t>(b.begin);
  const auto a_bytes = static_cast<std::uintptr_t>(a.cover.bytes()), b_bytes = static_cast<std::uintptr_t>(b.cover.bytes());
  if (b_begin - a_begin >= a_bytes && a_begin - b_begin >= b_bytes) return GGM_STATUS_SUCCESS;
  if (side_by_side(a.cover, a_begin, b.cover, b_begin) || in_turns(a.cover, a_begin, b.cover, b_begin))
    return GGM_STATUS_SUCCESS;
  return fail(GGM_STATUS_ALIASING, "%s [%p, %p) overlaps %s [%p, %p); they must be apart", a.name,
              reinterpret_cast<const void*>(a_begin), reinterpret_cast<const void*>(a_begin + a_bytes), b.name,
              reinterpret_cast<const void*>(b_begin), reinterpret_cast<const void*>(b_begin + b_bytes));
}

ggm_status_t TensorList::finish(void* workspace, std::size_t workspace_bytes, std::int64_t needed_bytes) {
  const auto needed = static_cast<std::size_t>(needed_bytes);
  if (workspace_bytes < needed)
    return fail(GGM_STATUS_WORKSPACE_TOO_SMALL, "workspace_bytes = %zu; this problem needs %zu", workspace_bytes, needed);
  if (needed > 0) {
    if (workspace == nullptr) return fail(GGM_STATUS_NULL_POINTER, "workspace is NULL; this problem needs %zu bytes", needed);
    if (reinterpret_cast<std::uintptr_t>(workspace) % GGM_WORKSPACE_ALIGNMENT != 0)
      return fail(GGM_STATUS_MISALIGNED, "workspace = %p; must be aligned to %d bytes", workspace, GGM_WORKSPACE_ALIGNMENT);
    GGM_TRY(add("workspace", workspace, vector(needed_bytes, 1), Access::write));
  }
  for (int i = 0; i < count_; ++i) {
    for (int j = i + 1; j < count_; ++j) {
      const Entry& a = entries_[i];
      const Entry& b = entries_[j];
      if (a.access == Access::read && b.access == Access::read) continue;
      if (a.name == same_input_ && b.name == same_output_ && a.begin == b.begin) continue;
      GGM_TRY(check_pair(a, b));
    }
  }
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::api
