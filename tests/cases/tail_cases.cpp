// Tails in N and K, coverage of all columns, borders of groups inside tiles: BR-030, 032, 037, 039.
#include <algorithm>
#include <cmath>

#include "cases/array_case.h"
#include "cases/gemm_case.h"
#include "cases/moe_case.h"

namespace ggm_test::cases {
namespace {

constexpr std::int64_t kWidths[] = {1, 2, 3, 7, 8, 15, 17, 24, 40, 65, 72, 96, 127, 128, 129, 130, 200, 255, 257};
const Ids kSizes = {3, 1, 0, 130, 17};

// The group of each row, as ids of tokens with one slot each.
Ids ids_of(const Ids& sizes) {
  Ids ids;
  for (std::size_t e = 0; e < sizes.size(); ++e)
    ids.insert(ids.end(), static_cast<std::size_t>(sizes[e]), static_cast<std::int64_t>(e));
  return ids;
}

// Rows packed, and with 13 spare columns that hold a canary (checked by every run).
void columns_behind_n(const Handle& handle) {
  const Ids ids = ids_of(kSizes);
  for (std::int64_t n : kWidths) {
    for (std::int32_t type : kCaseTypes) {
      GemmCase gemm = contiguous(type, kSizes, 151, n, 64);
      MoeCase moe = integer_moe(type, 151, 1, 5, 64, n, [&](auto t, auto) { return ids[static_cast<std::size_t>(t)]; });
      const Values d = expected_gemm(gemm), y = expected_forward(moe);
      for (std::int64_t spare : {0, 13}) {
        gemm.ldd = moe.y_ld = spare ? n + spare : 0;
        require_same(grouped_gemm(handle, gemm), d, "d", n);
        require_same(moe_forward(handle, moe), y, "y", n);
      }
    }
  }
}
GGM_CASE_HOST_AND_GPU("BR-030 columns behind N are never stored", columns_behind_n)

void repeats_near_a_tile_border(const Handle& handle) {
  for (std::int64_t n : {1, 7, 127, 129, 257})
    for (std::int32_t type : kCaseTypes) {
      const GemmCase gemm = contiguous(type, kSizes, 151, n, 64);
      const Values d = expected_gemm(gemm);
      for (int repeat = 0; repeat < 10; ++repeat) require_same(grouped_gemm(handle, gemm), d, "d", n);  // two runs each
    }
}
GGM_CASE_HOST_AND_GPU("BR-030 twenty runs give the same columns", repeats_near_a_tile_border)

void gradient_tails(const Handle& handle) {
  for (std::int32_t type : kCaseTypes)
    for (std::int64_t width : kWidths)
      for (std::int64_t spare : {0, 13}) {
        for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{width, 40}, {40, width}, {width, width}}) {
          GemmCase gemm = variable_k(type, kSizes, 151, m, n);
          gemm.ldd = spare ? n + spare : 0;
          require_gemm(handle, gemm);
        }
      }
}
GGM_CASE_HOST_AND_GPU("BR-030 tails of the gradient in both directions", gradient_tails)

constexpr std::int64_t kCoverageWidths[] = {64, 128, 192, 256, 320, 512, 768, 1000, 1536, 2048, 4096, 7168};
const Ids kCoverageRows = {1, 7, 16, 33, 64, 65, 128, 200, 513};

// Group e of each layout takes kCoverageRows[e] rows; every element must be exact, so none is left at its poison.
void all_columns(const Handle& handle, std::int64_t n, const Ids& rows, std::int32_t type) {
  require_gemm(handle, contiguous(type, rows, sum_of(rows), n, 32));
  require_gemm(handle, masked(type, rows, *std::max_element(rows.begin(), rows.end()), n, 32));
  require_gemm(handle, variable_k(type, {32, 16, 0, 40}, 88, rows.back(), n));
  ArrayCase array;
  array.type = type;
  for (std::int64_t m : rows) array.groups.push_back(integer_group(static_cast<std::int64_t>(array.groups.size()), m, n, 32));
  require_array(handle, array);
}

