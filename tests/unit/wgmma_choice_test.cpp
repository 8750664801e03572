// Choice of wgmma kernels (src/plan/choose.h) on faked devices, and what GGM_KERNELS makes of both tables.
#include <cstdlib>
#include <string>

#include "base/status.h"
#include "plan/choose.h"
#include "plan/wgmma_table.h"
#include "support/test.h"

using namespace ggm;

namespace {

constexpr int kNone = -1;

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
ProductShape rows_of(double average, std::int64_t k = 2048, Type type = Type::bfloat16) {
  ProductShape shape{};
  shape.type = type;
  shape.groups = 8;
  shape.rows = shape.max_rows = static_cast<std::int64_t>(8 * average);
  shape.k = k;
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

WgmmaChoice choice_of(const ProductShape& shape, const Device& device = hopper(), int multiprocessors = 132) {
  WgmmaChoice choice{5, 5};  // must be overwritten
  GGM_REQUIRE_OK(choose_wgmma(shape, device, multiprocessors, &choice));
  return choice;
}

std::string name(int kernel) { return kernel < 0 ? "none" : kWgmmaKernels[kernel].name; }

void require_none(const WgmmaChoice& choice) {
  CHECK(name(choice.any) == "none");
  CHECK(name(choice.plain) == "none");
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

TEST_CASE("wgmma choice: 16-bit products over rows in order, through a list, and over K", "[host]") {
  for (const Type type : {Type::bfloat16, Type::float16}) {
    INFO(name_of(type));
    CHECK(name(choice_of(rows_of(100, 2048, type)).any) == "wgmma_144x128");
    CHECK(name(choice_of(gathered(rows_of(100, 2048, type))).any) == "wgmma_144x256_gather");
    ProductShape over_k = variable_k();
    over_k.type = type;
    CHECK(name(choice_of(over_k).any) == "wgmma_128x192_k");
  }
  CHECK(name(choice_of(gathered(rows_of(5000))).plain) == "none");
  CHECK(name(choice_of(variable_k()).plain) == "none");
}

TEST_CASE("wgmma choice: every kernel of the table is taken for something, and fits what it is taken for", "[host]") {
  bool taken[kWgmmaKernelCount] = {};
  for (const bool list : {false, true})
    for (const bool over_k : {false, true})
      for (const double average : {0.0, 1.0, 499.0, 500.0, 100000.0}) {
        ProductShape shape = rows_of(average);
        shape.gathered = list;
        shape.variable_k = over_k;
        const WgmmaChoice choice = choice_of(shape);
        for (const int kernel : {choice.any, choice.plain}) {
          if (kernel < 0) continue;
          taken[kernel] = true;
          CHECK(kWgmmaKernels[kernel].gathered == list);
          CHECK(kWgmmaKernels[kernel].turned != over_k);
        }
        if (choice.any >= 0) CHECK_FALSE(kWgmmaKernels[choice.any].only_plain);
        if (choice.plain >= 0) CHECK(choice.any >= 0);  // for results that turn out not to be plain
      }
  for (int kernel = 0; kernel < kWgmmaKernelCount; ++kernel) {
    INFO(kWgmmaKernels[kernel].name);
    CHECK(taken[kernel]);
  }
}

TEST_CASE("wgmma choice: wide tiles for plain results of many rows and a long K, and always a kernel for other results",
          "[host]") {
  for (const double average : {0.0, 1.0, 144.0, 499.875, 500.0, 4096.0, 100000.0})
    for (const std::int64_t k : {0, 8, 1023, 1024, 100000}) {
      INFO(average << " rows, K = " << k);
      const WgmmaChoice choice = choice_of(rows_of(average, k));
      CHECK(name(choice.any) == "wgmma_144x128");
      if (average >= 500 && k >= 1024) CHECK(name(choice.plain) == "wgmma_192x128");
      if (choice.plain >= 0) CHECK(kWgmmaKernels[choice.plain].only_plain);
    }
  ProductShape no_groups = rows_of(4096);
  no_groups.groups = 0;  // counts as one
  CHECK(name(choice_of(no_groups).plain) == "wgmma_192x128");
}

TEST_CASE("wgmma choice: none for other types, families and shapes, or on fewer multiprocessors than a cluster has", "[host]") {
  for (const Type type : {Type::float32, Type::float64}) require_none(choice_of(rows_of(1000, 2048, type)));
  Device portable = hopper();
  portable.kernel_family = GGM_KERNELS_CUDA_PORTABLE;
  require_none(choice_of(rows_of(1000), portable));
  for (ProductShape shape : {rows_of(1000), gathered(rows_of(1000)), variable_k()}) {
    for (const int few : {0, 1}) require_none(choice_of(shape, hopper(), few));
    for (const int enough : {2, 3, 132}) CHECK(choice_of(shape, hopper(), enough).any >= 0);
    shape.portable = true;
    require_none(choice_of(shape));
  }
  ProductShape gathered_k = gathered(variable_k());
  require_none(choice_of(gathered_k));
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
    CHECK(with.wgmma.any >= 0);
    require_none(without.wgmma);
  }
}

TEST_CASE("GGM_KERNELS: the name of a portable kernel leaves no other and no wgmma kernel", "[host]") {
  const Forced forced("mma_32x128x64");
  for (const ProductShape& shape : {rows_of(1000), gathered(rows_of(1000)), variable_k()}) {
    ProductKernels kernels;
    GGM_REQUIRE_OK(choose_kernels(shape, hopper(), 132, &kernels));
    CHECK(std::string(kGemmKernels[kernels.portable].name) == "mma_32x128x64");
    require_none(kernels.wgmma);
  }
  require_refused(GGM_STATUS_UNSUPPORTED, rows_of(1000, 2048, Type::float32), "names another");
}

TEST_CASE("GGM_KERNELS: the name of a wgmma kernel leaves that one, however few rows", "[host]") {
  for (int kernel = 0; kernel < kWgmmaKernelCount; ++kernel) {
    const WgmmaKernel& row = kWgmmaKernels[kernel];
    const Forced forced(row.name);
    INFO(row.name);
    ProductShape fits = row.turned ? rows_of(3, 8) : variable_k();
    fits.gathered = row.gathered;
    ProductKernels kernels;
    GGM_REQUIRE_OK(choose_kernels(fits, hopper(), 132, &kernels));
    CHECK(kernels.wgmma.any == (row.only_plain ? kNone : kernel));
    CHECK(kernels.wgmma.plain == (row.only_plain ? kernel : kNone));
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
    require_refused(GGM_STATUS_INVALID_VALUE, rows_of(1000, 2048, Type::float32), std::string("GGM_KERNELS = ") + value);
  }
}
