// Alignment, strides, leading dimensions, storage orders, general groups: BR-033, 035, 036, 089, and 088 on the host.
#include <algorithm>
#include <cmath>

#include "cases/array_case.h"
#include "cases/gemm_case.h"
#include "cases/moe_case.h"

namespace ggm_test::cases {
namespace {

void odd_shapes_back_to_back(const Handle& handle) {
  const std::int64_t shapes[][3] = {{5, 3, 7}, {1, 1, 1}, {33, 65, 129}, {2, 127, 5}, {64, 64, 63}};
  for (std::int32_t type : kCaseTypes)
    for (std::int64_t gap : {0, 1, 3}) {  // gap 0: each operand directly behind the one before
      ArrayCase array;
      array.type = type;
      array.gap = gap;
      for (const auto& s : shapes)
        array.groups.push_back(integer_group(static_cast<std::int64_t>(array.groups.size()), s[0], s[1], s[2]));
      require_array(handle, array);
    }
}
GGM_CASE_HOST_AND_GPU("BR-033 odd shapes with operands aligned to one element", odd_shapes_back_to_back)

GemmCase strided(std::int32_t type) {
  GemmCase gemm = masked(type, {16, 5, 0}, 16, 24, 32);
  for (std::int64_t e = 0; e < 3; ++e)  // tag-like: the expert's number on the diagonal
    for (std::int64_t n = 0; n < 24; ++n)
      for (std::int64_t k = 0; k < 32; ++k)
        gemm.b[static_cast<std::size_t>((e * 24 + n) * 32 + k)] = n == k ? static_cast<double>(e + 1) : 0;
  return gemm;
}

// The ABI has no column stride, so "experts innermost" is D as [Mmax, E, N]: rows E*N apart, experts N apart.
void strides_of_d(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    GemmCase gemm = strided(type);
    require_gemm(handle, gemm);
    gemm.ldd = 3 * 24;
    gemm.stride_d = 24;
    require_gemm(handle, gemm);
    gemm.ldd = 24 + 8;
    gemm.stride_d = 16 * (24 + 8) + 64;
    require_gemm(handle, gemm);
    gemm.flags = GGM_FLAG_KEEP_UNUSED_ROWS;
    require_gemm(handle, gemm);
  }
}
GGM_CASE_HOST_AND_GPU("BR-035 output strides are kept and nothing between them is touched", strides_of_d)

void strides_of_inputs(const Handle& handle) {
  for (std::int32_t type : kCaseTypes)
    for (std::int32_t order : {GGM_ORDER_NK, GGM_ORDER_KN}) {
      GemmCase gemm = strided(type);
      gemm.b_order = order;
      gemm.lda = 3 * 32;
      gemm.stride_a = 32;
      require_gemm(handle, gemm);
      gemm.lda = 32 + 5;
      gemm.stride_a = 16 * 37 + 3;
      gemm.ldb = order == GGM_ORDER_NK ? 32 + 3 : 24 + 3;
      gemm.stride_b = (order == GGM_ORDER_NK ? 24 : 32) * gemm.ldb + 11;
      require_gemm(handle, gemm);
      GemmCase shared = strided(type);  // one weight, then one A, for all experts
      shared.b_order = order;
      shared.stride_b = GGM_STRIDE_SHARED;
      shared.b.resize(24 * 32);
      require_gemm(handle, shared);
      shared.stride_a = GGM_STRIDE_SHARED;
      shared.a.resize(16 * 32);
      require_gemm(handle, shared);
    }
}
GGM_CASE_HOST_AND_GPU("BR-035 input strides are kept and stride zero shares a matrix", strides_of_inputs)

// Each tensor in turn starts 1, 2, 3, 4 or 8 elements behind its border.
void shifted_bases(const Handle& handle) {
  for (std::int32_t type : kCaseTypes) {
    MoeCase moe = integer_moe(type, 20, 2, 3, 64, 64, [](auto t, auto j) { return (2 * t + j) % 3; });
    moe.bias_type = type;
    for (std::int64_t i = 0; i < 3 * 64; ++i) moe.bias.push_back(bias_rule(i / 64, i % 64));
    moe.gradients |= GGM_GRADIENT_BIAS;
    const Values y = expected_forward(moe);
    const MoeGradients gradients = expected_backward(moe);
    for (const char* name :
         {"x", "weight", "ids", "routing_weights", "bias", "y", "dy", "dx", "d_weight", "d_bias", "d_routing_weights"})
      for (std::int64_t shift : {1, 2, 3, 4, 8}) {
        INFO(name << " shifted by " << shift << " elements");
        CallOptions options;
        options.shift[name] = shift;
        require_same(moe_forward(handle, moe, options), y, "y", moe.out);
        require_same_gradients(moe_backward(handle, moe, options), gradients, moe);
      }
    for (const char* name : {"a", "b", "d", "group_sizes"})
      for (std::int64_t shift : {1, 2, 3, 4, 8}) {
        CallOptions options;
        options.shift[name] = shift;
        require_gemm(handle, contiguous(type, {7, 0, 33}, 40, 64, 64), options);
        require_gemm(handle, variable_k(type, {7, 0, 33}, 40, 64, 64), options);
      }
  }
}
GGM_CASE_HOST_AND_GPU("BR-036 base pointers need the alignment of an element only", shifted_bases)

// M, N, K, leading dimensions and places of every group differ; two groups share A, two others share B.
ArrayCase mixed_groups(std::int32_t type, std::int64_t count, std::int32_t a_order, std::int32_t b_order) {
  ArrayCase array;
  array.type = type;
  array.a_order = a_order;
  array.b_order = b_order;
  for (std::int64_t i = 0; i < count; ++i) {
    ArrayGroup group = integer_group(i, 1 + 37 * i % 90, 1 + 53 * i % 130, 1 + 71 * i % 200);
    group.lda = (a_order == GGM_ORDER_MK ? group.k : group.m) + i % 3;
    group.ldb = (b_order == GGM_ORDER_NK ? group.k : group.n) + i % 3;
    group.ldd = group.n + i % 3;
    array.groups.push_back(std::move(group));
  }
  if (count >= 3) {
    ArrayGroup twin = array.groups[1];  // reads the A of group 1 with its own B
    twin.b = integer_group(count + 1, 0, twin.n, twin.k).b;
    twin.same_a = 1;
    array.groups.push_back(twin);
    twin = array.groups[2];  // and the B of group 2 with its own A
    twin.a = integer_group(count + 2, twin.m, 0, twin.k).a;
    twin.same_b = 2;
    array.groups.push_back(twin);
  }
  for (std::size_t i = 0; i < array.groups.size(); ++i) array.order.push_back(i);
  std::sort(array.order.begin(), array.order.end(), [](std::size_t a, std::size_t b) {
    return mix(static_cast<std::uint32_t>(a), 1, 1) < mix(static_cast<std::uint32_t>(b), 1, 1);
  });
  return array;
}

void general_groups(const Handle& handle) {
  const bool cuda = handle.backend().cuda;
  for (std::int64_t count : {1, 3, 4, 31, 32, 33, 64, 65, 1000}) {
    if (count == 1000 && !cuda) count = 150;
    for (std::int32_t a_order : {GGM_ORDER_MK, GGM_ORDER_KM})
      for (std::int32_t b_order : {GGM_ORDER_NK, GGM_ORDER_KN})
        for (std::int32_t type : kCaseTypes) {
          // On the host and for many groups one type each: the order pairs take turns.
          const bool chosen = type == kCaseTypes[(count + a_order + 2 * b_order) % 3];
          if ((cuda && count < 1000) || chosen) require_array(handle, mixed_groups(type, count, a_order, b_order));
        }
  }
}
GGM_CASE_HOST_AND_GPU("BR-089 groups of mixed shapes orders and leading dimensions", general_groups)

void model_like_groups(const Handle& handle) {
  const std::int64_t pairs[][2] = {{1280, 1024}, {512, 5120}, {512, 256}, {512, 256}};
  for (std::int32_t type : kCaseTypes) {
    ArrayCase array;
    array.type = type;
    for (const auto& pair : pairs) {
      const std::int64_t i = static_cast<std::int64_t>(array.groups.size());
      array.groups.push_back(integer_group(i, 3 + 5 * i, pair[0], pair[1]));
    }
    require_array(handle, array);
  }
}
GGM_CASE_HOST_AND_GPU("BR-089 four wide groups of different sizes", model_like_groups)

// All multiples of 64 up to 2048 against {768, 1536, 2048} run on the GPU (device_cases.cu); here a reduced list.
void gradient_widths(const Handle& handle) {
  Ids sizes;
  for (int i = 0; i < 4; ++i) sizes.push_back(i % 2 ? 48 : 16);
  for (std::int64_t width = 64; width <= 2048; width += 64) {
    require_gemm(handle, variable_k(width % 128 ? BF16 : F16, {16, 48}, 64, width, 64));
    require_gemm(handle, contiguous(width % 128 ? BF16 : F16, sizes, sum_of(sizes), width, 64));
  }
  for (std::int64_t width : {768, 1536}) {
    require_gemm(handle, variable_k(BF16, {16, 48}, 64, 192, width));
    require_gemm(handle, contiguous(BF16, sizes, sum_of(sizes), 64, width));
  }
}
GGM_CASE_HOST_AND_GPU("BR-088 widths by 64 up to 2048", gradient_widths)

}  // namespace
}  // namespace ggm_test::cases
