// Choice of wgmma kernels (src/plan/choose.h) on faked devices, and what GGM_KERNELS makes of both tables.
#include <cstdlib>
#include <string>

#include "base/status.h"
#include "plan/choose.h"
#include "plan/wgmma_table.h"
#include "support/test.h"

using namespace ggm;

namespace {

Device hopper() {
  Device d;
  d.backend = BackendKind::cuda;
  d.capability = 90;
  d.multiprocessors = 132;
  d.shared_memory_bytes = 227 * 1024;
  d.kernel_family = GGM_KERNELS_CUDA_HOPPER;
  return d;
}

// 8 groups of `average` rows.
ProductShape rows_of(double average, Type type = Type::bfloat16) {
  ProductShape shape{};
  shape.type = type;
  shape.groups = 8;
  shape.rows = shape.max_rows = static_cast<std::int64_t>(8 * average);
  return shape;
}

ProductShape gathered(ProductShape shape) {
  shape.gathered = true;
  return shape;
}
ProductShape variable_k() {
  ProductShape shape = rows_of(4096);
  shape.variable_k = true;
  return shape;
}

std::string name(int kernel) { return kernel < 0 ? "none" : kWgmmaKernels[kernel].name; }

int kernel_of(const ProductShape& shape, const Device& device = hopper(), int multiprocessors = 132) {
  int kernel = 12345;  // must be overwritten
  GGM_REQUIRE_OK(choose_wgmma(shape, device, multiprocessors, &kernel));
  REQUIRE(kernel < kWgmmaKernelCount);
  return kernel;
}
std::string choice_of(const ProductShape& shape, const Device& device = hopper(), int multiprocessors = 132) {
  return name(kernel_of(shape, device, multiprocessors));
}

// The variable for the length of a test.
class Forced {
 public:
  explicit Forced(const char* value) { setenv("GGM_KERNELS", value, 1); }
  Forced(const Forced&) = delete;
  ~Forced() { unsetenv("GGM_KERNELS"); }
};

void require_refused(ggm_status_t expected, const ProductShape& shape, const std::string& value,
                     const Device& device = hopper()) {
  ProductKernels kernels;
  REQUIRE(choose_kernels(shape, device, 132, &kernels) == expected);
  const std::string text = last_error();
  INFO(text);
  CHECK(text.find("GGM_KERNELS") != std::string::npos);
  CHECK(text.find(value) != std::string::npos);
}

}  // namespace

TEST_CASE("wgmma choice: 16-bit products over rows in order, through a list, and over K, whatever their rows", "[host]") {
  for (const Type type : {Type::bfloat16, Type::float16})
    for (const double average : {0.0, 1.0, 48.0, 49.0, 144.0, 500.0, 100000.0}) {
      INFO(name_of(type) << ", " << average << " rows");
      const bool few = average <= 48;
      CHECK(choice_of(rows_of(average, type)) == (few ? "wgmma_64x128" : "wgmma_144x128"));
      CHECK(choice_of(gathered(rows_of(average, type))) == (few ? "wgmma_64x128_gather" : "wgmma_144x256_gather"));
      ProductShape over_k = rows_of(average, type);
      over_k.variable_k = true;
      CHECK(choice_of(over_k) == "wgmma_128x192_k");
    }
  ProductShape no_groups = rows_of(0);
  no_groups.groups = 0;
  CHECK(choice_of(no_groups) == "wgmma_64x128");
}

TEST_CASE("wgmma choice: rows of a list that may be sorted take the kernel of rows in order, unless the other is named",
          "[host]") {
  ProductShape shape = gathered(rows_of(1000));
  shape.may_sort = true;
  CHECK(choice_of(shape) == "wgmma_144x128");
  {
    const Forced forced("wgmma_144x256_gather");
    CHECK(choice_of(shape) == "wgmma_144x256_gather");
  }
  const Forced forced("wgmma_144x128");
  CHECK(choice_of(shape) == "wgmma_144x128");
  shape.may_sort = false;
  require_refused(GGM_STATUS_UNSUPPORTED, shape, "wgmma_144x128");
}

