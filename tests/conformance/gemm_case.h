// One line of the table of ggm_grouped_gemm, and running it on a handle against its reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/reference_gemm.h"
#include "support/repeat.h"
#include "support/scene.h"

namespace ggm_test {

enum class Data { integers, random };

// How alpha, beta and C are used.
enum class Scale { plain, alpha, add, add_in_place, alpha_add_other_type };

struct GemmCase {
  std::int32_t type = GGM_TYPE_FLOAT32;
  std::int32_t layout = GGM_LAYOUT_CONTIGUOUS, form = GGM_GROUPS_SIZES, order = GGM_ORDER_NK;  // no order with VARIABLE_K
  std::int64_t n = 1, inner = 1;                                                               // inner: k; of VARIABLE_K: m
  std::int64_t groups = 1;
  int sizes = 0;                             // pattern of group sizes
  std::vector<std::int64_t> own_sizes = {};  // one for each group, in place of a pattern
  std::int64_t tail = 0;                     // rows beyond the last group
  std::int32_t index_type = GGM_INDEX_INT32;
  std::int64_t gap_a = 0, gap_b = 0, gap_d = 0;  // leading dimension beyond packed
  int strides = 0;                               // 0 packed, 1 with gaps, 2 shared inputs, 3 with gaps of 8 elements
  std::int64_t misalign = 0;                     // elements
  bool wide_output = false;                      // float32 d of 16-bit inputs
  Scale scale = Scale::plain;
  bool keep = false;
  std::int32_t sm_limit = 0;
  std::uint32_t hostile = 0;  // seed of wrong sizes, offsets and row groups
  Data data = Data::integers;

  std::string text() const;
};

// The table of one input type.
std::vector<GemmCase> gemm_cases(std::int32_t type, Data data);

// Tensors, problem and reference of a case on one handle.
class GemmRun {
 public:
  GemmRun(const Handle& handle, const GemmCase& line);

  void run_twice() { scene_.run_twice(op::grouped_gemm, problem_, tensors_); }
  void run() { scene_.run(op::grouped_gemm, problem_, tensors_); }
  void check() const;  // bits or limit, and the faults
  // The call as it was last made, for repeating.
  ReadyCall call() { return ready_call(scene_.handle(), op::grouped_gemm, problem_, tensors_, {d_}); }
  const Tensor& d() const { return *d_; }
  Scene& scene() { return scene_; }
  const ggm_grouped_gemm_problem_t& problem() const { return problem_; }

 private:
  void make_groups();
  void spoil_groups();
  void upload_groups();
  void lay_out();
  void make_inputs();
  void make_outputs();
  void make_problem();

  const GemmCase& line_;
  Scene scene_;
  ggm_grouped_gemm_problem_t problem_ = GGM_GROUPED_GEMM_PROBLEM_INIT;
  ggm_grouped_gemm_tensors_t tensors_ = GGM_GROUPED_GEMM_TENSORS_INIT;
  GemmInput input_;
  std::vector<bool> used_rows_;  // rows of A (VARIABLE_K: of both operands)
  std::vector<bool> used_groups_;
  std::int64_t rows_ = 0;
  Shape a_shape_, b_shape_, d_shape_;
  Tensor *a_ = nullptr, *b_ = nullptr, *c_ = nullptr, *d_ = nullptr, *faults_ = nullptr;
};

}  // namespace ggm_test
