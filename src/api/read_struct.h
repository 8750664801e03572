// Reading a caller's struct of another version: a smaller known size is filled with zeros, a larger one is accepted when the
// bytes that this library does not know are zero. So neither an old program nor a new one is misread.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace ggm::api {

// Reads a struct of `known_size` bytes, of which `first_size` existed in the first version, from a caller's of any size.
ggm_status_t read_struct_bytes(const char* name, const void* in, std::size_t first_size, void* out, std::size_t known_size);

// first_size: the size of the struct in the version that introduced it.
template <typename Struct>
ggm_status_t read_struct(const char* name, const Struct* in, std::size_t first_size, Struct* out) {
  return read_struct_bytes(name, in, first_size, out, sizeof(Struct));
}

}  // namespace ggm::api