TEST_CASE("wgmma choice: every kernel of the table is taken for something, and fits what it is taken for", "[host]") {
  bool taken[kWgmmaKernelCount] = {};
  for (const double average : {1.0, 1000.0})
    for (const bool list : {false, true})
      for (const bool over_k : {false, true}) {
        ProductShape shape = rows_of(average);
        shape.gathered = list;
        shape.variable_k = over_k;
        const int kernel = kernel_of(shape);
        CHECK((kernel < 0) == (list && over_k));
        if (kernel < 0) continue;
        taken[kernel] = true;
        CHECK(kWgmmaKernels[kernel].gathered == list);
        CHECK(kWgmmaKernels[kernel].turned != over_k);
      }
  for (int kernel = 0; kernel < kWgmmaKernelCount; ++kernel) {
    INFO(kWgmmaKernels[kernel].name);
    CHECK(taken[kernel]);
  }
}

TEST_CASE("wgmma choice: none for other types, families and shapes, or on fewer multiprocessors than a cluster has", "[host]") {
  for (const Type type : {Type::float32, Type::float64}) CHECK(choice_of(rows_of(1000, type)) == "none");
  Device portable = hopper();
  portable.kernel_family = GGM_KERNELS_CUDA_PORTABLE;
  CHECK(choice_of(rows_of(1000), portable) == "none");
  for (ProductShape shape : {rows_of(1000), gathered(rows_of(1000)), variable_k()}) {
    for (const int few : {0, 1}) CHECK(choice_of(shape, hopper(), few) == "none");
    for (const int enough : {2, 3, 132}) CHECK(choice_of(shape, hopper(), enough) != "none");
    shape.portable = true;
    CHECK(choice_of(shape) == "none");
  }
  CHECK(choice_of(gathered(variable_k())) == "none");
}

TEST_CASE("wgmma choice: the portable kernel is chosen beside it, and is that of the portable family", "[host]") {
  Device portable = hopper();
  portable.kernel_family = GGM_KERNELS_CUDA_PORTABLE;
  for (const ProductShape& shape : {rows_of(3), rows_of(50), rows_of(5000), gathered(rows_of(50)), variable_k()}) {
    ProductKernels with, without;
    GGM_REQUIRE_OK(choose_kernels(shape, hopper(), 132, &with));
    GGM_REQUIRE_OK(choose_kernels(shape, portable, 132, &without));
    CHECK(with.portable >= 0);
    CHECK(with.portable == without.portable);
    CHECK(name(with.wgmma) != "none");
    CHECK(name(without.wgmma) == "none");
  }
}

TEST_CASE("GGM_KERNELS: the name of a portable kernel leaves no other and no wgmma kernel", "[host]") {
  const Forced forced("mma_32x128x64");
  for (const ProductShape& shape : {rows_of(1000), gathered(rows_of(1000)), variable_k()}) {
    ProductKernels kernels;
    GGM_REQUIRE_OK(choose_kernels(shape, hopper(), 132, &kernels));
    CHECK(std::string(kGemmKernels[kernels.portable].name) == "mma_32x128x64");
    CHECK(name(kernels.wgmma) == "none");
  }
  require_refused(GGM_STATUS_UNSUPPORTED, rows_of(1000, Type::float32), "names another");
}

TEST_CASE("GGM_KERNELS: the name of a wgmma kernel leaves that one, however few rows", "[host]") {
  for (int kernel = 0; kernel < kWgmmaKernelCount; ++kernel) {
    const WgmmaKernel& row = kWgmmaKernels[kernel];
    const Forced forced(row.name);
    INFO(row.name);
    ProductShape fits = row.turned ? rows_of(3) : variable_k();
    fits.gathered = row.gathered;
    ProductKernels kernels;
    GGM_REQUIRE_OK(choose_kernels(fits, hopper(), 132, &kernels));
    CHECK(kernels.wgmma == kernel);
    CHECK(kernels.portable >= 0);  // for operands that the copy engine cannot read
  }
}

TEST_CASE("GGM_KERNELS: a wgmma kernel that does not serve the product is refused, with the variable and its value", "[host]") {
  const Forced forced("wgmma_128x192_k");
  require_refused(GGM_STATUS_UNSUPPORTED, rows_of(1000), "wgmma_128x192_k");
  require_refused(GGM_STATUS_UNSUPPORTED, gathered(rows_of(1000)), "wgmma_128x192_k");
}

TEST_CASE("GGM_KERNELS: a name that is in no table is refused, with the variable and its value", "[host]") {
  for (const char* value : {"no such kernel", "", "wgmma", "mma_32x128x64 ", "MMA_32x128x64"}) {
    const Forced forced(value);
    require_refused(GGM_STATUS_INVALID_VALUE, rows_of(1000), std::string("GGM_KERNELS = ") + value);
    require_refused(GGM_STATUS_INVALID_VALUE, rows_of(1000, Type::float32), std::string("GGM_KERNELS = ") + value);
  }
}
