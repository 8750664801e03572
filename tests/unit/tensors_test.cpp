// src/api/tensors.h: presence, alignment, overlap.
#include "api/tensors.h"

#include <cstdint>
#include <string>
#include <vector>

#include "support/test.h"

using namespace ggm;
using api::Access;
using api::matrix;
using api::TensorList;

namespace {

struct Memory {
  alignas(256) char bytes[8192];
};

}  // namespace

TEST_CASE("tensors: what is required, typed, optional or absent", "[host]") {
  Memory m;
  TensorList list;
  const api::Cover cover = matrix(4, 8, 8, Type::float32);
  CHECK(list.required("x", nullptr, cover, Access::read) == GGM_STATUS_NULL_POINTER);
  CHECK(list.required("x", nullptr, matrix(0, 8, 8, Type::float32), Access::read) == GGM_STATUS_SUCCESS);
  CHECK(list.typed("bias", m.bytes, "bias_type", 0, cover, Access::read) == GGM_STATUS_TYPE_MISMATCH);
  CHECK(list.typed("bias", nullptr, "bias_type", 1, cover, Access::read) == GGM_STATUS_TYPE_MISMATCH);
  CHECK(list.typed("bias", nullptr, "bias_type", 0, cover, Access::read) == GGM_STATUS_SUCCESS);
  CHECK(list.absent("ids", m.bytes, "why") == GGM_STATUS_TYPE_MISMATCH);
  CHECK(std::string(last_error()).find("why") != std::string::npos);
  CHECK(list.optional("faults", m.bytes + 2, api::vector(8, 4), Access::write) == GGM_STATUS_MISALIGNED);
}

TEST_CASE("tensors: an output may overlap nothing, inputs may overlap each other", "[host]") {
  Memory m;
  const api::Cover cover = matrix(4, 8, 8, Type::float32);  // 128 bytes
  TensorList inputs;
  REQUIRE(inputs.required("a", m.bytes, cover, Access::read) == GGM_STATUS_SUCCESS);
  REQUIRE(inputs.required("b", m.bytes + 64, cover, Access::read) == GGM_STATUS_SUCCESS);
  CHECK(inputs.finish(nullptr, 0, 0) == GGM_STATUS_SUCCESS);

  TensorList touching = inputs;
  REQUIRE(touching.required("d", m.bytes + 192, cover, Access::write) == GGM_STATUS_SUCCESS);
  CHECK(touching.finish(nullptr, 0, 0) == GGM_STATUS_SUCCESS);

  TensorList overlapping = inputs;
  REQUIRE(overlapping.required("d", m.bytes + 188, cover, Access::write) == GGM_STATUS_SUCCESS);
  CHECK(overlapping.finish(nullptr, 0, 0) == GGM_STATUS_ALIASING);
}

TEST_CASE("tensors: column ranges of one wider matrix are apart", "[host]") {
  Memory m;
  const api::Cover half = matrix(4, 16, 8, Type::float32);
  TensorList side;
  REQUIRE(side.required("x", m.bytes, half, Access::read) == GGM_STATUS_SUCCESS);
  REQUIRE(side.required("y", m.bytes + 32, half, Access::write) == GGM_STATUS_SUCCESS);
  CHECK(side.finish(nullptr, 0, 0) == GGM_STATUS_SUCCESS);

  TensorList left;  // the same, with y before x
  REQUIRE(left.required("x", m.bytes + 32, half, Access::read) == GGM_STATUS_SUCCESS);
  REQUIRE(left.required("y", m.bytes, half, Access::write) == GGM_STATUS_SUCCESS);
  CHECK(left.finish(nullptr, 0, 0) == GGM_STATUS_SUCCESS);

  TensorList crossing;
  REQUIRE(crossing.required("x", m.bytes, half, Access::read) == GGM_STATUS_SUCCESS);
  REQUIRE(crossing.required("y", m.bytes + 28, half, Access::write) == GGM_STATUS_SUCCESS);
  CHECK(crossing.finish(nullptr, 0, 0) == GGM_STATUS_ALIASING);
}

