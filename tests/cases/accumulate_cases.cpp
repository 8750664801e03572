// Workspace, beta and accumulation: BR-055, 058, 060.
#include <cmath>

#include "cases/array_case.h"
#include "cases/gemm_case.h"
#include "cases/moe_case.h"

namespace ggm_test::cases {
namespace {

// ggm.h states 256 bytes: any other start is refused and nothing is written; a multiple of 256 gives the exact result.
void workspace_starts(const Handle& handle) {
  const Backend& backend = handle.backend();
  for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
    MoeCase moe = integer_moe(BF16, 100, 2, 5, 64, 48, [](auto t, auto j) { return (3 * t + j) % 5; });
    moe.combine = combine;
    const ggm_moe_problem_t p = moe.problem();
    Tensor ids(backend, "ids", kInt32, {1, 100, 2}), w(backend, "routing_weights", F32, {1, 100, 2});
    Tensor x(backend, "x", BF16, {1, 100, 64}), weight(backend, "weight", BF16, {5, 48, 64}),
        y(backend, "y", BF16, {1, 100, 48});
    ids.assign(moe.ids).upload();
    w.assign(moe.w).upload();
    x.assign(moe.x).upload();
    weight.assign(moe.weight).upload();
    ggm_moe_forward_tensors_t t = GGM_MOE_FORWARD_TENSORS_INIT;
    t.ids = ids.data();
    t.routing_weights = w.data();
    t.x = x.data();
    t.weight = weight.data();
    t.y = y.data();
    std::size_t bytes = 0;
    GGM_REQUIRE_OK(ggm_moe_forward_workspace_size(handle, &p, &bytes));
    REQUIRE(bytes > 0);
    for (std::size_t offset : {0, 1, 4, 8, 16, 32, 64, 128, 256, 512}) {
      INFO("workspace starts " << offset << " bytes behind a 4096-byte border");
      Buffer workspace(backend, bytes, offset);  // exactly the queried size, poisoned, canaries on both sides
      y.upload();                                // poison
      const ggm_status_t status = ggm_moe_forward(handle, &p, &t, workspace.data(), bytes, nullptr);
      synchronize(backend);
      y.download();
      REQUIRE(workspace.damage() == "");
      if (offset % GGM_WORKSPACE_ALIGNMENT == 0) {
        REQUIRE(status == GGM_STATUS_SUCCESS);
        require_same(y.values(), expected_forward(moe), "y", 48);
      } else {
        REQUIRE(status == GGM_STATUS_MISALIGNED);
        REQUIRE(y.unchanged());
      }
    }
  }
}
GGM_CASE_HOST_AND_GPU("BR-055 the workspace needs the stated alignment and bytes and no more", workspace_starts)

const double kContents[] = {std::nan(""), INFINITY, -INFINITY};

void overwritten_outputs(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    for (double content : kContents) {
      CallOptions options;
      options.outputs_hold = content;
      require_gemm(handle, contiguous(type, {5, 0, 40}, 50, 24, 40), options);
      require_gemm(handle, masked(type, {5, 0, 16}, 16, 24, 40), options);
      require_gemm(handle, variable_k(type, {5, 0, 40}, 50, 24, 40), options);
      for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
        MoeCase moe = integer_moe(type, 40, 3, 5, 40, 24, [](auto t, auto j) { return (t + j) % 4; });
        moe.combine = combine;
        require_forward(handle, moe, options);
        require_backward(handle, moe, options);
      }
    }
    // A C that is all NaN is not read with beta = 0.
    GemmCase gemm = contiguous(type, {5, 0, 40}, 50, 24, 40);
    gemm.c.assign(50 * 24, std::nan(""));
    require_gemm(handle, gemm);
  }
}
GGM_CASE_HOST_AND_GPU("BR-058 beta zero never reads the output", overwritten_outputs)

