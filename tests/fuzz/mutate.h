// Spoils one field of a problem struct. All of them are built alike: struct_size and flags, then fields of 64 bits, then of 32.
#pragma once

#include <cstddef>

#include "fuzz/draw.h"

namespace ggm_test::fuzz {

void spoil_field(Draw& draw, void* problem, std::size_t bytes, std::size_t first_32bit_field);

}  // namespace ggm_test::fuzz
