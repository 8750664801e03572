#include "cases/case.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ggm_test::cases {
namespace {

template <typename Same>
void require_by(Same same, const Values& got, const Values& want, const std::string& what, std::int64_t columns) {
  REQUIRE(got.size() == want.size());
  std::int64_t wrong = 0;
  std::string places;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (same(i) || ++wrong > 4) continue;
    const long long at = static_cast<long long>(i), width = columns > 0 ? columns : 1;
    char line[160];
    std::snprintf(line, sizeof line, "\n  row %lld column %lld: got %.9g, expected %.9g", at / width, at % width, got[i],
                  want[i]);
    places += line;
  }
  if (wrong != 0) FAIL(what << ": " << wrong << " of " << got.size() << " elements differ" << places);
  SUCCEED();
}

std::int32_t family_of(const Handle& handle) {
  ggm_info_t info = GGM_INFO_INIT;
  GGM_REQUIRE_OK(ggm_get_info(handle, &info));
  return info.kernel_family;
}

void run_on_each(const std::vector<Backend>& backends, void (*function)(const Handle&)) {
  std::vector<std::int32_t> seen;
  for (const Backend& backend : backends) {
    const Handle handle(backend);
    const std::int32_t family = family_of(handle);
    if (std::find(seen.begin(), seen.end(), family) != seen.end()) continue;
    seen.push_back(family);
    INFO("backend " << backend.name);
    function(handle);
  }
}

}  // namespace

void run_on_host(void (*function)(const Handle&)) { run_on_each(host_backends(), function); }
void run_on_gpu(void (*function)(const Handle&)) { run_on_each(cuda_backends(), function); }

void require_same(const Values& got, const Values& want, const std::string& what, std::int64_t columns) {
  require_by(
      [&](std::size_t i) {
        if (std::isnan(got[i]) || std::isnan(want[i])) return std::isnan(got[i]) && std::isnan(want[i]);
        return got[i] == want[i] && std::signbit(got[i]) == std::signbit(want[i]);
      },
      got, want, what, columns);
}

void require_same_numbers(const Values& got, const Values& want, const std::string& what, std::int64_t columns) {
  require_by([&](std::size_t i) { return got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])); }, got, want, what,
             columns);
}

void require_within(const Values& got, const Values& want, const Values& limit, const std::string& what, std::int64_t columns) {
  REQUIRE(limit.size() == want.size());
  require_by([&](std::size_t i) { return std::abs(got[i] - want[i]) <= limit[i]; }, got, want, what, columns);
}

}  // namespace ggm_test::cases