void coverage(const Handle& handle) {
  const bool cuda = handle.backend().cuda;
  for (std::int64_t n : kCoverageWidths) {
    if (!cuda && n > 1000) break;  // on the host: the widths up to 1000, groups up to 65 rows
    const Ids rows = cuda && n <= 2048 ? kCoverageRows : n <= 1000 ? Ids{1, 7, 16, 33, 64, 65} : Ids{1, 33, 65, 200};
    for (std::int32_t type : kCaseTypes) all_columns(handle, n, rows, type);
  }
}
GGM_CASE_HOST_AND_GPU("BR-032 every column of every layout is written", coverage)

// A row of group e is (e+1) times its input: a wrong factor names the wrong expert.
void borders_inside_tiles(const Handle& handle) {
  std::vector<Ids> lists = {{128, 130, 65}, {1, 1, 1, 1}, {127, 129, 1}, {64, 0, 64, 0, 64}, {5, 0, 3, 8, 1, 0, 0, 200}};
  Ids permutation = {1, 63, 64, 65};
  do lists.push_back(permutation);
  while (std::next_permutation(permutation.begin(), permutation.end()));
  for (std::int32_t type : kCaseTypes)
    for (const Ids& sizes : lists) {
      const GemmCase gemm = tag_contiguous(type, sizes, 32);
      Values closed;
      std::int64_t row = 0;
      for (std::size_t e = 0; e < sizes.size(); ++e)
        for (std::int64_t i = 0; i < sizes[e]; ++i, ++row)
          for (std::int64_t c = 0; c < 32; ++c)
            closed.push_back(P(row, c) * tag_weight(type, static_cast<std::int64_t>(e), c, c) + 0.0);
      require_same_numbers(closed, expected_gemm(gemm), "closed form", 32);
      require_gemm(handle, gemm);
    }
}
GGM_CASE_HOST_AND_GPU("BR-037 a group border inside a tile changes the expert", borders_inside_tiles)

std::vector<Ids> gradient_sizes() {
  Ids ascending;
  for (std::int64_t size = 8; size <= 72; size += 16) ascending.push_back(size);
  return {Ids(33, 1), ascending, {63, 65, 1, 127, 129, 0, 7}, {32, 32, 32}};
}

void gradient_at_any_row(const Handle& handle) {
  for (const Ids& sizes : gradient_sizes()) {
    GemmCase gemm = variable_k(BF16, sizes, sum_of(sizes), 96, 80);
    for (Values* values : {&gemm.a, &gemm.b})
      for (double& v : *values) v = std::clamp(v, -2.0, 2.0);
    gemm.d_type = F32;
    require_gemm(handle, gemm);

    for (std::int64_t r = 0; r < gemm.k; ++r) {  // uniform data, error relative to the peak of each group
      for (std::int64_t c = 0; c < 96; ++c) gemm.a[static_cast<std::size_t>(r * 96 + c)] = uniform(1, r, c);
      for (std::int64_t c = 0; c < 80; ++c) gemm.b[static_cast<std::size_t>(r * 80 + c)] = uniform(2, r, c);
    }
    const Values want = expected_gemm(gemm, Rounding::none);
    Values limit(want.size());
    for (std::size_t group = 0; group < sizes.size(); ++group) {
      const auto begin = static_cast<std::ptrdiff_t>(group * 96 * 80);
      double peak = 0;
      for (std::ptrdiff_t i = begin; i < begin + 96 * 80; ++i)
        peak = std::fmax(peak, std::abs(want[static_cast<std::size_t>(i)]));
      std::fill(limit.begin() + begin, limit.begin() + begin + 96 * 80, 1e-3 * peak);
    }
    require_within(grouped_gemm(handle, gemm), want, limit, "d", 80);
  }
}
GGM_CASE_HOST_AND_GPU("BR-039 gradient of groups that start at any row", gradient_at_any_row)

}  // namespace
}  // namespace ggm_test::cases
