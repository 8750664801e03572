/* libggm for C++17: a thin, header-only layer over ggm.h. It owns handles, turns statuses into exceptions and keeps the
 * workspace query and the call of one operation in one object. Everything of ggm.h stays usable beside it: problems and
 * tensors are the plain structs of that header, and its comments are the contract for what each field and operation means.
 *
 *     ggm::handle handle;                                                 // CUDA when there is a usable GPU, else the host
 *     ggm_moe_problem_t problem = ggm::moe_problem({tokens, top_k, experts}, in_features, out_features,
 *                                                  GGM_TYPE_BFLOAT16, GGM_ORDER_NK, GGM_TYPE_FLOAT32);
 *     auto forward = handle.moe_forward(problem);                         // validates: throws ggm::error with the reason
 *     void* workspace = my_arena.take(forward.workspace_bytes());         // the caller owns all memory
 *     auto tensors = ggm::init<ggm_moe_forward_tensors_t>();
 *     tensors.ids = ids;  ...  tensors.y = y;
 *     forward(tensors, workspace, forward.workspace_bytes(), stream);     // as often as you like, no allocation
 *
 * RULES OF THIS LAYER
 *
 * Errors.  Whatever is not GGM_STATUS_SUCCESS becomes a ggm::error. Only building that exception allocates; a call that
 * succeeds allocates nothing. operation::call returns the status instead, for hot paths that must not throw; to be compiled the
 * header needs exceptions. Destructors never throw.
 *
 * Threads.  As ggm.h says: const members may run at the same time in many threads with one handle.
 *
 * Names.  All are lower case and live in ggm::cpp_v0, an inline namespace: they are written ggm::handle and so on, and object
 * files that were compiled against two versions of this header can still be linked together. The library's own sources
 * use upper-case type names in namespace ggm, so a test may include both.
 *
 * Since 0.1.
 */
#ifndef GGM_GGM_HPP
#define GGM_GGM_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

#include "ggm/ggm.h"

