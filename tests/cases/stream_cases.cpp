// Order of work on streams and races between kernels: BR-046, 048, 052.
#include <algorithm>
#include <array>
#include <chrono>

#include "cases/device_case.h"
#include "cases/gemm_case.h"
#include "cases/moe_case.h"
#include "cases/route_case.h"

namespace ggm_test::cases {
namespace {

// 64 groups whose sizes change from tile to tile, a short inner dimension: many changes of group in each block.
GemmCase many_changes() {
  Ids sizes;
  for (int i = 0; i < 64; ++i) sizes.push_back(std::array<std::int64_t, 4>{128, 256, 1, 384}[static_cast<std::size_t>(i % 4)]);
  return contiguous(BF16, sizes, sum_of(sizes), 512, 64);
}

// The same groups as a list of pointers into the same tensors, so one expectation serves both.
struct PointerList {
  PointerList(const Handle& handle, const GemmCase& gemm, const GemmCall& call)
      : m(handle.backend(), "m", kInt32, {1, 1, gemm.groups}),
        a(handle.backend(), "a", kInt64, {1, 1, gemm.groups}),
        b(handle.backend(), "b", kInt64, {1, 1, gemm.groups}),
        d(handle.backend(), "d", kInt64, {1, 1, gemm.groups}) {
    Ids at_a, at_b, at_d;
    std::int64_t row = 0;
    for (std::size_t e = 0; e < gemm.sizes.size(); ++e) {
      at_a.push_back(address(call.tensors.a, row * gemm.k));
      at_b.push_back(address(call.tensors.b, static_cast<std::int64_t>(e) * gemm.n * gemm.k));
      at_d.push_back(address(call.tensors.d, row * gemm.n));
      row += gemm.sizes[e];
    }
    m.assign(gemm.sizes).upload();
    a.assign(at_a).upload();
    b.assign(at_b).upload();
    d.assign(at_d).upload();
    problem.groups = gemm.groups;
    problem.max_m = *std::max_element(gemm.sizes.begin(), gemm.sizes.end());
    problem.max_n = gemm.n;
    problem.max_k = gemm.k;
    problem.a_order = GGM_ORDER_MK;
    problem.b_order = GGM_ORDER_NK;
    problem.a_type = problem.b_type = gemm.type;
    tensors.m = m.data();
    tensors.a = static_cast<const void* const*>(a.data());
    tensors.b = static_cast<const void* const*>(b.data());
    tensors.d = static_cast<void* const*>(d.data());
  }
  static std::int64_t address(const void* base, std::int64_t element) {
    return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(base)) + 2 * element;
  }

