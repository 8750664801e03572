// Promises about calls made again: the same bits from each separate operation, and one workspace for all of them in turn.
#include <algorithm>
#include <functional>
#include <utility>

#include "conformance/layer.h"
#include "conformance/one_of_each.h"
#include "support/busy_stream.h"

using namespace ggm_test;

namespace {

constexpr std::int32_t kTypes[] = {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16};

void determinism(bool cuda, const EachSize& size, int runs) {
  for (const Backend& backend : backends(cuda)) {
    // Another family of one backend has the same kernels or the same bits; a tenth of the runs is enough there.
    const int times = &backend == &backends(cuda).front() ? runs : std::max(1, runs / 10);
    for (const std::int32_t type : kTypes) {
      const std::string text = backend.name + " " + name_of(type);
      if (!case_selected(text)) continue;
      GGM_CASE(text);
      const Handle handle(backend);
      const OneOfEach each(handle, type, size);
      for (const ReadyCall& call : each.calls()) {
        INFO(call.name);
        CHECK(differences_of_runs(backend, call, times) == 0);
      }
    }
  }
}

// Makes every call on one stream without waiting in between, all in one workspace, and compares their outputs afterwards.
void in_turn(const Backend& backend, const std::vector<const ReadyCall*>& calls, Buffer* workspace) {
  std::vector<std::unique_ptr<Repeated>> outputs;
  for (const ReadyCall* call : calls) {
    outputs.push_back(std::make_unique<Repeated>(backend, call->outputs));
    outputs.back()->poison();
  }
  synchronize(backend);
  BusyStream stream(backend);
  stream.keep_busy();  // so that the calls line up behind it
  for (const ReadyCall* call : calls) {
    INFO(call->name);
    GGM_REQUIRE_OK(call->make(workspace->data(), workspace->bytes(), stream.stream()));
  }
  synchronize(backend);
  CHECK(workspace->damage().empty());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    outputs[i]->compare();
    INFO(calls[i]->name << ", call " << i << " of " << calls.size());
    CHECK(outputs[i]->differences() == 0);
  }
}

void one_workspace(bool cuda, const EachSize& size) {
  for (const Backend& backend : backends(cuda)) {
    INFO(backend.name);
    const Handle handle(backend);
    const OneOfEach wide(handle, GGM_TYPE_FLOAT32, size), narrow(handle, GGM_TYPE_BFLOAT16, EachSize{});
    std::vector<ReadyCall> fused;
    std::vector<std::unique_ptr<Layer>> layers;
    for (const std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP}) {
      LayerSpec spec;
      spec.type = combine == GGM_COMBINE_ORDERED ? GGM_TYPE_BFLOAT16 : GGM_TYPE_FLOAT32;
      spec.combine = combine;
      spec.top_k = 3;  // with two the ordered combine stores all rows in the bytes of its sum
      spec.experts = size.experts;
      spec.in_features = size.features;
      spec.out_features = size.columns;
      layers.push_back(std::make_unique<Layer>(handle, spec, first_tokens(size.tokens)));
      layers.back()->backward();
      fused.push_back(layers.back()->backward_call());
      layers.back()->forward();
      fused.push_back(layers.back()->forward_call());
      make_once(backend, fused[fused.size() - 2]);
    }
    std::vector<const ReadyCall*> calls;
    std::size_t bytes = 0;
    for (const auto& list : {std::cref(wide.calls()), std::cref(std::as_const(fused)), std::cref(narrow.calls())})
      for (const ReadyCall& call : list.get()) {
        calls.push_back(&call);
        bytes = std::max(bytes, call.workspace_bytes);
      }
    Buffer workspace(backend, bytes);
    in_turn(backend, calls, &workspace);
    std::reverse(calls.begin(), calls.end());
    in_turn(backend, calls, &workspace);
    for (std::size_t i = 0; i < calls.size() / 2; i += 2) std::swap(calls[i], calls[calls.size() - 1 - i]);
    in_turn(backend, calls, &workspace);
  }
}

// A batch large enough to keep every multiprocessor of a GPU busy.
EachSize gpu_size() { return {2048, 8, 40, 640, 512, 100}; }

}  // namespace

TEST_CASE("promise: determinism of each separate operation, 20 runs", "[host]") { determinism(false, EachSize{}, 20); }
TEST_CASE("promise: determinism of each separate operation, 1000 runs beside a busy stream, GPU", "[gpu]") {
  determinism(true, gpu_size(), 1000);
}
TEST_CASE("promise: one workspace serves every operation in turn on one stream", "[host]") { one_workspace(false, EachSize{}); }
TEST_CASE("promise: one workspace serves every operation in turn on one stream, GPU", "[gpu]") {
  one_workspace(true, gpu_size());
}