namespace ggm {
inline namespace cpp_v0 {

/* ================================================================================================================
 * Errors
 * ============================================================================================================== */

/* A failed call: the status and the library's text about it. what() is "GGM_STATUS_NAME: text". */
class error : public std::runtime_error {
 public:
  /* status: not GGM_STATUS_SUCCESS. text: what ggm_last_error() said; copied. */
  error(ggm_status_t status, const char* text)
      : std::runtime_error(std::string(ggm_status_string(status)) + ": " + text), status_(status) {}

  /* GGM_STATUS_*; possibly one that this header does not know: then go by its thousand. */
  ggm_status_t status() const noexcept { return status_; }

  /* The text alone: argument, value, limit. Lives as long as this object. */
  const char* text() const noexcept { return what() + std::strlen(ggm_status_string(status_)) + 2; }

 private:
  ggm_status_t status_;
};

/* Throws ggm::error with this thread's last-error text unless status is GGM_STATUS_SUCCESS. For calls of ggm.h made directly.
 */
inline void throw_if_failed(ggm_status_t status) {
  if (status != GGM_STATUS_SUCCESS) throw error(status, ggm_last_error());
}

/* ================================================================================================================
 * Structs: zeros, the size, and the fields that have no default. Set any other field afterwards, by name.
 * ============================================================================================================== */

/* Any public struct of ggm.h, ready to be filled: the same as its GGM_..._INIT macro. */
template <typename Struct>
constexpr Struct init() noexcept {
  Struct value{};
  value.struct_size = static_cast<std::uint32_t>(sizeof(Struct));
  return value;
}

/* The GGM_TYPE_* of a C++ type: type_code<float>::value. Specialise it for your own 16-bit types, for instance
 *     template <> struct ggm::type_code<__nv_bfloat16> { static constexpr std::int32_t value = GGM_TYPE_BFLOAT16; }; */
template <typename T>
struct type_code;
template <>
struct type_code<float> {
  static constexpr std::int32_t value = GGM_TYPE_FLOAT32;
};
template <>
struct type_code<double> {
  static constexpr std::int32_t value = GGM_TYPE_FLOAT64;
};

/* How many tokens are sent where. */
struct routing_sizes {
  std::int64_t tokens;  /* T >= 0 */
  std::int64_t top_k;   /* slots of a token */
  std::int64_t experts; /* local experts */
};

/* ggm_route. id_type: GGM_INDEX_INT32 or INT64. Expert parallelism: set experts_total, first_expert, max_rows. */
inline ggm_route_problem_t route_problem(routing_sizes sizes, std::int32_t id_type = GGM_INDEX_INT32) noexcept {
  auto p = init<ggm_route_problem_t>();
  p.tokens = sizes.tokens;
  p.top_k = sizes.top_k;
  p.experts = sizes.experts;
  p.id_type = id_type;
  return p;
}

/* ggm_permute, ggm_unpermute and ggm_unpermute_backward. features: length of a row. type: of tokens and, unless row_type is
 * set, of rows. routing_weight_type: 0 multiplies by nothing; ggm_permute takes 0 only. */
inline ggm_permute_problem_t permute_problem(routing_sizes sizes, std::int64_t features, std::int32_t type,
                                             std::int32_t routing_weight_type = GGM_TYPE_DEFAULT) noexcept {
  auto p = init<ggm_permute_problem_t>();
  p.tokens = sizes.tokens;
  p.top_k = sizes.top_k;
  p.experts = sizes.experts;
  p.features = features;
  p.token_type = type;
  p.routing_weight_type = routing_weight_type;
  return p;
}

/* Sizes of a grouped product; the table of section 6 in ggm.h says which of m and k is a bound on rows. */
struct gemm_sizes {
  std::int64_t groups, m, n, k;
};

/* ggm_grouped_gemm, contiguous: A [m,k], rows of a group follow each other; B [groups,n,k] (NK) or [groups,k,n] (KN); D [m,n].
 * group_form: GGM_GROUPS_*; the default takes group_sizes [groups] of int32. */
inline ggm_grouped_gemm_problem_t contiguous_problem(gemm_sizes sizes, std::int32_t type, std::int32_t b_order,
                                                     std::int32_t group_form = GGM_GROUPS_SIZES) noexcept {
  auto p = init<ggm_grouped_gemm_problem_t>();
  p.groups = sizes.groups;
  p.m = sizes.m;
  p.n = sizes.n;
  p.k = sizes.k;
  p.layout = GGM_LAYOUT_CONTIGUOUS;
  p.group_form = group_form;
  p.a_type = type;
  p.b_type = type;
  p.b_order = b_order;
  return p;
}

/* ggm_grouped_gemm, masked: A [groups,m,k], D [groups,m,n]; group_sizes [groups] says how many rows of each group count. */
inline ggm_grouped_gemm_problem_t masked_problem(gemm_sizes sizes, std::int32_t type, std::int32_t b_order) noexcept {
  ggm_grouped_gemm_problem_t p = contiguous_problem(sizes, type, b_order);
  p.layout = GGM_LAYOUT_MASKED;
  return p;
}

/* ggm_grouped_gemm, variable K: A [k,m], B [k,n], D [groups,m,n] = A_e^T B_e over the rows of each group (weight gradients). */
inline ggm_grouped_gemm_problem_t variable_k_problem(gemm_sizes sizes, std::int32_t type,
                                                     std::int32_t group_form = GGM_GROUPS_SIZES) noexcept {
  ggm_grouped_gemm_problem_t p = contiguous_problem(sizes, type, 0, group_form);
  p.layout = GGM_LAYOUT_VARIABLE_K;
  return p;
}

/* ggm_grouped_gemm_array: sizes.m, n, k bound the device arrays. a_order: GGM_ORDER_MK or KM; b_order: GGM_ORDER_NK or KN. */
inline ggm_grouped_gemm_array_problem_t array_problem(gemm_sizes sizes, std::int32_t type, std::int32_t a_order,
                                                      std::int32_t b_order) noexcept {
  auto p = init<ggm_grouped_gemm_array_problem_t>();
  p.groups = sizes.groups;
  p.max_m = sizes.m;
  p.max_n = sizes.n;
  p.max_k = sizes.k;
  p.a_type = type;
  p.b_type = type;
  p.a_order = a_order;
  p.b_order = b_order;
  return p;
}

/* ggm_moe_forward and ggm_moe_backward. type: of x and weight. weight_order: GGM_ORDER_NK for [E,N,K], KN for [E,K,N].
 * routing_weight_type: 0 multiplies by nothing. id_type: the type of ids; 0 when you give the arrays of ggm_route instead.
 * For the backward set `gradients` too. */
inline ggm_moe_problem_t moe_problem(routing_sizes sizes, std::int64_t in_features, std::int64_t out_features,
                                     std::int32_t type, std::int32_t weight_order,
                                     std::int32_t routing_weight_type = GGM_TYPE_DEFAULT,
                                     std::int32_t id_type = GGM_INDEX_INT32) noexcept {
  auto p = init<ggm_moe_problem_t>();
  p.tokens = sizes.tokens;
  p.top_k = sizes.top_k;
  p.experts = sizes.experts;
  p.in_features = in_features;
  p.out_features = out_features;
  p.x_type = type;
  p.weight_type = type;
  p.weight_order = weight_order;
  p.routing_weight_type = routing_weight_type;
  p.id_type = id_type;
  return p;
}

/* ================================================================================================================
 * Operations: one problem on one handle, checked once, run many times
 * ============================================================================================================== */

/* What handle::route, handle::moe_forward and the others return. A small value: copy it freely. It holds the problem, the
 * workspace size that the library asked for, and the C handle, which must outlive it. It owns no memory.
 * Thread-safe: every member is const. */
template <typename Problem, typename Tensors, auto Query, auto Call>
class operation {
 public:
  using problem_type = Problem;
  using tensors_type = Tensors;

  /* Validates the problem and asks for its workspace. Throws ggm::error when the problem is wrong or unsupported. */
  operation(ggm_handle_t handle, const Problem& problem) : handle_(handle), problem_(problem) {
    throw_if_failed(Query(handle_, &problem_, &workspace_bytes_));
  }

  /* The bytes of workspace that a call needs; 0 is possible, NULL is right then. Enough for every routing, and for every
   * problem that differs only in fewer tokens or rows. */
  std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }

  const Problem& problem() const noexcept { return problem_; }

  /* Runs it: puts the work on `stream` (host backend: NULL, and returns when done).
   *   tensors          in; the pointers inside are device memory on CUDA, host memory on the host backend
   *   workspace        scratch in the same memory, aligned to GGM_WORKSPACE_ALIGNMENT; garbage before and after
   *   workspace_bytes  its size, at least workspace_bytes()
   * Throws ggm::error; then nothing was launched or written, except on CUDA and internal errors, which may come late. */
  void operator()(const Tensors& tensors, void* workspace, std::size_t workspace_bytes, ggm_stream_t stream = nullptr) const {
    throw_if_failed(call(tensors, workspace, workspace_bytes, stream));
  }

  /* The same without an exception: returns the status, the reason is in ggm_last_error(). */
  ggm_status_t call(const Tensors& tensors, void* workspace, std::size_t workspace_bytes,
                    ggm_stream_t stream = nullptr) const noexcept {
    return Call(handle_, &problem_, &tensors, workspace, workspace_bytes, stream);
  }

 private:
  ggm_handle_t handle_;
  Problem problem_;
  std::size_t workspace_bytes_ = 0;
};

/* The workspace that serves all the given operations one after another in stream order: the largest of their sizes. */
template <typename... Operations>
std::size_t shared_workspace_bytes(const Operations&... operations) noexcept {
  std::size_t bytes = 0;
  ((bytes = operations.workspace_bytes() > bytes ? operations.workspace_bytes() : bytes), ...);
  return bytes;
}

using route_operation = operation<ggm_route_problem_t, ggm_route_tensors_t, &ggm_route_workspace_size, &ggm_route>;
using permute_operation = operation<ggm_permute_problem_t, ggm_permute_tensors_t, &ggm_permute_workspace_size, &ggm_permute>;
using unpermute_operation =
    operation<ggm_permute_problem_t, ggm_permute_tensors_t, &ggm_unpermute_workspace_size, &ggm_unpermute>;
using unpermute_backward_operation = operation<ggm_permute_problem_t, ggm_unpermute_backward_tensors_t,
                                               &ggm_unpermute_backward_workspace_size, &ggm_unpermute_backward>;
using grouped_gemm_operation =
    operation<ggm_grouped_gemm_problem_t, ggm_grouped_gemm_tensors_t, &ggm_grouped_gemm_workspace_size, &ggm_grouped_gemm>;
using grouped_gemm_array_operation = operation<ggm_grouped_gemm_array_problem_t, ggm_grouped_gemm_array_tensors_t,
                                               &ggm_grouped_gemm_array_workspace_size, &ggm_grouped_gemm_array>;
using moe_forward_operation =
    operation<ggm_moe_problem_t, ggm_moe_forward_tensors_t, &ggm_moe_forward_workspace_size, &ggm_moe_forward>;
using moe_backward_operation =
    operation<ggm_moe_problem_t, ggm_moe_backward_tensors_t, &ggm_moe_backward_workspace_size, &ggm_moe_backward>;

/* ================================================================================================================
 * Handle
 * ============================================================================================================== */

/* Owns a ggm_handle_t; movable, not copyable. Destroying it makes no CUDA call and does not wait: work already on a stream
 * completes. Operations made by it must not be called afterwards. */
class handle {
 public:
  /* All defaults: the CUDA backend on device 0 when this build has it and a usable GPU is there, else the host backend. */
  handle() { throw_if_failed(ggm_create(nullptr, &handle_)); }

