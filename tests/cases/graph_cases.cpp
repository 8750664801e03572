// CUDA graphs: BR-040, 042, 051.
#include <algorithm>
#include <array>

#include "cases/array_case.h"
#include "cases/child_process.h"
#include "cases/device_case.h"
#include "cases/gemm_case.h"
#include "cases/moe_case.h"
#include "cases/route_case.h"

namespace ggm_test::cases {
namespace {

// The call is captured on a stream of its own and the graph is launched once.
CallOptions captured(cudaStreamCaptureMode mode) {
  CallOptions options;
  options.around = [mode](const CallOptions::Call& call) {
    const Stream stream;
    ggm_status_t status = GGM_STATUS_SUCCESS;
    const Graph graph(mode, stream, [&] { status = call(stream); });
    if (status == GGM_STATUS_SUCCESS) graph.launch(stream);
    stream.wait();
    return status;
  };
  return options;
}

void permutations(const Handle& handle, std::int32_t type, std::int64_t tokens, const CallOptions& options) {
  PermuteInput in;
  ggm_permute_problem_t& p = in.problem;
  p.tokens = tokens;
  p.top_k = 2;
  p.experts = 5;
  p.features = 48;
  p.token_type = type;
  in.routing = route_reference(route_input(tokens, 2, 5, [](auto t, auto j) { return (3 * t + j) % 5; }));
  in.num_tokens = tokens;
  const std::int64_t rows = tokens * 2;
  const std::int32_t weight_type = type == F64 ? F64 : F32;  // float64 tensors take float64 weights
  Scene scene(handle);
  Tensor& offsets = scene.input("group_offsets", kInt32, {1, 1, 6}).assign(in.routing.group_offsets);
  Tensor& assignment = scene.input("row_assignment", kInt32, {1, 1, rows}).assign(in.routing.row_assignment);
  Tensor& slots = scene.input("assignment_row", kInt32, {1, 1, rows}).assign(in.routing.assignment_row);
  Tensor& weights =
      scene.input("routing_weights", weight_type, {1, tokens, 2}).fill([](auto, auto t, auto j) { return power_weight(t, j); });
  Tensor& x = scene.input("tokens", type, {1, tokens, 48}).fill([](auto, auto t, auto c) { return P(t, c); });
  Tensor& sorted = scene.input("rows", type, {1, rows, 48}).fill([](auto, auto r, auto c) { return P2(r, c); });
  Tensor& out_rows = scene.output("rows out", type, {1, rows, 48});
  Tensor& out_tokens = scene.output("tokens out", type, {1, tokens, 48});
  Tensor& dw = scene.output("d_routing_weights", F32, {1, tokens, 2});
  in.tokens = x.initial_values();
  in.rows = sorted.initial_values();

  ggm_permute_tensors_t t = GGM_PERMUTE_TENSORS_INIT;
  t.group_offsets = static_cast<const std::int32_t*>(offsets.data());
  t.row_assignment = static_cast<const std::int32_t*>(assignment.data());
  t.assignment_row = static_cast<const std::int32_t*>(slots.data());
  t.input = x.data();
  t.output = out_rows.data();
  scene.run_twice(as_called(op::permute, options), p, t);
  require_same(out_rows.values(), permute_reference(in), "permuted rows", 48);

  p.routing_weight_type = weight_type;
  in.weights = weights.initial_values();
  t.routing_weights = weights.data();
  t.input = sorted.data();
  t.output = out_tokens.data();
  scene.run_twice(as_called(op::unpermute, options), p, t);
  require_same(out_tokens.values(), unpermute_reference(in), "unpermuted tokens", 48);

  ggm_unpermute_backward_tensors_t b = GGM_UNPERMUTE_BACKWARD_TENSORS_INIT;
  b.group_offsets = t.group_offsets;
  b.row_assignment = t.row_assignment;
  b.assignment_row = t.assignment_row;
  b.routing_weights = weights.data();
  b.rows = sorted.data();
  b.dy = x.data();
  b.d_rows = out_rows.data();
  b.d_routing_weights = static_cast<float*>(dw.data());
  scene.run_twice(as_called(op::unpermute_backward, options), p, b);
  const UnpermuteBackward want = unpermute_backward_reference(in, Values(static_cast<std::size_t>(rows * 48), 0));
  require_same(out_rows.values(), want.d_rows, "d_rows", 48);
  require_same(dw.values(), want.d_weights, "d_routing_weights", 2);
}

void every_entry_point(const Handle& handle, cudaStreamCaptureMode mode) {
  const CallOptions options = captured(mode);
  const auto ids = [](auto t, auto j) { return (3 * t + j) % 5; };
  for (std::int64_t tokens : {3, 3000}) {
    for (std::int32_t type : {F32, BF16, F16, F64}) {
      INFO(name_of(type) << ", " << tokens << " tokens");
      const MoeCase moe = [&] {
        MoeCase made = integer_moe(type, tokens, 2, 5, 64, 48, ids);
        made.routing_weight_type = type == F64 ? F64 : F32;
        return made;
      }();
      for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
        MoeCase combined = moe;
        combined.combine = combine;
        require_forward(handle, combined, options);
        require_backward(handle, combined, options);
      }
      const Ids sizes = {tokens / 3, 0, tokens - tokens / 3};
      require_gemm(handle, contiguous(type, sizes, tokens, 48, 64), options);
      require_gemm(handle, masked(type, {2, 0, 3}, 3, 48, 64), options);
      require_gemm(handle, variable_k(type, sizes, tokens, 48, 64), options);
      permutations(handle, type, tokens, options);
      ArrayCase array;
      array.type = type;
      for (std::int64_t i = 0; i < 4; ++i) array.groups.push_back(integer_group(i, tokens % 97 + i, 40 + i, 33));
      require_array(handle, array, options);
    }
    require_route(handle, route_input(tokens, 2, 5, ids), GGM_INDEX_INT32, options);
    require_route(handle, route_input(tokens, 2, 5, ids), GGM_INDEX_INT64, options);
  }
}

void first_use_thread_local(const Handle& handle) { every_entry_point(handle, cudaStreamCaptureModeThreadLocal); }
GGM_GPU_CASE_IN_CHILD(110, "BR-040 the first use of each call is captured in thread-local mode", first_use_thread_local)

void first_use_global(const Handle& handle) { every_entry_point(handle, cudaStreamCaptureModeGlobal); }
GGM_GPU_CASE_IN_CHILD(110, "BR-040 the first use of each call is captured in global mode", first_use_global)

MoeCase replayed_case(std::int32_t combine) {
  MoeCase moe = integer_moe(BF16, 64, 8, 32, 64, 48, [](auto t, auto j) { return (5 * t + 3 * j) % 32; });
  moe.combine = combine;
  return moe;
}

// One MoE forward with everything that its replays need.
struct Replayed {
  Replayed(const Handle& handle, const MoeCase& moe, std::shared_ptr<Memory> workspace = nullptr)
      : call(handle, moe), tensors(call.forward_tensors()), enqueue(handle, op::moe_forward, call.problem, tensors, workspace) {
    call.upload();
    MoeCase negative = moe;
    for (double& v : negative.x) v = -v;
    const Shape shape = {1, moe.tokens, moe.out};
    want[0] = expected_tensor(handle, moe.type_of_y(), shape, expected_forward(moe));
    want[1] = expected_tensor(handle, moe.type_of_y(), shape, expected_forward(negative));
  }
  // The sign that x has after `flips` negations.
  void check(int flips, const Counter& wrong, cudaStream_t stream) const {
    enqueue_compare(*call.y, *want[static_cast<std::size_t>(flips % 2)], wrong, stream);
  }
  void negate(cudaStream_t stream) const { enqueue_negate(call.x->data(), call.x->type(), call.x->size(), stream); }

