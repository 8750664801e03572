#include "fuzz/mutate.h"

#include <cstring>

namespace ggm_test::fuzz {
namespace {

constexpr std::size_t kFlags = sizeof(std::uint32_t), kFirst64BitField = 2 * sizeof(std::uint32_t);

template <typename T>
void put(void* problem, std::size_t offset, T value) {
  std::memcpy(static_cast<char*>(problem) + offset, &value, sizeof value);
}

// One of the fields of this width in [begin, end).
std::size_t any_field(Draw& draw, std::size_t begin, std::size_t end, std::size_t width) {
  return begin + width * static_cast<std::size_t>(draw.between(0, static_cast<Index>((end - begin) / width) - 1));
}

}  // namespace

void spoil_field(Draw& draw, void* problem, std::size_t bytes, std::size_t first_32bit_field) {
  const int kind = draw.choice(1, 100);
  if (kind <= 60) {
    put(problem, any_field(draw, kFirst64BitField, first_32bit_field, sizeof(Index)), draw.hostile());
  } else if (kind <= 90) {
    const Index value = draw.chance(50) ? draw.between(-1, 5) : draw.hostile();
    put(problem, any_field(draw, first_32bit_field, bytes, sizeof(std::int32_t)), static_cast<std::int32_t>(value));
  } else if (kind <= 96) {
    put(problem, kFlags, draw.chance(70) ? 1u << draw.choice(0, 31) : static_cast<std::uint32_t>(draw.bits()));
  } else {  // sizes of no known version: of a larger one the library would read on behind the struct
    const auto size = static_cast<std::uint32_t>(bytes);
    put(problem, 0, draw.any_of<std::uint32_t>({0, 1, 4, 8, size - 8, size - 4, size - 1, 4097, UINT32_MAX}));
  }
}

}  // namespace ggm_test::fuzz
