// One call of each separate operation on one handle, on random data, ready to be repeated: for promises that hold for all of
// them.
#pragma once

#include <memory>

#include "conformance/array_case.h"
#include "support/reference_route.h"
#include "support/repeat.h"

namespace ggm_test {

struct EachSize {
  std::int64_t tokens = 60, top_k = 3, experts = 7, features = 72, columns = 136, array_groups = 12;
};

class OneOfEach {
 public:
  OneOfEach(const Handle& handle, std::int32_t type, const EachSize& size);
  OneOfEach(const OneOfEach&) = delete;

  // Each has run once, and its outputs hold what they must have again.
  const std::vector<ReadyCall>& calls() const { return calls_; }

 private:
  using Index = std::int64_t;

  template <typename P, typename T>
  void add(Scene* scene, const Operation<P, T>& operation, const P& problem, const T& tensors, std::vector<Tensor*> outputs) {
    scene->run(operation, problem, tensors);
    calls_.push_back(ready_call(handle_, operation, problem, tensors, std::move(outputs)));
  }
  void add_route();
  void add_permutations();
  void add_products();
  void add_array();

  Tensor& random(const char* name, std::int32_t type, Shape shape, std::uint32_t stream);
  Tensor& result(const char* name, std::int32_t type, Shape shape) { return scene_.output(name, type, shape); }
  template <typename T>
  void set_routing(T* tensors) const {
    const auto data = [](const Tensor* tensor) { return static_cast<const std::int32_t*>(tensor->data()); };
    tensors->group_offsets = data(group_offsets_);
    tensors->row_assignment = data(row_assignment_);
    tensors->assignment_row = data(assignment_row_);
  }

  const Handle& handle_;
  const std::int32_t type_;
  const EachSize size_;
  const Index rows_;
  Scene scene_;
  std::vector<Index> ids_;
  Tensor *group_offsets_, *row_assignment_, *assignment_row_, *group_sizes_;
  ArrayCase array_case_;
  std::unique_ptr<ArrayRun> array_;
  std::vector<ReadyCall> calls_;
};

}  // namespace ggm_test
