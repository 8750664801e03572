// Every call of the golden file on every backend: what comes out is what the file says.
#include <deque>
#include <map>
#include <set>

#include "golden/fields.h"
#include "golden/golden_file.h"
#include "support/scene.h"
#include "support/test.h"

using namespace ggm_test;

namespace {

std::int32_t element_of(const std::string& name) {
  static const std::map<std::string, std::int32_t> types{{"float32", GGM_TYPE_FLOAT32},
                                                         {"bfloat16", GGM_TYPE_BFLOAT16},
                                                         {"float16", GGM_TYPE_FLOAT16},
                                                         {"float64", GGM_TYPE_FLOAT64},
                                                         {"int32", kInt32},
                                                         {"int64", kInt64},
                                                         {"uint32", kUint32}};
  return golden::named(types, name);
}

const std::vector<golden::Case>& cases() {
  static const std::vector<golden::Case> all = golden::read(GGM_GOLDEN_FILE);
  return all;
}

// The tensors of one case. A field that is only wanted starts as poison.
struct Arrays {
  Scene& scene;
  std::map<std::string, Tensor*> by_field;
  std::map<std::string, std::vector<std::uint64_t>> addresses;  // of the matrices "a.0", "a.1", ... under "a"

  Arrays(Scene& scene_, const golden::Case& call) : scene(scene_) {
    std::set<std::string> written;
    for (const golden::Array& array : call.arrays)
      if (array.wanted) written.insert(array.field);
    for (const golden::Array& array : call.arrays) {
      Tensor*& tensor = by_field[array.field];
      const auto count = static_cast<std::int64_t>(array.numbers.size());
      const std::int32_t type = element_of(array.type);
      if (tensor == nullptr) {
        tensor = written.count(array.field) ? &scene.output(array.field, type, {1, 1, count})
                                            : &scene.input(array.field, type, {1, 1, count});
        const std::size_t dot = array.field.find('.');
        if (dot != std::string::npos) {
          std::vector<std::uint64_t>& list = addresses[array.field.substr(0, dot)];
          REQUIRE(array.field.substr(dot + 1) == std::to_string(list.size()));
          list.push_back(reinterpret_cast<std::uint64_t>(tensor->data()));
        }
      }
      if (!array.wanted) tensor->assign(array.numbers);
    }
    for (const auto& [field, list] : addresses) {
      Tensor& tensor = scene.input(field, kInt64, {1, 1, static_cast<std::int64_t>(list.size())});
      by_field[field] = &tensor.assign(list);
    }
  }
};

std::string difference(const Tensor& tensor, const golden::Array& wanted) {
  for (std::size_t i = 0; i < wanted.numbers.size(); ++i) {
    const auto column = static_cast<std::int64_t>(i);
    const double got = is_integer(tensor.type()) ? static_cast<double>(tensor.integer(column)) : tensor.at(0, 0, column);
    if (!(got == static_cast<double>(wanted.numbers[i])))
      return wanted.field + "[" + std::to_string(i) + "] is " + std::to_string(got) + "; it must be " +
             std::to_string(wanted.numbers[i]);
  }
  return "";
}

template <typename P, typename T>
void run(const Operation<P, T>& operation, bool cuda) {
  int found = 0;
  for (const Backend& backend : backends(cuda)) {
    const Handle handle(backend);
    for (const golden::Case& call : cases()) {
      if ("ggm_" + call.operation != operation.name) continue;
      ++found;
      const std::string text = backend.name + " " + call.title;
      if (!case_selected(text)) continue;
      GGM_CASE(text);
      P problem{};
      T tensors{};
      problem.struct_size = sizeof(P);
      tensors.struct_size = sizeof(T);
      Scene scene(handle);
      const Arrays arrays(scene, call);
      for (const auto& [field, value] : call.problem) golden::named(golden::setters(problem), field)(problem, value);
      for (const auto& [field, tensor] : arrays.by_field)
        if (field.find('.') == std::string::npos) golden::named(golden::pointers(tensors), field)(tensors, tensor->data());
      scene.run_twice(operation, problem, tensors);
      bool compared = false;
      for (const golden::Array& array : call.arrays) {
        if (!array.wanted) continue;
        const std::string wrong = difference(*arrays.by_field.at(array.field), array);
        INFO(wrong);
        CHECK(wrong.empty());
        compared = true;
      }
      CHECK(compared);
    }
  }
  CHECK(found > 0);
}

}  // namespace

#define GGM_GOLDEN_TEST(operation)                                               \
  TEST_CASE("golden file: " #operation, "[host]") { run(op::operation, false); } \
  TEST_CASE("golden file: " #operation ", GPU", "[gpu]") { run(op::operation, true); }

GGM_GOLDEN_TEST(route)
GGM_GOLDEN_TEST(permute)
GGM_GOLDEN_TEST(unpermute)
GGM_GOLDEN_TEST(unpermute_backward)
GGM_GOLDEN_TEST(grouped_gemm)
GGM_GOLDEN_TEST(grouped_gemm_array)
GGM_GOLDEN_TEST(moe_forward)
GGM_GOLDEN_TEST(moe_backward)

TEST_CASE("golden file: each case is of an operation that a test runs", "[host]") {
  const std::set<std::string> known{op::route.name,        op::permute.name,
                                    op::unpermute.name,    op::unpermute_backward.name,
                                    op::grouped_gemm.name, op::grouped_gemm_array.name,
                                    op::moe_forward.name,  op::moe_backward.name};
  std::set<std::string> seen;
  for (const golden::Case& call : cases()) seen.insert("ggm_" + call.operation);
  CHECK(seen == known);
}