  Tensor m, a, b, d;
  ggm_grouped_gemm_array_problem_t problem = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  ggm_grouped_gemm_array_tensors_t tensors = GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT;
};

// Each run starts from poison and is compared on the device; `busy` keeps the memory system loaded from a second stream.
template <typename Enqueue>
void require_every_run(int runs, bool busy, const Tensor& d, const Tensor& want, const Enqueue& enqueue) {
  const Stream stream, other;
  const Memory from(std::size_t{1} << 28), to(std::size_t{1} << 28);
  const Counter wrong;
  for (int run = 0; run < runs; ++run) {
    if (busy && run % 4 == 0)
      cuda(cudaMemcpyAsync(to.data(), from.data(), from.bytes(), cudaMemcpyDeviceToDevice, other), "cudaMemcpyAsync");
    enqueue_poison(d, stream);
    enqueue(stream);
    enqueue_compare(d, want, wrong, stream);
  }
  REQUIRE(wrong.read() == 0);
}

void two_thousand_runs(const Handle& handle) {
  const GemmCase gemm = many_changes();
  GemmCall call(handle, gemm);
  call.upload();
  const auto want = expected_tensor(handle, BF16, call.d->shape(), expected_gemm(gemm));
  const Enqueued contiguous_call(handle, op::grouped_gemm, call.problem, call.tensors);
  const PointerList list(handle, gemm, call);
  const Enqueued list_call(handle, op::grouped_gemm_array, list.problem, list.tensors);
  for (bool busy : {false, true}) {
    require_every_run(busy ? 500 : 2000, busy, *call.d, *want, contiguous_call);
    require_every_run(busy ? 500 : 2000, busy, *call.d, *want, list_call);
  }
}
GGM_CASE_GPU("BR-046 two thousand runs are exact while groups change all the time", two_thousand_runs)

// Two sets of inputs that take turns in the same buffers.
struct Turn {
  Turn(const Handle& handle, const MoeCase& moe)
      : ids(handle.backend(), "ids", kInt32, {1, moe.tokens, moe.top_k}),
        weights(handle.backend(), "weights", F32, {1, moe.tokens, moe.top_k}),
        x(handle.backend(), "x", moe.type, {1, moe.tokens, moe.in}),
        want(expected_tensor(handle, moe.type_of_y(), {1, moe.tokens, moe.out}, expected_forward(moe))) {
    ids.assign(moe.ids).upload();
    weights.assign(moe.w).upload();
    x.assign(moe.x).upload();
  }
  Tensor ids, weights, x;
  std::unique_ptr<Tensor> want;
};

std::array<MoeCase, 2> two_inputs(std::int32_t combine) {
  std::array<MoeCase, 2> cases = {integer_moe(BF16, 64, 4, 16, 64, 48, [](auto t, auto j) { return (5 * t + 3 * j) % 16; }),
                                  integer_moe(BF16, 64, 4, 16, 64, 48, [](auto t, auto j) { return (t * t + j) % 7; })};
  for (double& v : cases[1].x) v = v == 3 ? -3 : v + 1;
  std::reverse(cases[1].w.begin(), cases[1].w.end());
  for (MoeCase& moe : cases) moe.combine = combine;
  return cases;
}

void late_words(const Tensor& to, const Tensor& from, double wait_ms, cudaStream_t stream) {
  enqueue_late_copy(static_cast<std::uint32_t*>(to.data()), static_cast<const std::uint32_t*>(from.data()),
                    from.size() * bytes_of(from.type()) / 4, wait_ms, stream);
}

// A producer that lets the next kernel start early and writes late, the call, a consumer that takes y and spoils the inputs.
void between_producer_and_consumer(const Handle& handle) {
  for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
    const std::array<MoeCase, 2> cases = two_inputs(combine);
    const Turn turns[] = {Turn(handle, cases[0]), Turn(handle, cases[1])};
    MoeCall call(handle, cases[0]);
    const ggm_moe_forward_tensors_t tensors = call.forward_tensors();
    call.upload();
    const Enqueued enqueue(handle, op::moe_forward, call.problem, tensors);
    Tensor copy(handle.backend(), "copy of y", BF16, call.y->shape());
    const Stream stream;
    const Counter wrong;
    for (int round = 0; round < 500; ++round) {
      const Turn& turn = turns[round % 2];
      late_words(*call.ids, turn.ids, 0, stream);
      late_words(*call.routing_weights, turn.weights, 0, stream);
      late_words(*call.x, turn.x, 0.1, stream);
      enqueue(stream);
      late_words(copy, *call.y, 0, stream);
      for (const Tensor* spoiled : {call.x, call.ids, call.y}) enqueue_poison(*spoiled, stream);
      enqueue_compare(copy, *turn.want, wrong, stream);
    }
    REQUIRE(wrong.read() == 0);
  }
}
GGM_CASE_GPU("BR-048 the call reads after its producer and ends before its consumer", between_producer_and_consumer)

// ggm_route and a grouped product over its offsets, back to back, one workspace, the routing changes every round.
void route_then_product(const Handle& handle) {
  const Backend& backend = handle.backend();
  const std::int64_t tokens = 300, experts = 9;
  std::array<std::unique_ptr<Tensor>, 2> ids, want;
  GemmCase gemm = contiguous(BF16, Ids(9, 0), tokens * 2, 48, 64);
  gemm.sizes.clear();
  gemm.group_form = GGM_GROUPS_OFFSETS;
  for (int turn = 0; turn < 2; ++turn) {
    const RouteInput in =
        route_input(tokens, 2, experts, [turn](auto t, auto j) { return turn ? (t / 40 + j) % 9 : (t + 4 * j) % 9; });
    ids[static_cast<std::size_t>(turn)] = std::make_unique<Tensor>(backend, "ids", kInt32, Shape{1, tokens, 2});
    ids[static_cast<std::size_t>(turn)]->assign(in.ids).upload();
    gemm.offsets = route_reference(in).group_offsets;
    want[static_cast<std::size_t>(turn)] = expected_tensor(handle, BF16, {1, gemm.m, gemm.n}, expected_gemm(gemm));
  }
  GemmCall call(handle, gemm);
  call.upload();
  Tensor ids_in(backend, "ids", kInt32, {1, tokens, 2}), offsets(backend, "offsets", kInt32, {1, 1, experts + 1});
  Tensor rows(backend, "row_assignment", kInt32, {1, 1, tokens * 2}),
      slots(backend, "assignment_row", kInt32, {1, 1, tokens * 2});
  ggm_route_problem_t p = GGM_ROUTE_PROBLEM_INIT;
  p.tokens = tokens;
  p.top_k = 2;
  p.experts = experts;
  p.id_type = GGM_INDEX_INT32;
  ggm_route_tensors_t t = GGM_ROUTE_TENSORS_INIT;
  t.ids = ids_in.data();
  t.group_offsets = static_cast<std::int32_t*>(offsets.data());
  t.row_assignment = static_cast<std::int32_t*>(rows.data());
  t.assignment_row = static_cast<std::int32_t*>(slots.data());
  call.tensors.group_offsets = offsets.data();
  const std::size_t bytes =
      std::max(workspace_bytes(handle, op::route, p), workspace_bytes(handle, op::grouped_gemm, call.problem));
  const auto workspace = std::make_shared<Memory>(std::max<std::size_t>(bytes, 256));
  const Enqueued route_call(handle, op::route, p, t, workspace);
  const Enqueued product(handle, op::grouped_gemm, call.problem, call.tensors, workspace);
  const Stream stream;
  const Counter wrong;
  for (std::size_t round = 0; round < 500; ++round) {
    late_words(ids_in, *ids[round % 2], 0.02, stream);
    enqueue_poison(*call.d, stream);
    enqueue_poison(offsets, stream);
    route_call(stream);
    product(stream);
    enqueue_compare(*call.d, *want[round % 2], wrong, stream);
  }
  REQUIRE(wrong.read() == 0);
}
GGM_CASE_GPU("BR-048 routing and product back to back in one workspace", route_then_product)