void scaled_additions(const Handle& handle) {
  for (std::int32_t type : kCaseTypes)
    for (double beta : {1.0, -0.5})
      for (bool in_place : {false, true})
        for (GemmCase gemm : {contiguous(type, {5, 0, 40}, 50, 24, 40), masked(type, {5, 0, 16}, 16, 24, 40),
                              variable_k(type, {5, 0, 40}, 50, 24, 40)}) {
          const std::int64_t rows = gemm.layout == GGM_LAYOUT_CONTIGUOUS ? gemm.m : gemm.groups * gemm.m;
          for (std::int64_t i = 0; i < rows * gemm.n; ++i) gemm.c.push_back(2 * P2(i / gemm.n, i % gemm.n));
          gemm.beta = beta;
          gemm.c_is_d = in_place;
          // An empty group gives beta * C, whose zeros may be -0.
          require_same_numbers(grouped_gemm(handle, gemm), expected_gemm(gemm), "d", gemm.n);
        }
}
GGM_CASE_HOST_AND_GPU("BR-058 beta times C is added exactly and empty groups keep it", scaled_additions)

void scaled_additions_in_lists(const Handle& handle) {
  for (std::int32_t type : kCaseTypes)
    for (double beta : {1.0, -0.5}) {
      ArrayCase array;
      array.type = type;
      array.beta = beta;
      for (std::int64_t m : {5, 0, 40}) {
        ArrayGroup group = integer_group(m, m, 24, 40);
        for (std::int64_t i = 0; i < m * 24; ++i) group.c.push_back(2 * P2(i / 24, i % 24));
        array.groups.push_back(group);
      }
      require_array(handle, array);
    }
}
GGM_CASE_HOST_AND_GPU("BR-058 beta times C in lists of groups", scaled_additions_in_lists)

// d_weight of one expert, one feature: calls add dy * x.
MoeCase one_gradient(double x, double dy, std::int32_t d_weight_type, double old) {
  MoeCase moe;
  moe.type = BF16;
  moe.tokens = 1;
  moe.ids = {0};
  moe.x = {x};
  moe.dy = {dy};
  moe.weight = {0};
  moe.d_weight_type = d_weight_type;
  moe.gradients = GGM_GRADIENT_WEIGHT;
  moe.flags = GGM_FLAG_ADD_TO_DWEIGHT;
  moe.d_weight_old = {old};
  return moe;
}

void small_gradients(const Handle& handle) {
  MoeCase first = one_gradient(16, 16, F32, 0);
  first.flags = 0;
  REQUIRE(moe_backward(handle, first).d_weight[0] == 256);
  REQUIRE(moe_backward(handle, one_gradient(1, 1, F32, 256)).d_weight[0] == 257);
  // A bfloat16 d_weight: the sum of the call is added to the old value in float32 and rounded once a call.
  REQUIRE(moe_backward(handle, one_gradient(1, 1, BF16, 256)).d_weight[0] == 256);
  REQUIRE(moe_backward(handle, one_gradient(3, 1, BF16, 256)).d_weight[0] == 260);
}
GGM_CASE_HOST_AND_GPU("BR-060 a float32 gradient buffer keeps 256 plus 1", small_gradients)

void thousand_additions(const Handle& handle) {
  const Backend& backend = handle.backend();
  const MoeCase moe = one_gradient(1, 1, F32, 0);
  const ggm_moe_problem_t p = moe.problem();
  Tensor ids(backend, "ids", kInt32, {1, 1, 1}), x(backend, "x", BF16, {1, 1, 1}), dy(backend, "dy", BF16, {1, 1, 1});
  Tensor d_weight(backend, "d_weight", F32, {1, 1, 1});
  ids.assign(moe.ids).upload();
  x.assign(moe.x).upload();
  dy.assign(moe.dy).upload();
  d_weight.assign(Values{1048576}).upload();
  ggm_moe_backward_tensors_t t = GGM_MOE_BACKWARD_TENSORS_INIT;
  t.ids = ids.data();
  t.x = x.data();
  t.dy = dy.data();
  t.d_weight = d_weight.data();
  std::size_t bytes = 0;
  GGM_REQUIRE_OK(ggm_moe_backward_workspace_size(handle, &p, &bytes));
  Buffer workspace(backend, bytes);
  for (int call = 0; call < 1000; ++call)
    GGM_REQUIRE_OK(ggm_moe_backward(handle, &p, &t, bytes ? workspace.data() : nullptr, bytes, nullptr));
  synchronize(backend);
  d_weight.download();
  REQUIRE(d_weight.at(0, 0, 0) == 1048576 + 1000);
}
GGM_CASE_HOST_AND_GPU("BR-060 a thousand calls add one each to 2^20", thousand_additions)

}  // namespace
}  // namespace ggm_test::cases