  /* By parameters; start from ggm::init<ggm_create_params_t>(). Loads every kernel, may allocate and synchronise. */
  explicit handle(const ggm_create_params_t& params) { throw_if_failed(ggm_create(&params, &handle_)); }

  /* On one backend (GGM_BACKEND_*) with all else default. */
  static handle on(std::int32_t backend) {
    auto params = init<ggm_create_params_t>();
    params.backend = backend;
    return handle(params);
  }

  /* Takes over a handle made by ggm_create. NULL makes an empty one. */
  static handle adopt(ggm_handle_t owned) noexcept { return handle(owned); }

  handle(handle&& other) noexcept : handle_(other.release()) {}
  handle& operator=(handle&& other) noexcept {
    if (this != &other) {
      ggm_destroy(handle_);
      handle_ = other.release();
    }
    return *this;
  }
  handle(const handle&) = delete;
  handle& operator=(const handle&) = delete;
  ~handle() { ggm_destroy(handle_); }

  /* The C handle, still owned here. NULL after a move. */
  ggm_handle_t get() const noexcept { return handle_; }

  /* Gives the C handle up: the caller must call ggm_destroy. */
  ggm_handle_t release() noexcept {
    ggm_handle_t owned = handle_;
    handle_ = nullptr;
    return owned;
  }