  MoeCall call;
  ggm_moe_forward_tensors_t tensors;
  Enqueued<ggm_moe_problem_t, ggm_moe_forward_tensors_t> enqueue;
  std::array<std::unique_ptr<Tensor>, 2> want;
};

void thousand_replays(const Handle& handle) {
  for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
    const MoeCase moe = replayed_case(combine);
    const Replayed replayed(handle, moe);
    const Stream stream;
    const Graph graph(cudaStreamCaptureModeThreadLocal, stream, [&] { replayed.enqueue(stream); });
    const Counter wrong;
    for (int replay = 1; replay <= 1000; ++replay) {
      replayed.negate(stream);
      enqueue_poison(*replayed.call.y, stream);
      graph.launch(stream);
      replayed.check(replay, wrong, stream);
    }
    REQUIRE(wrong.read() == 0);
  }
}
GGM_CASE_GPU("BR-042 y flips its sign with x in each of 1000 replays", thousand_replays)

// Two graphs in turn on one stream, with workspaces of their own and with one that they share; then both calls in one graph.
void two_graphs(const Handle& handle) {
  for (std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP})
    for (bool shared : {false, true}) {
      const MoeCase moe = replayed_case(combine);
      const std::size_t bytes = workspace_bytes(handle, op::moe_forward, moe.problem());
      const auto workspace = shared && bytes ? std::make_shared<Memory>(bytes) : nullptr;
      const Replayed first(handle, moe, workspace), second(handle, moe, workspace);
      const Stream stream;
      const Graph one(cudaStreamCaptureModeThreadLocal, stream, [&] { first.enqueue(stream); });
      const Graph two(cudaStreamCaptureModeThreadLocal, stream, [&] { second.enqueue(stream); });
      const Graph both(cudaStreamCaptureModeThreadLocal, stream, [&] {
        first.enqueue(stream);
        second.enqueue(stream);
      });
      const Counter wrong;
      for (int replay = 1; replay <= 200; ++replay) {
        first.negate(stream);
        enqueue_poison(*first.call.y, stream);
        enqueue_poison(*second.call.y, stream);
        if (replay % 2) {
          one.launch(stream);
          two.launch(stream);
        } else {
          both.launch(stream);
        }
        first.check(replay, wrong, stream);
        second.check(0, wrong, stream);
      }
      REQUIRE(wrong.read() == 0);
    }
}
GGM_CASE_GPU("BR-042 two graphs in turn with own and shared workspaces", two_graphs)

