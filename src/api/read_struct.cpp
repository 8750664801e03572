#include "api/read_struct.h"

#include <cstdint>
#include <cstring>

namespace ggm::api {
namespace {

// The largest struct_size that is believed at all; anything above is garbage.
constexpr std::uint32_t kLargestStruct = 4096;

}  // namespace

ggm_status_t read_struct_bytes(const char* name, const void* in, std::size_t first_size, void* out, std::size_t known_size) {
  if (in == nullptr) return fail(GGM_STATUS_NULL_POINTER, "%s is NULL", name);
  std::uint32_t size = 0;
  std::memcpy(&size, in, sizeof size);
  if (size < first_size || size > kLargestStruct)
    return fail(GGM_STATUS_INVALID_STRUCT_SIZE, "%s.struct_size = %u; must be %zu (its size; the smallest known is %zu)", name,
                size, known_size, first_size);
  const auto* bytes = static_cast<const unsigned char*>(in);
  for (std::size_t i = known_size; i < size; ++i) {
    if (bytes[i] != 0)
      return fail(GGM_STATUS_INVALID_STRUCT_SIZE,
                  "%s.struct_size = %u, but this library knows %zu bytes and byte %zu is not zero: a field of a newer version "
                  "is in use",
                  name, size, known_size, i);
  }
  std::memset(out, 0, known_size);
  std::memcpy(out, in, size < known_size ? size : known_size);
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::api
