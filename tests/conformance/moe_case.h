// One line of the table of ggm_moe_forward and ggm_moe_backward, and running it on a handle against its reference.
#pragma once

#include "conformance/gemm_case.h"
#include "conformance/routing_case.h"
#include "support/reference_moe.h"

namespace ggm_test {

struct MoeCase {
  RoutingCase routing;
  std::int32_t type = GGM_TYPE_FLOAT32;
  std::int64_t in_features = 1, out_features = 1;
  std::int32_t order = GGM_ORDER_NK;
  std::int32_t input_rows = GGM_ROWS_TOKENS, output_rows = GGM_ROWS_TOKENS;
  std::int32_t combine = GGM_COMBINE_AUTO;
  std::int32_t routing_weight_type = 0, bias_type = 0;
  bool wide_product = false;  // product_type float32
  bool wide_output = false;   // y, dx, d_weight float32 of 16-bit inputs
  bool add = false, keep = false;
  std::int32_t id_type = GGM_INDEX_INT32;  // 0: the routing arrays are given
  std::int64_t gap = 0, misalign = 0;
  std::int64_t x_gap = 0;    // of x alone, besides
  bool infinite_dy = false;  // with some infinities in dy
  int strides = 0;           // 0 packed, 1 with gaps, 2 shared weight and bias, 3 weights with gaps of 8 elements
  std::int32_t sm_limit = 0;
  std::uint32_t gradients = 0;  // backward only
  std::uint32_t hostile = 0;    // with given arrays: seed of spoil()
  Data data = Data::integers;

  std::string text() const;
};

std::vector<MoeCase> moe_cases(std::int32_t type, Data data, bool backward);

class MoeRun {
 public:
  MoeRun(const Handle& handle, const MoeCase& line);
  virtual ~MoeRun() = default;

  virtual void run() = 0;
  virtual void run_twice() = 0;
  virtual void check() const = 0;
  virtual std::vector<std::uint64_t> output_bits() const = 0;
  const ggm_moe_problem_t& problem() const { return problem_; }
  Scene& scene() { return scene_; }

 protected:
  const void* routing_array(std::size_t i) const { return arrays_[i] ? arrays_[i]->data() : nullptr; }
  template <typename T>
  void set_common(T* tensors) const;  // the fields that both tensors structs share
  void check_faults() const;
  void require_bits(const Tensor& tensor, const std::vector<double>& want) const;
  void require_bound(const Tensor& tensor, const std::vector<double>& want, const std::vector<double>& magnitude,
                     std::int64_t length) const;
  MoeInput absolute() const;  // the same input of absolute values
  double row_value(std::uint32_t stream, std::int64_t row, std::int64_t column) const;
  // An output of a token or row shape; content as the flags of the case ask.
  Tensor* make_output(const char* name, std::int32_t type, Shape shape, bool always_whole);

  const MoeCase& line_;
  Scene scene_;
  ggm_moe_problem_t problem_ = GGM_MOE_PROBLEM_INIT;
  MoeInput input_;
  Faults faults_want_{};
  RoutingTensors routing_;
  Tensor* arrays_[3] = {nullptr, nullptr, nullptr};
  Tensor *weights_ = nullptr, *x_ = nullptr, *weight_ = nullptr, *bias_ = nullptr, *faults_ = nullptr;

 private:
  void make_routing();
  void make_problem();
  void make_operands();
};

class MoeForwardRun : public MoeRun {
 public:
  MoeForwardRun(const Handle& handle, const MoeCase& line);
  void run() override { scene_.run(op::moe_forward, problem_, tensors_); }
  void run_twice() override { scene_.run_twice(op::moe_forward, problem_, tensors_); }
  void check() const override;
  std::vector<std::uint64_t> output_bits() const override { return y_->all_bits(); }
  // The call as it was last made, for repeating.
  ReadyCall call() { return ready_call(scene_.handle(), op::moe_forward, problem_, tensors_, {y_}); }

 private:
  ggm_moe_forward_tensors_t tensors_ = GGM_MOE_FORWARD_TENSORS_INIT;
  Tensor* y_ = nullptr;
};

class MoeBackwardRun : public MoeRun {
 public:
  MoeBackwardRun(const Handle& handle, const MoeCase& line);
  void run() override { scene_.run(op::moe_backward, problem_, tensors_); }
  void run_twice() override { scene_.run_twice(op::moe_backward, problem_, tensors_); }
  void check() const override;
  std::vector<std::uint64_t> output_bits() const override;

 private:
  ggm_moe_backward_tensors_t tensors_ = GGM_MOE_BACKWARD_TENSORS_INIT;
  Tensor *dy_ = nullptr, *dx_ = nullptr, *d_weight_ = nullptr, *d_bias_ = nullptr, *d_routing_weights_ = nullptr;
};

}  // namespace ggm_test