// Two gradients of different shapes share a workspace; a third call finds its workspace poisoned by a captured memset.
void gradients_in_one_graph(const Handle& handle) {
  for (std::int32_t type : kCaseTypes)
    for (int poison : {0xFF, 0x01}) {
      const GemmCase cases[] = {variable_k(type, {40, 0, 60}, 100, 48, 72), variable_k(type, {5, 130, 0, 1}, 136, 96, 40),
                                variable_k(type, {64, 64}, 128, 64, 64)};
      const MoeCase moe = integer_moe(type, 64, 2, 5, 40, 24, [](auto t, auto j) { return (t + j) % 5; });
      std::vector<std::unique_ptr<GemmCall>> calls;
      std::vector<std::unique_ptr<Tensor>> want;
      MoeCall last(handle, moe);
      const ggm_moe_forward_tensors_t last_tensors = last.forward_tensors();
      std::size_t bytes = workspace_bytes(handle, op::moe_forward, last.problem);
      for (const GemmCase& gemm : cases) {
        calls.push_back(std::make_unique<GemmCall>(handle, gemm));
        bytes = std::max(bytes, workspace_bytes(handle, op::grouped_gemm, calls.back()->problem));
      }
      const auto workspace = std::make_shared<Memory>(std::max<std::size_t>(bytes, 256));
      std::vector<Enqueued<ggm_grouped_gemm_problem_t, ggm_grouped_gemm_tensors_t>> enqueued;
      for (std::size_t i = 0; i < calls.size(); ++i) {
        calls[i]->upload();
        enqueued.emplace_back(handle, op::grouped_gemm, calls[i]->problem, calls[i]->tensors, workspace);
        want.push_back(expected_tensor(handle, type, calls[i]->d->shape(), expected_gemm(cases[i])));
      }
      last.upload();
      const Enqueued last_enqueued(handle, op::moe_forward, last.problem, last_tensors, workspace);
      const auto want_y = expected_tensor(handle, type, last.y->shape(), expected_forward(moe));
      const Stream stream;
      const auto clobber = [&] {
        cuda(cudaMemsetAsync(workspace->data(), poison, workspace->bytes(), stream), "cudaMemsetAsync");
      };
      const auto all = [&] {
        enqueued[0](stream);
        enqueued[1](stream);
        clobber();
        enqueued[2](stream);
        clobber();
        last_enqueued(stream);
      };
      const Graph graph(cudaStreamCaptureModeThreadLocal, stream, all);
      const Counter wrong;
      for (int replay = 0; replay < 102; ++replay) {
        for (const auto& call : calls) enqueue_poison(*call->d, stream);
        enqueue_poison(*last.y, stream);
        replay < 100 ? graph.launch(stream) : all();  // the last two outside of a graph
        for (std::size_t i = 0; i < calls.size(); ++i) enqueue_compare(*calls[i]->d, *want[i], wrong, stream);
        enqueue_compare(*last.y, *want_y, wrong, stream);
      }
      REQUIRE(wrong.read() == 0);
    }
}
GGM_GPU_CASE_IN_CHILD(60, "BR-051 a hundred replays with a shared and a poisoned workspace", gradients_in_one_graph)

}  // namespace
}  // namespace ggm_test::cases
