// Checks of the caller's pointers: presence, alignment to the element, and overlap where it is forbidden. Cheap: no memory is
// read.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/types.h"

namespace ggm::api {

// What a tensor covers: [groups, rows, columns] elements of `element_bytes`, strides in elements. Extents fit 64 bits
// (make_problem).
struct Cover {
  std::int64_t groups, stride, rows, ld, columns;
  int element_bytes;

  bool empty() const { return groups == 0 || rows == 0 || columns == 0; }
  std::int64_t group_bytes() const { return ((rows - 1) * ld + columns) * element_bytes; }  // of one, where it is not empty
  std::int64_t bytes() const { return empty() ? 0 : ((groups - 1) * stride + (rows - 1) * ld + columns) * element_bytes; }
};
inline Cover vector(std::int64_t count, int element_bytes) { return {1, 0, 1, count, count, element_bytes}; }
inline Cover matrix(std::int64_t rows, std::int64_t ld, std::int64_t columns, Type type) {
  return {1, 0, rows, ld, columns, bytes_of(type)};
}

enum class Access { read, write };

// Collects the tensors of one call, then compares them. Every method returns the first fault it finds.
class TensorList {
 public:
  // Needed whenever it is not empty: GGM_STATUS_NULL_POINTER.
  ggm_status_t required(const char* name, const void* pointer, Cover cover, Access access);
  // Needed when `type_field` is not 0 and forbidden when it is: GGM_STATUS_TYPE_MISMATCH.
  ggm_status_t typed(const char* name, const void* pointer, const char* type_field, std::int32_t type, Cover cover,
                     Access access);
  ggm_status_t optional(const char* name, const void* pointer, Cover cover, Access access);
  // Must be NULL in this mode: GGM_STATUS_TYPE_MISMATCH.
  ggm_status_t absent(const char* name, const void* pointer, const char* because);

  // Presence and alignment of the workspace, then overlap of every output and of the workspace with everything else.
  ggm_status_t finish(void* workspace, std::size_t workspace_bytes, std::int64_t needed_bytes);

  // One input and one output that may be the same memory (C and D). By identity of the names given to the methods above.
  void allow_same(const char* input, const char* output) { same_input_ = input, same_output_ = output; }

 private:
  struct Entry {
    const char* name;
    const char* begin;
    Cover cover;
    Access access;
  };
  ggm_status_t add(const char* name, const void* pointer, Cover cover, Access access);
  ggm_status_t check_pair(const Entry& a, const Entry& b) const;

  static constexpr int kCapacity = 24;
  Entry entries_[kCapacity];
  int count_ = 0;
  const char* same_input_ = nullptr;
  const char* same_output_ = nullptr;
};

}  // namespace ggm::api