// Everything of the call waits for what the stream did before it, and the caller's next copy waits for the call.
void caller_stream(const Handle& handle) {
  for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
    const std::array<MoeCase, 2> cases = two_inputs(combine);
    const Turn turn(handle, cases[1]);
    MoeCall forward(handle, cases[0]), backward(handle, cases[0]);  // start with the inputs of the other case
    const Enqueued y_call(handle, op::moe_forward, forward.problem, forward.forward_tensors());
    const Enqueued d_call(handle, op::moe_backward, backward.problem, backward.backward_tensors());
    forward.upload();
    backward.upload();
    MoeCase expected_case = cases[0];
    expected_case.ids = cases[1].ids;
    expected_case.w = cases[1].w;
    expected_case.x = cases[1].x;
    const MoeGradients want = expected_backward(expected_case);
    const auto want_dx = expected_tensor(handle, BF16, backward.dx->shape(), want.dx);
    const auto want_dw = expected_tensor(handle, BF16, backward.d_weight->shape(), want.d_weight);
    const auto want_w = expected_tensor(handle, F32, backward.d_routing_weights->shape(), want.d_routing_weights);
    const auto want_y = expected_tensor(handle, BF16, forward.y->shape(), expected_forward(expected_case));
    const std::size_t bytes = static_cast<std::size_t>(forward.y->size()) * 2;
    void* pinned = nullptr;
    cuda(cudaMallocHost(&pinned, bytes), "cudaMallocHost");
    const Stream stream;
    const Counter wrong;
    enqueue_spin(50, stream);
    for (const MoeCall* call : {&forward, &backward}) {
      late_words(*call->ids, turn.ids, 0, stream);
      late_words(*call->routing_weights, turn.weights, 0, stream);
      late_words(*call->x, turn.x, 0, stream);
    }
    y_call(stream);
    cuda(cudaMemcpyAsync(pinned, forward.y->data(), bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
    d_call(stream);
    enqueue_compare(*backward.dx, *want_dx, wrong, stream);
    enqueue_compare(*backward.d_weight, *want_dw, wrong, stream);
    enqueue_compare(*backward.d_routing_weights, *want_w, wrong, stream);
    stream.wait();
    Tensor y(handle.backend(), "y", BF16, forward.y->shape());
    cuda(cudaMemcpy(y.data(), pinned, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
    (void)cudaFreeHost(pinned);
    enqueue_compare(y, *want_y, wrong, stream);
    REQUIRE(wrong.read() == 0);
  }
}
GGM_CASE_GPU("BR-052 the call runs on the stream of its caller", caller_stream)

void legacy_stream_busy(const Handle& handle) {
  for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
    const MoeCase moe = two_inputs(combine)[0];
    MoeCall forward(handle, moe), backward(handle, moe);
    const Enqueued y_call(handle, op::moe_forward, forward.problem, forward.forward_tensors());
    const Enqueued d_call(handle, op::moe_backward, backward.problem, backward.backward_tensors());
    forward.upload();
    backward.upload();
    const Stream stream;
    const auto seconds = [&] {
      const auto start = std::chrono::steady_clock::now();
      y_call(stream);
      d_call(stream);
      stream.wait();
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    (void)seconds();
    enqueue_spin(200, nullptr);  // on the legacy default stream
    const double busy = seconds();
    cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    INFO("the call took " << busy << " s while the legacy stream was busy for 0.2 s");
    REQUIRE(busy < 0.1);
  }
}
GGM_CASE_GPU("BR-052 work on the legacy stream does not delay the call", legacy_stream_busy)

}  // namespace
}  // namespace ggm_test::cases
