// What every case uses: names of types, values as float64, where a case runs, and the exact comparison.
//
// A case is a function of a handle. GGM_CASE_HOST_AND_GPU registers it twice: on the host backend, tagged [host], and on each
// CUDA kernel family of the device, tagged [gpu]. README.md lists every title; check_table.py compares the two.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/backend.h"
#include "support/inputs.h"
#include "support/scene.h"
#include "support/test.h"

namespace ggm_test::cases {

using Values = std::vector<double>;
using Ids = std::vector<std::int64_t>;

enum : std::int32_t { F32 = GGM_TYPE_FLOAT32, BF16 = GGM_TYPE_BFLOAT16, F16 = GGM_TYPE_FLOAT16, F64 = GGM_TYPE_FLOAT64 };
inline constexpr std::int32_t kCaseTypes[] = {F32, BF16, F16};

// How a call is made, apart from its data.
struct CallOptions {
  std::optional<double> outputs_hold;         // before the call; default: poison (0xFF in each byte)
  std::map<std::string, std::int64_t> shift;  // elements by which a tensor's base is moved off its 4096-byte border
  std::size_t extra_workspace = 0;
  // How the call itself is made, when not plainly on the default stream: it gets a function that calls on a given stream, and
  // returns that function's status. Graph tests capture here; buffers exist and are filled by then.
  using Call = std::function<ggm_status_t(ggm_stream_t)>;
  std::function<ggm_status_t(const Call&)> around;
};

// The operation as these options make the call. Operations are plain function pointers, so the options go by a thread-local; at
// most one is in use per thread and operation.
template <typename P, typename T>
Operation<P, T> as_called(const Operation<P, T>& operation, const CallOptions& options) {
  static thread_local const Operation<P, T>* real;
  static thread_local const CallOptions* how;
  if (!options.around) return operation;
  real = &operation;
  how = &options;
  return {
      operation.workspace_size,
      [](ggm_handle_t handle, const P* problem, const T* tensors, void* workspace, std::size_t bytes, ggm_stream_t) {
        return how->around([&](ggm_stream_t stream) { return real->call(handle, problem, tensors, workspace, bytes, stream); });
      },
      operation.name};
}

// Runs the case with a handle of each kernel family that the machine has (a family that is the default runs once).
void run_on_host(void (*function)(const Handle&));
void run_on_gpu(void (*function)(const Handle&));

// Fails the test unless both are equal bit for bit (any two NaN are equal); names up to four places as row and column.
void require_same(const Values& got, const Values& want, const std::string& what, std::int64_t columns);
// The same with +0 and -0 equal: for sums of products with negative factors.
void require_same_numbers(const Values& got, const Values& want, const std::string& what, std::int64_t columns);
// |got - want| <= limit element by element.
void require_within(const Values& got, const Values& want, const Values& limit, const std::string& what, std::int64_t columns);

// A tensor for an input or output; NULL at zero size, as ggm.h allows.
inline void* pointer(const Tensor& tensor) { return tensor.size() == 0 ? nullptr : tensor.data(); }

}  // namespace ggm_test::cases

#define GGM_CASE_HOST_AND_GPU(title, function)                                    \
  TEST_CASE(title ": host", "[host]") { ggm_test::cases::run_on_host(function); } \
  TEST_CASE(title ": gpu", "[gpu]") { ggm_test::cases::run_on_gpu(function); }
#define GGM_CASE_HOST(title, function) \
  TEST_CASE(title ": host", "[host]") { ggm_test::cases::run_on_host(function); }
#define GGM_CASE_GPU(title, function) \
  TEST_CASE(title ": gpu", "[gpu]") { ggm_test::cases::run_on_gpu(function); }
#define GGM_CASE_LARGE(title, function) \
  TEST_CASE(title ": gpu", "[gpu][large]") { ggm_test::cases::run_on_gpu(function); }
#define GGM_CASE_SPEED(title, function) \
  TEST_CASE(title ": gpu", "[gpu][serial][speed]") { ggm_test::cases::run_on_gpu(function); }
