// ggm_grouped_gemm over its table: every backend row, type, layout, group form, order, shape, gap, alignment and scale.
#include "conformance/families.h"
#include "conformance/gemm_case.h"

using namespace ggm_test;

namespace {

void integers(bool cuda, std::int32_t type) {
  for (const Backend& backend : backends(cuda)) {
    const Handle handle(backend);
    for (const GemmCase& line : gemm_cases(type, Data::integers)) {
      const std::string text = backend.name + " " + line.text();
      if (!case_selected(text)) continue;
      GGM_CASE(text);
      GemmRun run(handle, line);
      run.run_twice();
      run.check();
    }
  }
}

void random(bool cuda, std::int32_t type) {
  each_family<GemmRun>(cuda, gemm_cases(type, Data::random), [](const GemmRun& run) { return run.d().all_bits(); });
}

}  // namespace

TEST_CASE("grouped_gemm: integers bit for bit, float32", "[host]") { integers(false, GGM_TYPE_FLOAT32); }
TEST_CASE("grouped_gemm: integers bit for bit, bfloat16", "[host]") { integers(false, GGM_TYPE_BFLOAT16); }
TEST_CASE("grouped_gemm: integers bit for bit, float16", "[host]") { integers(false, GGM_TYPE_FLOAT16); }
TEST_CASE("grouped_gemm: integers bit for bit, float64", "[host]") { integers(false, GGM_TYPE_FLOAT64); }
TEST_CASE("grouped_gemm: integers bit for bit, float32, GPU", "[gpu]") { integers(true, GGM_TYPE_FLOAT32); }
TEST_CASE("grouped_gemm: integers bit for bit, bfloat16, GPU", "[gpu]") { integers(true, GGM_TYPE_BFLOAT16); }
TEST_CASE("grouped_gemm: integers bit for bit, float16, GPU", "[gpu]") { integers(true, GGM_TYPE_FLOAT16); }
TEST_CASE("grouped_gemm: integers bit for bit, float64, GPU", "[gpu]") { integers(true, GGM_TYPE_FLOAT64); }

TEST_CASE("grouped_gemm: random data within the limits, all families the same bits", "[host]") {
  for (const std::int32_t type : kFloatTypes) random(false, type);
}
TEST_CASE("grouped_gemm: random data within the limits, all families the same bits, GPU", "[gpu]") {
  for (const std::int32_t type : kFloatTypes) random(true, type);
}
