// Makes every row of the misuse table on a backend: the status, the words of the text, and that no byte was touched.
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "misuse.h"
#include "support/backend.h"
#include "support/test.h"

namespace {

using namespace misuse;
using ggm_test::Backend;
using ggm_test::Handle;

constexpr int kPoison = 0xa5;

const char* const kBaseNames[kBases] = {"route",        "permute",     "unpermute",     "unpermute_backward", "gemm",
                                        "gemm_offsets", "gemm_starts", "gemm_rows",     "gemm_masked",        "gemm_variable",
                                        "gemm_array",   "forward",     "forward_given", "backward",           "backward_given"};

ggm_create_params_t one_thread() {
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  params.host_threads = 1;  // the workspace, and so the memory to watch, stays small
  return params;
}

// A valid call with memory behind every pointer: one block, all poison, so that one comparison watches everything. The poison
// is also what the valid call reads as ids, sizes and data, which is legal: device data is untrusted.
class Scene {
 public:
  Scene(const Handle& handle, Base base) : backend_(handle.backend()) {
    call_.base = base;
    call_.handle = handle;
    info(base).fill(call_);
    GGM_REQUIRE_OK(query(call_, &call_.required_bytes));
    for (const Pointer& p : info(base).pointers) bytes_ += p.bytes;
    bytes_ += call_.required_bytes + 256;
    memory_ = static_cast<unsigned char*>(ggm_test::allocate(backend_, bytes_));
    unsigned char* next = memory_;
    for (const Pointer& p : info(base).pointers) {
      pointer_of(call_, p) = next;
      next += p.bytes;
    }
    REQUIRE(reinterpret_cast<std::uintptr_t>(next) % GGM_WORKSPACE_ALIGNMENT == 0);
    call_.workspace = call_.required_bytes > 0 ? next : nullptr;
    call_.workspace_bytes = call_.required_bytes;
    poison();
  }
  Scene(const Scene&) = delete;
  ~Scene() { ggm_test::release(backend_, memory_); }

  const Call& valid() const { return call_; }
  void poison() { ggm_test::set_bytes(backend_, memory_, kPoison, bytes_); }

  // The offset of the first byte that is not poison any more, or -1.
  long long touched() {
    std::vector<unsigned char> now(bytes_);
    ggm_test::copy_out(backend_, now.data(), memory_, bytes_);
    for (std::size_t i = 0; i < bytes_; ++i)
      if (now[i] != kPoison) return static_cast<long long>(i);
    return -1;
  }