TEST_CASE("tensors: groups that take turns in one buffer are apart", "[host]") {
  Memory m;
  // Three groups, 100 bytes of the one and 16 of the other in each 128.
  const api::Cover weights{3, 32, 5, 5, 5, 4}, bias{3, 32, 1, 4, 4, 4};
  const auto both = [&](std::size_t shift, const api::Cover& second) {
    TensorList list;
    REQUIRE(list.required("d_weight", m.bytes + 512, weights, Access::write) == GGM_STATUS_SUCCESS);
    REQUIRE(list.required("d_bias", m.bytes + 512 + shift, second, Access::write) == GGM_STATUS_SUCCESS);
    return list.finish(nullptr, 0, 0);
  };
  CHECK(both(100, bias) == GGM_STATUS_SUCCESS);
  CHECK(both(112, bias) == GGM_STATUS_SUCCESS);
  CHECK(both(96, bias) == GGM_STATUS_ALIASING);   // the last element of the first
  CHECK(both(116, bias) == GGM_STATUS_ALIASING);  // the first of its next group
  CHECK(both(100 - 128, bias) == GGM_STATUS_SUCCESS);
  CHECK(both(100 + 128, bias) == GGM_STATUS_SUCCESS);
  CHECK(both(100, api::Cover{1, 0, 1, 4, 4, 4}) == GGM_STATUS_SUCCESS);  // a single one, in a gap
  CHECK(both(100, api::Cover{1, 0, 1, 8, 8, 4}) == GGM_STATUS_ALIASING);
  CHECK(both(100, api::Cover{3, 33, 1, 4, 4, 4}) == GGM_STATUS_ALIASING);  // another stride
  CHECK(both(100, api::Cover{3, 0, 1, 4, 4, 4}) == GGM_STATUS_ALIASING);
}

TEST_CASE("tensors: C may be D, exactly, and the workspace may be nothing", "[host]") {
  Memory m;
  const api::Cover cover = matrix(4, 8, 8, Type::float32);
  TensorList same;
  same.allow_same("c", "d");
  REQUIRE(same.required("c", m.bytes, cover, Access::read) == GGM_STATUS_SUCCESS);
  REQUIRE(same.required("d", m.bytes, cover, Access::write) == GGM_STATUS_SUCCESS);
  CHECK(TensorList(same).finish(nullptr, 0, 0) == GGM_STATUS_SUCCESS);
  CHECK(TensorList(same).finish(m.bytes + 256, 1024, 1024) == GGM_STATUS_SUCCESS);
  CHECK(TensorList(same).finish(m.bytes + 256, 1023, 1024) == GGM_STATUS_WORKSPACE_TOO_SMALL);
  CHECK(TensorList(same).finish(nullptr, 1024, 1024) == GGM_STATUS_NULL_POINTER);
  CHECK(TensorList(same).finish(m.bytes + 128, 1024, 1024) == GGM_STATUS_MISALIGNED);
  CHECK(TensorList(same).finish(m.bytes, 1024, 64) == GGM_STATUS_ALIASING);

  TensorList shifted;
  shifted.allow_same("c", "d");
  REQUIRE(shifted.required("c", m.bytes, cover, Access::read) == GGM_STATUS_SUCCESS);
  REQUIRE(shifted.required("d", m.bytes + 4, cover, Access::write) == GGM_STATUS_SUCCESS);
  CHECK(shifted.finish(nullptr, 0, 0) == GGM_STATUS_ALIASING);
}

TEST_CASE("tensors: strides and ends beyond 64 bits neither wrap nor hide an overlap", "[host]") {
  Memory m;
  constexpr std::int64_t kHuge = INT64_MAX;
  const api::Cover row = matrix(1, kHuge, 8, Type::float32);                  // one row: the leading dimension is never used
  const api::Cover block{1, kHuge, 1, 8, 8, 4};                               // one group: nor is the stride
  const api::Cover endless = matrix(1, kHuge / 8, kHuge / 8, Type::float32);  // ends behind the last address
  for (const api::Cover& cover : {row, block, endless}) {
    INFO(cover.bytes());
    TensorList list;
    REQUIRE(list.required("a", m.bytes, cover, Access::read) == GGM_STATUS_SUCCESS);
    REQUIRE(list.required("d", m.bytes + 16, row, Access::write) == GGM_STATUS_SUCCESS);
    CHECK(list.finish(nullptr, 0, 0) == GGM_STATUS_ALIASING);
  }
  TensorList apart;
  REQUIRE(apart.required("a", m.bytes, row, Access::read) == GGM_STATUS_SUCCESS);
  REQUIRE(apart.required("d", m.bytes + 32, row, Access::write) == GGM_STATUS_SUCCESS);
  CHECK(apart.finish(nullptr, 0, 0) == GGM_STATUS_SUCCESS);
}