  explicit operator bool() const noexcept { return handle_ != nullptr; }

  /* Backend, device, kernel family, multiprocessors. */
  ggm_info_t info() const {
    auto info = init<ggm_info_t>();
    throw_if_failed(ggm_get_info(handle_, &info));
    return info;
  }

  /* Each validates the problem, asks for its workspace and returns the operation; throws ggm::error with the reason. */
  route_operation route(const ggm_route_problem_t& problem) const { return {handle_, problem}; }
  permute_operation permute(const ggm_permute_problem_t& problem) const { return {handle_, problem}; }
  unpermute_operation unpermute(const ggm_permute_problem_t& problem) const { return {handle_, problem}; }
  unpermute_backward_operation unpermute_backward(const ggm_permute_problem_t& problem) const { return {handle_, problem}; }
  grouped_gemm_operation grouped_gemm(const ggm_grouped_gemm_problem_t& problem) const { return {handle_, problem}; }
  grouped_gemm_array_operation grouped_gemm_array(const ggm_grouped_gemm_array_problem_t& problem) const {
    return {handle_, problem};
  }
  moe_forward_operation moe_forward(const ggm_moe_problem_t& problem) const { return {handle_, problem}; }
  moe_backward_operation moe_backward(const ggm_moe_problem_t& problem) const { return {handle_, problem}; }

 private:
  explicit handle(ggm_handle_t owned) noexcept : handle_(owned) {}

  ggm_handle_t handle_ = nullptr;
};

}  // namespace cpp_v0
}  // namespace ggm

#endif /* GGM_GGM_HPP */