 private:
  Backend backend_;
  Call call_;
  unsigned char* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// Puts a text in place that no row expects, so that a call which forgets its own is seen.
void set_other_text(ggm_handle_t valid) { ggm_get_info(valid, nullptr); }

void check_failure(ggm_status_t got, ggm_status_t expected, const std::vector<std::string>& words) {
  const std::string text = ggm_last_error();
  INFO("status " << ggm_status_string(got) << ", expected " << ggm_status_string(expected) << "; text: " << text);
  CHECK(got == expected);
  for (const std::string& word : words) {
    INFO("expected in the text: " << word);
    CHECK(text.find(word) != std::string::npos);
  }
}

// "@required" stands for the bytes that the query asked for.
std::vector<std::string> words_of(const Row& row, std::size_t required) {
  std::vector<std::string> words = row.words;
  for (std::string& word : words)
    if (word == "@required") word = std::to_string(required);
  return words;
}

void make_row(const Row& row, Scene& scene) {
  const std::vector<std::string> words = words_of(row, scene.valid().required_bytes);
  Call call = scene.valid();
  row.break_it(call);
  constexpr std::size_t untouched = 0x5a5a5a5a;
  std::size_t bytes = untouched;
  if (row.stage != Stage::call) {
    set_other_text(scene.valid().handle);
    check_failure(query(call, &bytes), row.status, words);
    CHECK(bytes == untouched);
  }
  if (row.stage != Stage::query) {
    // A tensors row may change the problem as well; then the larger workspace is not what it is about.
    if (row.stage == Stage::call && call.handle == scene.valid().handle && !call.null_problem) {
      INFO("the query must accept this problem; last error: " << ggm_last_error());
      CHECK(query(call, &bytes) == GGM_STATUS_SUCCESS);
    }
    set_other_text(scene.valid().handle);
    check_failure(run(call), row.status, words);
  }
  const long long at = scene.touched();
  INFO("first byte that the refused call changed");
  CHECK(at == -1);
  if (at != -1) scene.poison();
}

bool applies(Where where, const Backend& backend) {
  return where == Where::both || where == (backend.cuda ? Where::cuda : Where::host);
}

void make_rows_of(Base base, const Backend& backend) {
  const Handle handle(backend, one_thread());
  Scene scene(handle, base);
  int made = 0;
  for (const Row& row : all_rows()) {
    if (row.base != base || !applies(row.where, backend)) continue;
    if (row.needs_workspace && scene.valid().required_bytes == 0) continue;
    const std::string text = row.subject + " " + row.what;
    if (!ggm_test::case_selected(text)) continue;
    GGM_CASE(text);
    make_row(row, scene);
    ++made;
  }
  CHECK(made > 0);
}

// The calls that the rows break are right themselves: they succeed and write; optional pointers may be NULL; a struct of a
// newer version is accepted while the fields not known here are zero.
void make_valid_calls(Base base, const Backend& backend) {
  const Handle handle(backend, one_thread());
  Scene scene(handle, base);
  INFO("base " << kBaseNames[static_cast<int>(base)]);
  GGM_REQUIRE_OK(run(scene.valid()));
  ggm_test::synchronize(backend);
  if (base != Base::gemm_array) CHECK(scene.touched() != -1);  // the poison as sizes leaves every group of the array empty

  for (const Pointer& p : info(base).pointers) {
    if (p.need != Need::optional) continue;
    scene.poison();
    Call call = scene.valid();
    INFO(p.name << " is NULL");
    pointer_of(call, p) = nullptr;
    if (std::strcmp(p.name, "d_routing_weights") == 0) call.unpermute_backward_tensors.rows = nullptr;
    GGM_REQUIRE_OK(run(call));
  }
  scene.poison();
  Call newer = scene.valid();
  *reinterpret_cast<std::uint32_t*>(reinterpret_cast<unsigned char*>(&newer) + info(base).problem_offset) += 8;
  *reinterpret_cast<std::uint32_t*>(reinterpret_cast<unsigned char*>(&newer) + info(base).tensors_offset) += 8;
  GGM_REQUIRE_OK(run(newer));
  ggm_test::synchronize(backend);
}

void make_free_rows(const Backend& backend) {
  const Handle handle(backend, one_thread());
  for (const FreeRow& row : free_rows()) {
    const std::string text = row.subject + " " + row.what;
    if (!applies(row.where, backend) || !ggm_test::case_selected(text)) continue;
    GGM_CASE(text);
    set_other_text(handle);
    check_failure(row.make(handle), row.status, row.words);
  }
}

void for_all_bases(bool cuda, void (*check)(Base, const Backend&)) {
  for (int i = 0; i < kBases; ++i) check(static_cast<Base>(i), ggm_test::backends(cuda).front());
}

}  // namespace

TEST_CASE("misuse: the valid calls of the table succeed: host", "[host][misuse]") { for_all_bases(false, make_valid_calls); }
TEST_CASE("misuse: the valid calls of the table succeed: gpu", "[gpu][misuse]") { for_all_bases(true, make_valid_calls); }
TEST_CASE("misuse: every row of the table: host", "[host][misuse]") { for_all_bases(false, make_rows_of); }
TEST_CASE("misuse: every row of the table: gpu", "[gpu][misuse]") { for_all_bases(true, make_rows_of); }
TEST_CASE("misuse: create, destroy and info: host", "[host][misuse]") { make_free_rows(ggm_test::host_backends().front()); }
TEST_CASE("misuse: create, destroy and info: gpu", "[gpu][misuse]") { make_free_rows(ggm_test::cuda_backends().front()); }

TEST_CASE("misuse: destroying NULL does nothing", "[host][misuse]") { GGM_REQUIRE_OK(ggm_destroy(nullptr)); }

TEST_CASE("misuse: texts", "[host][misuse]") {
  CHECK(std::string(ggm_status_string(GGM_STATUS_NULL_POINTER)) == "GGM_STATUS_NULL_POINTER");
  for (ggm_status_t unknown : {-1, 1, 1000, 9999, INT32_MAX, INT32_MIN})
    CHECK(std::string(ggm_status_string(unknown)) == "unknown status");

  REQUIRE(ggm_create(nullptr, nullptr) == GGM_STATUS_NULL_POINTER);
  const std::string text = ggm_last_error();
  REQUIRE(text.size() > 4);
  CHECK(ggm_copy_last_error(nullptr, 0) == text.size());
  char buffer[512];
  CHECK(ggm_copy_last_error(buffer, sizeof buffer) == text.size());
  CHECK(text == buffer);
  std::memset(buffer, '#', sizeof buffer);
  CHECK(ggm_copy_last_error(buffer, 4) == text.size());
  CHECK(std::string(buffer) == text.substr(0, 3));
  CHECK(buffer[4] == '#');
  std::memset(buffer, '#', sizeof buffer);
  CHECK(ggm_copy_last_error(buffer, 0) == text.size());
  CHECK(buffer[0] == '#');
}

// Every line that a handle, or the making of one, has logged.
struct Lines {
  std::vector<std::string> errors;
  static void take(void* user, std::int32_t level, const char* line) {
    if (level == GGM_LOG_ERROR) static_cast<Lines*>(user)->errors.push_back(line);
  }
};

TEST_CASE("misuse: what is refused is logged, queries and the making of a handle too", "[host][misuse]") {
  Lines lines;
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  params.backend = GGM_BACKEND_HOST;
  params.log_level = GGM_LOG_ERROR;
  params.log = Lines::take;
  params.log_user = &lines;
  params.host_threads = 1025;
  ggm_handle_t handle = nullptr;
  check_failure(ggm_create(&params, &handle), GGM_STATUS_INVALID_VALUE, {"host_threads", "1025"});
  REQUIRE(lines.errors.size() == 1);
  CHECK(lines.errors[0].find("host_threads = 1025") != std::string::npos);
  params.host_threads = 1;
  GGM_REQUIRE_OK(ggm_create(&params, &handle));
  CHECK(lines.errors.size() == 1);

  std::size_t bytes = 0;
  const auto refused = [&](ggm_status_t status, const char* function) {
    INFO(function);
    CHECK(status != GGM_STATUS_SUCCESS);
    REQUIRE(lines.errors.size() == 2);
    CHECK(lines.errors[1].find(std::string(function) + ": ") == 0);
    CHECK(lines.errors[1].find(ggm_last_error()) != std::string::npos);
    lines.errors.pop_back();
  };
  ggm_route_problem_t route = GGM_ROUTE_PROBLEM_INIT;
  refused(ggm_route_workspace_size(handle, &route, &bytes), "ggm_route_workspace_size");
  ggm_permute_problem_t permute = GGM_PERMUTE_PROBLEM_INIT;
  refused(ggm_permute_workspace_size(handle, &permute, &bytes), "ggm_permute_workspace_size");
  refused(ggm_unpermute_workspace_size(handle, &permute, &bytes), "ggm_unpermute_workspace_size");
  refused(ggm_unpermute_backward_workspace_size(handle, &permute, &bytes), "ggm_unpermute_backward_workspace_size");
  ggm_grouped_gemm_problem_t gemm = GGM_GROUPED_GEMM_PROBLEM_INIT;
  refused(ggm_grouped_gemm_workspace_size(handle, &gemm, &bytes), "ggm_grouped_gemm_workspace_size");
  ggm_grouped_gemm_array_problem_t array = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  refused(ggm_grouped_gemm_array_workspace_size(handle, &array, &bytes), "ggm_grouped_gemm_array_workspace_size");
  ggm_moe_problem_t moe = GGM_MOE_PROBLEM_INIT;
  refused(ggm_moe_forward_workspace_size(handle, &moe, &bytes), "ggm_moe_forward_workspace_size");
  refused(ggm_moe_backward_workspace_size(handle, &moe, &bytes), "ggm_moe_backward_workspace_size");
  refused(ggm_get_info(handle, nullptr), "ggm_get_info");
  GGM_REQUIRE_OK(ggm_destroy(handle));
}

TEST_CASE("misuse: what a log function throws goes no further", "[host][misuse]") {
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  params.backend = GGM_BACKEND_HOST;
  params.log_level = GGM_LOG_TRACE;
  params.log = [](void* user, std::int32_t, const char*) {
    ++*static_cast<int*>(user);
    throw 7;
  };
  int lines = 0;
  params.log_user = &lines;
  params.host_threads = -1;
  ggm_handle_t handle = nullptr;
  check_failure(ggm_create(&params, &handle), GGM_STATUS_INVALID_VALUE, {"host_threads", "-1"});
  CHECK(lines == 1);
  params.host_threads = 1;
  GGM_REQUIRE_OK(ggm_create(&params, &handle));
  std::size_t bytes = 0;
  ggm_route_problem_t problem = GGM_ROUTE_PROBLEM_INIT;
  lines = 0;
  check_failure(ggm_route_workspace_size(handle, &problem, &bytes), GGM_STATUS_INVALID_VALUE, {"top_k = 0"});
  CHECK(lines == 1);
  ggm_route_tensors_t tensors = GGM_ROUTE_TENSORS_INIT;
  check_failure(ggm_route(handle, &problem, &tensors, nullptr, 0, nullptr), GGM_STATUS_INVALID_VALUE, {"top_k = 0"});
  CHECK(lines == 2);
  GGM_REQUIRE_OK(ggm_destroy(handle));
}

TEST_CASE("misuse: a family from the environment that cannot run is put down to it", "[host][misuse]") {
#ifdef GGM_TEST_CUDA
  if (ggm_test::gpu().present) return;
#endif
  REQUIRE(setenv("GGM_FORCE_KERNEL", "portable", 1) == 0);
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  ggm_handle_t handle = nullptr;
  const ggm_status_t status = ggm_create(&params, &handle);
  const std::string text = ggm_last_error();
  REQUIRE(unsetenv("GGM_FORCE_KERNEL") == 0);
  INFO(text);
  CHECK(status != GGM_STATUS_SUCCESS);
  CHECK(handle == nullptr);
  CHECK(text.find("GGM_FORCE_KERNEL = portable") != std::string::npos);
}

#ifdef GGM_TEST_CUDA
TEST_CASE("misuse: CUDA is refused by name where there is no GPU", "[host][misuse]") {
  if (ggm_test::gpu().present) return;
  const ggm_status_t expected = GGM_STATUS_UNSUPPORTED_DEVICE;
#else
TEST_CASE("misuse: CUDA is refused by name in a host-only build", "[host][misuse]") {
  const ggm_status_t expected = GGM_STATUS_BACKEND_UNAVAILABLE;
#endif
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  params.backend = GGM_BACKEND_CUDA;
  auto* handle = reinterpret_cast<ggm_handle_t>(some_pointer());
  const ggm_status_t status = ggm_create(&params, &handle);
  check_failure(status, expected, {});
  CHECK(handle == nullptr);
  CHECK(std::strlen(ggm_last_error()) > 0);
#ifndef GGM_TEST_CUDA
  // A family pins its backend. What is named is what the caller gave.
  params.backend = GGM_BACKEND_AUTO;
  params.kernel_family = GGM_KERNELS_CUDA_HOPPER;
  const ggm_status_t by_family = ggm_create(&params, &handle);
  check_failure(by_family, expected, {"kernel_family", "2"});
  CHECK(handle == nullptr);
#endif
}
