// src/api/read_struct.h with a struct that "grew": version 1 had two words, version 2 has four.
#include "api/read_struct.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "support/test.h"

using ggm::api::read_struct_bytes;

namespace {

struct Grown {
  std::uint32_t struct_size;
  std::uint32_t first;
  std::uint32_t second, third;
};
constexpr std::size_t kFirstSize = 8;

}  // namespace

TEST_CASE("structs: an old, smaller size is filled with zeros", "[host]") {
  const std::uint32_t old_struct[2] = {8, 7};
  Grown out{1, 1, 1, 1};
  REQUIRE(read_struct_bytes("problem", old_struct, kFirstSize, &out, sizeof out) == GGM_STATUS_SUCCESS);
  CHECK(out.first == 7);
  CHECK(out.second == 0);
  CHECK(out.third == 0);
}

TEST_CASE("structs: sizes between the known ones are read as far as they go", "[host]") {
  const std::uint32_t middle[3] = {12, 7, 9};
  Grown out{};
  REQUIRE(read_struct_bytes("problem", middle, kFirstSize, &out, sizeof out) == GGM_STATUS_SUCCESS);
  CHECK(out.second == 9);
  CHECK(out.third == 0);
}

TEST_CASE("structs: a newer, larger size is accepted when the unknown bytes are zero, else refused", "[host]") {
  std::uint32_t newer[6] = {24, 7, 9, 11, 0, 0};
  Grown out{};
  REQUIRE(read_struct_bytes("problem", newer, kFirstSize, &out, sizeof out) == GGM_STATUS_SUCCESS);
  CHECK(out.third == 11);
  newer[5] = 1u << 24;
  out = {1, 2, 3, 4};
  REQUIRE(read_struct_bytes("problem", newer, kFirstSize, &out, sizeof out) == GGM_STATUS_INVALID_STRUCT_SIZE);
  CHECK(std::string(ggm::last_error()).find("byte 23 is not zero") != std::string::npos);
  CHECK(out.third == 4);
}

TEST_CASE("structs: too small, absurd and missing ones are refused", "[host]") {
  std::uint32_t bytes[2] = {7, 0};
  Grown out{};
  CHECK(read_struct_bytes("problem", bytes, kFirstSize, &out, sizeof out) == GGM_STATUS_INVALID_STRUCT_SIZE);
  bytes[0] = 0;
  CHECK(read_struct_bytes("problem", bytes, kFirstSize, &out, sizeof out) == GGM_STATUS_INVALID_STRUCT_SIZE);
  bytes[0] = 0xffffffffu;
  CHECK(read_struct_bytes("problem", bytes, kFirstSize, &out, sizeof out) == GGM_STATUS_INVALID_STRUCT_SIZE);
  CHECK(read_struct_bytes("problem", nullptr, kFirstSize, &out, sizeof out) == GGM_STATUS_NULL_POINTER);
}
