// Choice of wgmma kernels (src/plan/choose.h) on faked devices, and what GGM_KERNELS makes of both tables.
#include <string>

#include "base/status.h"
#include "plan/choose.h"
#include "plan/wgmma_table.h"
#include "support/forced.h"
#include "support/test.h"
#include "unit/faked.h"

using namespace ggm;
using ggm_test::Forced;

namespace {

// 8 groups of `average` rows, 2048 x 2048.
ProductShape rows_of(double average, Type type = Type::bfloat16) {
  ProductShape shape{};
  shape.type = type;
  shape.groups = 8;
  shape.rows = shape.max_rows = static_cast<std::int64_t>(8 * average);
  shape.columns = shape.inner = 2048;
  return shape;
}

ProductShape product(std::int64_t groups, std::int64_t columns, std::int64_t inner, double average) {
  ProductShape shape = rows_of(0);
  shape.groups = groups;
  shape.rows = shape.max_rows = static_cast<std::int64_t>(static_cast<double>(groups) * average);
  shape.columns = columns;
  shape.inner = inner;
  return shape;
}

ProductShape gathered(ProductShape shape) {
  shape.gathered = true;
  return shape;
}
ProductShape relayed(ProductShape shape) {
  shape.gathered = shape.may_relay = true;
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
    for (const double average : {0.0, 1.0, 48.0, 96.0, 144.0, 500.0, 100000.0}) {
      INFO(name_of(type) << ", " << average << " rows");
      const bool few = average <= 48;
      CHECK(choice_of(rows_of(average, type)) == (few ? "wgmma_64x128" : "wgmma_144x128"));
      CHECK(choice_of(gathered(rows_of(average, type))) == (few ? "wgmma_64x128_gather" : "wgmma_144x256_gather"));
      ProductShape over_k = rows_of(average, type);
      over_k.variable_k = true;
      CHECK(choice_of(over_k) == "wgmma_192x128_k");
    }
  ProductShape no_groups = rows_of(0);
  no_groups.groups = 0;
  CHECK(choice_of(no_groups) == "wgmma_64x128");
}

TEST_CASE("wgmma choice: what a kernel needs for a group is that of its pairs of tiles", "[host]") {
  const auto work = [](const char* kernel, ProductShape shape) {
    shape.max_rows = 1;  // times the groups: all groups are of the same size
    for (const WgmmaKernel& row : kWgmmaKernels)
      if (std::string(row.name) == kernel) return expected_wgmma_work(row, shape);
    FAIL(kernel);
    return 0.0;
  };
  // One row: 2 left tiles of 128, so one pair; 3 steps of 64 terms, each 128 rows of the left tile, 8 columns and 8.
  CHECK(work("wgmma_64x128", product(8, 256, 192, 1)) == 3 * 144);
  CHECK(work("wgmma_144x128", product(8, 256, 192, 1)) == 3 * 144 + 180);
  CHECK(work("wgmma_64x128", product(8, 257, 129, 1)) == 2 * 3 * 144);
  // Left tiles of 256 rows: a pair has two of them, each of which counts as two of 128.
  CHECK(work("wgmma_144x256_gather", product(8, 512, 192, 1)) == 3 * 2 * 144 + 580);
  CHECK(work("wgmma_144x256_gather", product(8, 100, 192, 1)) == 3 * 2 * 144 + 580);

  // Groups of exactly so many rows: the average lies far above their bound.
  const auto exact = [](const char* kernel, std::int64_t rows) {
    ProductShape shape = product(1, 128, 64, 1e6);
    shape.max_rows = rows;
    for (const WgmmaKernel& row : kWgmmaKernels)
      if (std::string(row.name) == kernel) return expected_wgmma_work(row, shape);
    return 0.0;
  };
  CHECK(exact("wgmma_64x128", 64) == 128 + 64 + 8);        // one tile, whole left tiles
  CHECK(exact("wgmma_64x128", 65) == 64 + 40 + 8);         // two of 40 columns (33 rounded up to eights), half a left tile each
  CHECK(exact("wgmma_64x128", 150) == 2 * (64 + 40 + 8));  // three tiles become four
  CHECK(exact("wgmma_144x128", 144) == 128 + 144 + 8 + 180);
  CHECK(exact("wgmma_144x128", 150) == 64 + 80 + 8 + 180);
}

// One H200: time of the kernel for few rows over that of the other (docs/kernels.md). Where they are within 1 % either may
// be taken.
TEST_CASE("wgmma choice: the faster of the kernels for few rows and for many, of those measured", "[host]") {
  struct Measured {
    std::int64_t groups, columns, inner;
    double average, in_order, list;  // 0: not measured
  };
  constexpr Measured kMeasured[] = {
      {64, 2048, 2048, 32, 0.97, 0.92},     {64, 2048, 2048, 64, 0.99, 0.93},      {64, 2048, 2048, 128, 1.16, 1.05},
      {64, 2048, 1024, 32, 0.92, 0},        {64, 2048, 1024, 64, 0.94, 0},         {64, 2048, 1024, 128, 1.11, 0},
      {128, 1536, 2048, 16, 0.975, 0.89},   {128, 1536, 2048, 32, 0.98, 0.89},     {128, 1536, 2048, 64, 0.997, 0.90},
      {128, 2048, 768, 16, 0.94, 0},        {128, 2048, 768, 32, 0.95, 0},         {128, 2048, 768, 64, 0.95, 0},
      {8, 28672, 4096, 64, 1.01, 0.99},     {8, 28672, 4096, 128, 1.31, 1.26},     {8, 28672, 4096, 256, 1.43, 1.40},
      {8, 4096, 14336, 64, 1.13, 0},        {8, 4096, 14336, 128, 1.19, 0},        {8, 4096, 14336, 256, 1.51, 0},
      {256, 4096, 7168, 8, 0.994, 0.983},   {256, 4096, 7168, 16, 0.995, 0.983},   {256, 4096, 7168, 32, 1.00, 0.988},
      {256, 7168, 2048, 8, 0.977, 0},       {256, 7168, 2048, 16, 0.983, 0},       {256, 7168, 2048, 32, 0.99, 0},
      {264, 560, 1544, 88.3, 0.935, 0.83},  {77, 3864, 2488, 13.9, 0.966, 0.936},  {56, 4464, 3312, 69.4, 1.013, 0.992},
      {30, 800, 1488, 168.7, 1.155, 1.019}, {13, 2536, 976, 171, 1.274, 1.085},    {133, 744, 1656, 216.5, 1.252, 1.161},
      {15, 800, 2784, 220.3, 1.136, 1.075}, {97, 1960, 1816, 290.2, 1.284, 1.382}, {40, 2592, 2720, 415.7, 1.498, 1.284},
      {30, 552, 920, 896.8, 1.212, 1.043},  {92, 616, 776, 897, 1.234, 1.157},     {17, 824, 2144, 1235.5, 1.273, 1.021},
  };
  int decided = 0;
  for (const Measured& m : kMeasured) {
    const ProductShape shape = product(m.groups, m.columns, m.inner, m.average);
    INFO(m.groups << " groups of " << m.average << " rows, " << m.columns << " x " << m.inner);
    const auto check = [&](double ratio, const ProductShape& asked) {
      if (ratio == 0 || (ratio >= 0.99 && ratio <= 1.01)) return;
      CHECK(kWgmmaKernels[kernel_of(asked)].for_few() == (ratio < 1));
      ++decided;
    };
    check(m.in_order, shape);
    check(m.list, gathered(shape));
  }
  CHECK(decided > 40);
}

TEST_CASE("wgmma choice: no kernel for few rows from two of its tiles a group on", "[host]") {
  for (const std::int64_t columns : {8, 128, 560, 4096})
    for (const std::int64_t inner : {8, 64, 128, 4096})
      for (const bool list : {false, true}) {
        ProductShape shape = product(100, columns, inner, 128);
        shape.gathered = list;
        INFO(columns << " x " << inner << ", list " << list);
        CHECK_FALSE(kWgmmaKernels[kernel_of(shape)].for_few());
        shape.rows = shape.max_rows = 100 * 32;
        CHECK(kWgmmaKernels[kernel_of(shape)].for_few());
      }
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

// One H200: time of the forward with rows relayed over that with rows gathered (docs/kernels-tried.md). Where relaying won no
// more than 3.5 % either may be taken.
TEST_CASE("wgmma choice: rows are relayed where that was faster", "[host]") {
  struct Measured {
    std::int64_t groups, columns, inner;
    double average, ratio;
  };
  constexpr Measured kMeasured[] = {
      {8, 28672, 4096, 4096, 0.967},  {128, 5760, 2880, 1024, 0.934}, {64, 2048, 2048, 4096, 0.932},
      {128, 1536, 2048, 2048, 0.968}, {256, 4096, 7168, 512, 0.990},  {128, 3072, 4096, 2048, 0.988},
      {8, 28672, 4096, 1024, 0.962},  {128, 5760, 2880, 128, 1.006},  {64, 2048, 2048, 512, 1.025},
      {128, 1536, 2048, 256, 1.037},  {256, 4096, 7168, 128, 1.036},  {128, 3072, 4096, 256, 1.025},
      {8, 4096, 14336, 1024, 1.237},  {128, 2880, 2880, 128, 1.035},  {64, 2048, 1024, 512, 0.977},
      {128, 2048, 768, 256, 0.984},   {256, 7168, 2048, 128, 0.994},  {128, 4096, 1536, 256, 0.991},
      {92, 616, 776, 897, 1.080},     {133, 744, 1656, 216.5, 1.102}, {30, 552, 920, 896.8, 0.965},
      {40, 2592, 2720, 415.7, 1.045}, {15, 800, 2784, 220.3, 1.195},  {13, 2536, 976, 171, 1.079},
      {30, 800, 1488, 168.7, 1.050},  {17, 824, 2144, 1235.5, 1.080}, {97, 1960, 1816, 290.2, 1.035}};
  for (const Measured& m : kMeasured) {
    INFO(m.groups << " groups of " << m.average << " rows, " << m.columns << " x " << m.inner);
    const ProductShape shape = product(m.groups, m.columns, m.inner, m.average);
    if (m.ratio < 0.965 || m.ratio >= 1) CHECK(kWgmmaKernels[kernel_of(relayed(shape))].relayed == (m.ratio < 1));
    CHECK_FALSE(kWgmmaKernels[kernel_of(gathered(shape))].relayed);
    CHECK_FALSE(kWgmmaKernels[kernel_of(shape)].takes_list());
  }
}

TEST_CASE("wgmma choice: every kernel of the table is taken for something, and fits what it is taken for", "[host]") {
  bool taken[kWgmmaKernelCount] = {};
  taken[kernel_of(relayed(rows_of(2000)))] = true;
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
        CHECK(kWgmmaKernels[kernel].over_k == over_k);
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
    ProductShape fits = row.over_k ? variable_k() : rows_of(3);
    fits.gathered = row.takes_list();
    fits.may_relay = row.relayed;
    ProductKernels kernels;
    GGM_REQUIRE_OK(choose_kernels(fits, hopper(), 132, &kernels));
    CHECK(kernels.wgmma == kernel);
    CHECK(kernels.portable >= 0);  // for operands that the copy engine cannot read
  }
}

TEST_CASE("GGM_KERNELS: a wgmma kernel that does not serve the product is refused, with the variable and its value", "[host]") {
  const Forced forced("wgmma_192x128_k");
  require_refused(GGM_STATUS_UNSUPPORTED, rows_of(1000), "wgmma_192x128_k");
  require_refused(GGM_STATUS_UNSUPPORTED, gathered(rows_of(1000)), "wgmma_192x128_k");
}

TEST_CASE("GGM_KERNELS: a name that is in no table is refused, with the variable and its value", "[host]") {
  for (const char* value : {"no such kernel", "", "wgmma", "mma_32x128x64 ", "MMA_32x128x64"}) {
    const Forced forced(value);
    require_refused(GGM_STATUS_INVALID_VALUE, rows_of(1000), std::string("GGM_KERNELS = ") + value);
    require_refused(GGM_STATUS_INVALID_VALUE, rows_of(1000, Type::float32), std::string("GGM_KERNELS = ") + value);
  }
}
