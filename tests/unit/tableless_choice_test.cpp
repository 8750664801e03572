// Choice of the kernels for few rows (src/plan/choose.h) on faked devices, and what GGM_KERNELS makes of their table.
#include <cstdlib>
#include <string>

#include "base/status.h"
#include "plan/choose.h"
#include "plan/tableless_table.h"
#include "support/test.h"

using namespace ggm;

namespace {

Device card(int capability = 90, int shared_bytes = 227 * 1024) {
  Device d;
  d.backend = BackendKind::cuda;
  d.capability = capability;
  d.multiprocessors = 132;
  d.shared_memory_bytes = shared_bytes;
  d.kernel_family = GGM_KERNELS_CUDA_PORTABLE;
  return d;
}

ProductShape rows_of(std::int64_t groups, std::int64_t rows) {
  ProductShape shape{};
  shape.type = Type::bfloat16;
  shape.groups = groups;
  shape.rows = shape.max_rows = rows;
  shape.columns = shape.inner = 2048;
  return shape;
}

std::string choice_of(const ProductShape& shape, const Device& device = card(), int multiprocessors = 132) {
  int kernel = 12345;  // must be overwritten
  GGM_REQUIRE_OK(choose_tableless(shape, device, multiprocessors, &kernel));
  REQUIRE(kernel < kTablelessKernelCount);
  return kernel < 0 ? "none" : kTablelessKernels[kernel].name;
}

// The variable for the length of a test.
class Forced {
 public:
  explicit Forced(const char* value) { setenv("GGM_KERNELS", value, 1); }
  Forced(const Forced&) = delete;
  ~Forced() { unsetenv("GGM_KERNELS"); }
};

}  // namespace

TEST_CASE("tableless choice: by the rows that hardly a group exceeds", "[host]") {
  // docs/kernels-tried.md: one token of eight slots to 64 tokens of 128 experts; from eight rows a group on others are faster.
  for (const std::int64_t rows : {1, 8, 32, 128, 256}) CHECK(choice_of(rows_of(128, rows)) == "mma_32x8_tableless");
  CHECK(choice_of(rows_of(128, 512)) == "mma_32x16_tableless");
  for (const std::int64_t rows : {1024, 2048, 4096}) CHECK(choice_of(rows_of(128, rows)) == "none");
  // However many on average, no group can have more than there are.
  CHECK(choice_of(rows_of(1, 8)) == "mma_32x8_tableless");
  CHECK(choice_of(rows_of(1, 9)) == "mma_32x16_tableless");
  CHECK(choice_of(rows_of(1, 16)) == "mma_32x16_tableless");
  CHECK(choice_of(rows_of(1, 17)) == "none");
  ProductShape large = rows_of(256, kTablelessMostRows);
  CHECK(choice_of(large) == "none");
  CHECK(choice_of(rows_of(256, 1024)) == "mma_32x16_tableless");
}

TEST_CASE("tableless choice: none for what these kernels do not serve", "[host]") {
  for (const Type type : {Type::float32, Type::float64}) {
    ProductShape shape = rows_of(128, 8);
    shape.type = type;
    CHECK(choice_of(shape) == "none");
  }
  for (bool ProductShape::*field : {&ProductShape::variable_k, &ProductShape::ordered, &ProductShape::portable}) {
    ProductShape shape = rows_of(128, 8);
    shape.*field = true;
    CHECK(choice_of(shape) == "none");
  }
  CHECK(choice_of(rows_of(0, 8)) == "none");
  CHECK(choice_of(rows_of(8, 0)) == "none");
  CHECK(choice_of(rows_of(256, 8)) != "none");
  CHECK(choice_of(rows_of(257, 8)) == "none");
  for (const int few : {1, 2, 131}) CHECK(choice_of(rows_of(128, 8), card(), few) == "none");
  CHECK(choice_of(rows_of(128, 8), card(75)) == "none");
  CHECK(choice_of(rows_of(128, 8), card(80, kTablelessKernels[0].shared_bytes - 1)) == "none");
  for (const int capability : {80, 86, 89, 90, 100, 120})
    CHECK(choice_of(rows_of(128, 8), card(capability, 99 * 1024)) != "none");
}

TEST_CASE("tableless choice: the taller tile not with a short K", "[host]") {
  ProductShape shape = rows_of(128, 512);
  shape.inner = 2047;
  CHECK(choice_of(shape) == "none");
  shape.rows = shape.max_rows = 128;
  CHECK(choice_of(shape) == "mma_32x8_tableless");
}

TEST_CASE("tableless choice: not where a long K fills the multiprocessors a little more than once", "[host]") {
  // 8 of 256 groups have rows, 128 tiles of columns each: 1.28 times what 132 multiprocessors hold.
  ProductShape shape = rows_of(256, 8);
  shape.columns = 4096;
  shape.inner = 7168;
  CHECK(choice_of(shape) == "none");
  shape.inner = 4096;
  CHECK(choice_of(shape) != "none");
  shape.inner = 7168;
  shape.columns = 2048;  // less than once
  CHECK(choice_of(shape) != "none");
  shape.columns = 7168;  // more than twice
  CHECK(choice_of(shape) != "none");
}

TEST_CASE("GGM_KERNELS: the name of a tableless kernel leaves that one, beside a portable one", "[host]") {
  Device hopper = card();
  hopper.kernel_family = GGM_KERNELS_CUDA_HOPPER;
  for (int kernel = 0; kernel < kTablelessKernelCount; ++kernel) {
    const Forced forced(kTablelessKernels[kernel].name);
    for (const std::int64_t rows : {1, 8, 2048}) {
      ProductKernels kernels;
      GGM_REQUIRE_OK(choose_kernels(rows_of(128, rows), hopper, 132, &kernels));
      CHECK(kernels.tableless == kernel);
      CHECK(kernels.wgmma == -1);
      CHECK(kernels.portable >= 0);
    }
    ProductKernels kernels;
    REQUIRE(choose_kernels(rows_of(128, 2049), hopper, 132, &kernels) == GGM_STATUS_UNSUPPORTED);
    const std::string text = last_error();
    CHECK(text.find("GGM_KERNELS") != std::string::npos);
    CHECK(text.find(kTablelessKernels[kernel].name) != std::string::npos);
  }
}

TEST_CASE("GGM_KERNELS: the name of another kernel leaves no tableless one", "[host]") {
  for (const char* name : {"mma_32x128x64", "wgmma_64x128"}) {
    const Forced forced(name);
    CHECK(choice_of(rows_of(128, 8)) == "none");
  }
}
