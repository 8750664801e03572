// The table of misuse: one wrong call a row, with the status it must give and the words its text must hold.
// Rows start from a *base*, a valid small call of one operation, and break one thing in it. Read by the test (misuse_test.cpp),
// which makes every row on every backend, and by list_rows.cpp, whose output tests/misuse/check_table.py compares with the
// header.
//
// Recipe for a new field: add a line to the rows_*.cpp of its operation; a pointer is one line in bases.cpp, and its rows for
// NULL, alignment and overlap make themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ggm/ggm.h"

namespace misuse {

// Valid calls. Those of one operation differ in what they use, so that every field and pointer is live in one of them.
enum class Base {
  route,
  permute,
  unpermute,
  unpermute_backward,
  gemm,           // contiguous, sizes, C
  gemm_offsets,   // contiguous, offsets
  gemm_starts,    // contiguous, starts and sizes
  gemm_rows,      // contiguous, a group for each row
  gemm_masked,    // masked, C
  gemm_variable,  // variable K, C
  gemm_array,
  forward,         // ids
  forward_given,   // routing arrays
  backward,        // ids, all gradients
  backward_given,  // routing arrays
};
inline constexpr int kBases = 15;

// Everything that a call is made of. A row changes any of it.
struct Call {
  Base base = Base::route;
  ggm_handle_t handle = nullptr;

  ggm_route_problem_t route = GGM_ROUTE_PROBLEM_INIT;
  ggm_permute_problem_t permute = GGM_PERMUTE_PROBLEM_INIT;
  ggm_grouped_gemm_problem_t gemm = GGM_GROUPED_GEMM_PROBLEM_INIT;
  ggm_grouped_gemm_array_problem_t array = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  ggm_moe_problem_t moe = GGM_MOE_PROBLEM_INIT;

  ggm_route_tensors_t route_tensors = GGM_ROUTE_TENSORS_INIT;
  ggm_permute_tensors_t permute_tensors = GGM_PERMUTE_TENSORS_INIT;
  ggm_unpermute_backward_tensors_t unpermute_backward_tensors = GGM_UNPERMUTE_BACKWARD_TENSORS_INIT;
  ggm_grouped_gemm_tensors_t gemm_tensors = GGM_GROUPED_GEMM_TENSORS_INIT;
  ggm_grouped_gemm_array_tensors_t array_tensors = GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT;
  ggm_moe_forward_tensors_t forward_tensors = GGM_MOE_FORWARD_TENSORS_INIT;
  ggm_moe_backward_tensors_t backward_tensors = GGM_MOE_BACKWARD_TENSORS_INIT;

  bool null_problem = false, null_tensors = false, null_bytes = false;
  unsigned char problem_tail = 0, tensors_tail = 0;  // the bytes behind the struct, seen when struct_size says so

  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  std::size_t required_bytes = 0;  // what the query says of the valid call
  ggm_stream_t stream = nullptr;
};

// What happens to a NULL in a pointer field of a base.
enum class Need {
  optional,  // legal
  required,  // GGM_STATUS_NULL_POINTER
  by_type,   // its type field is set: GGM_STATUS_TYPE_MISMATCH
};

// A pointer field that a base uses, with the memory that stands behind it.
struct Pointer {
  const char* name;
  std::size_t offset;     // in the tensors struct
  std::size_t bytes;      // of memory
  std::size_t alignment;  // of the element
  bool output;
  Need need;
};

// What is known about a base.
struct BaseInfo {
  const char* operation;     // "route": the functions are ggm_route_workspace_size and ggm_route
  const char* problem_type;  // "ggm_route_problem_t"
  const char* tensors_type;
  std::size_t problem_offset, problem_bytes;  // in Call
  std::size_t tensors_offset, tensors_bytes;
  ggm_status_t (*query)(ggm_handle_t, const void* problem, std::size_t* bytes);
  ggm_status_t (*run)(ggm_handle_t, const void* problem, const void* tensors, void* workspace, std::size_t bytes, ggm_stream_t);
  void (*fill)(Call&);  // the problem of the valid call
  std::vector<Pointer> pointers;
};
const BaseInfo& info(Base base);

// The functions of a base with the call's structs, tails included.
ggm_status_t query(const Call& call, std::size_t* bytes);
ggm_status_t run(const Call& call);

inline void*& pointer_of(Call& call, const Pointer& pointer) {
  auto* tensors = reinterpret_cast<unsigned char*>(&call) + info(call.base).tensors_offset;
  return *reinterpret_cast<void**>(tensors + pointer.offset);
}

enum class Stage {
  problem,  // wrong in the problem: the query refuses it, and so does the call
  query,    // wrong in an argument that only the query has
  call,     // the query accepts it
};
enum class Where { both, host, cuda };

struct Row {
  std::string subject;  // "ggm_route_problem_t.tokens" or "ggm_route.workspace"
  std::string what;
  Base base;
  std::function<void(Call&)> break_it;
  ggm_status_t status;
  std::vector<std::string> words;  // "@required": the workspace bytes of the valid call
  Stage stage;
  Where where = Where::both;
  bool needs_workspace = false;  // no misuse where the valid call needs none
};

// A row of the functions that are no operations: `make` returns what the misused function returned.
struct FreeRow {
  std::string subject, what;
  std::function<ggm_status_t(ggm_handle_t valid)> make;
  ggm_status_t status;
  std::vector<std::string> words;
  Where where = Where::both;
};

// A field or parameter that cannot be misused, and why.
struct Exempt {
  std::string subject, why;
};

std::vector<Row> common_rows();    // handle, problem, tensors, struct sizes, pointers, workspace, stream
std::vector<Row> route_rows();     // route, permute, unpermute
std::vector<Row> gemm_rows();      // grouped_gemm, grouped_gemm_array
std::vector<Row> moe_rows();       // moe_forward, moe_backward
std::vector<FreeRow> free_rows();  // create, destroy, get_info, texts
std::vector<Exempt> exempt();

// All rows of the operations.
std::vector<Row> all_rows();

// SET(base, member, field, value, status, "word"...): one field of a problem has one wrong value. The text must name the field
// and the value; further words are usually the limit.
#define SET(base, member, field, value, status, ...)                                                                      \
  ::misuse::set_row(base, #field, [](::misuse::Call& call) { call.member.field = value; }, static_cast<long long>(value), \
                    status, {__VA_ARGS__})
Row set_row(Base base, const char* field, std::function<void(Call&)> break_it, long long value, ggm_status_t status,
            std::vector<std::string> more);

// Several fields or a pointer at once; all words are given.
Row problem_row(Base base, const char* field, const char* what, std::function<void(Call&)> break_it, ggm_status_t status,
                std::vector<std::string> words);
Row tensors_row(Base base, const char* field, const char* what, std::function<void(Call&)> break_it, ggm_status_t status,
                std::vector<std::string> words);
// An address that no call may touch, for a pointer that must not be given.
void* some_pointer();

inline constexpr std::int64_t kHuge = INT64_MAX;

}  // namespace misuse
