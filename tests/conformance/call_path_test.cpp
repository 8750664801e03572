// The call path: no allocation, no synchronisation (all of it can be captured, its first use in the process included), any
// number of threads on one handle, and workspace queries that are monotone.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "conformance/graph.h"
#include "conformance/layer.h"
#include "support/busy_stream.h"
#include "support/inputs.h"

// Counting every allocation of the process: the program's malloc family takes the place of the C library's, for libggm.so too.
// Sanitizers bring their own, so the host test is left out there.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)
#define GGM_TEST_COUNTS_MALLOC
static std::atomic<long> g_allocations{0};
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void* malloc(std::size_t size) { return ++g_allocations, __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) { return ++g_allocations, __libc_calloc(count, size); }
void* realloc(void* old, std::size_t size) { return ++g_allocations, __libc_realloc(old, size); }
void* aligned_alloc(std::size_t alignment, std::size_t size) { return ++g_allocations, __libc_memalign(alignment, size); }
void* memalign(std::size_t alignment, std::size_t size) { return ++g_allocations, __libc_memalign(alignment, size); }
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  ++g_allocations;
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : 12;
}
}
#endif

using namespace ggm_test;

namespace {

using Index = std::int64_t;

LayerSpec layer_spec(std::int32_t type, std::int32_t combine) {
  LayerSpec spec;
  spec.type = type;
  spec.combine = combine;
  spec.top_k = 3;
  spec.experts = 6;
  spec.in_features = 70;
  spec.out_features = 140;
  return spec;
}

// With few tokens the 16-bit products of this one take the kernels for few rows: that of the forward, and that of the backward
// when dx alone is wanted.
LayerSpec few_rows_spec(std::int32_t type) {
  LayerSpec spec;
  spec.type = type;
  spec.combine = GGM_COMBINE_TWO_STEP;
  spec.top_k = 2;
  spec.experts = 32;
  spec.in_features = spec.out_features = 64;
  return spec;
}

constexpr std::uint32_t kOnlyDx = GGM_GRADIENT_X;
constexpr std::uint32_t kAllGradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS | GGM_GRADIENT_BIAS;

// Three products by arrays, for the one operation that a layer does not use.
void array_products(Scene* scene) {
  Tensor& a =
      scene->input("a", GGM_TYPE_FLOAT32, {3, 20, 30}).fill([](Index g, Index r, Index c) { return P(g * 100 + r, c); });
  Tensor& b = scene->input("b", GGM_TYPE_FLOAT32, {3, 40, 30}).fill([](Index g, Index r, Index c) { return Q(g, r, c); });
  Tensor& d = scene->output("d", GGM_TYPE_FLOAT32, {3, 20, 40});
  const auto pointers = [&](const char* name, const Tensor& of) {
    Tensor& list = scene->input(name, kInt64, {1, 1, 3});
    return list
        .fill([&](Index, Index, Index g) {
          return static_cast<Index>(reinterpret_cast<std::uintptr_t>(of.data())) + g * of.shape().stride * 4;
        })
        .data();
  };
  ggm_grouped_gemm_array_problem_t p = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  p.groups = 3;
  p.max_m = 20;
  p.max_n = 40;
  p.max_k = 30;
  p.a_type = p.b_type = GGM_TYPE_FLOAT32;
  p.a_order = GGM_ORDER_MK;
  p.b_order = GGM_ORDER_NK;
  ggm_grouped_gemm_array_tensors_t t = GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT;
  t.a = static_cast<const void* const*>(pointers("pa", a));
  t.b = static_cast<const void* const*>(pointers("pb", b));
  t.d = static_cast<void* const*>(pointers("pd", d));
  scene->run(op::grouped_gemm_array, p, t);
  for (Index g = 0; g < 3; ++g) {
    double want = 0;
    for (Index k = 0; k < 30; ++k) want += P(g * 100 + 19, k) * Q(g, 39, k);
    CHECK(d.at(g, 19, 39) == want);
  }
}

// Fused and step by step.
void run_layer(const Handle& handle, const LayerSpec& spec, Index tokens, CallObserver* observer, ggm_stream_t stream) {
  Layer layer(handle, spec, first_tokens(tokens));
  layer.scene().set_observer(observer);
  layer.scene().set_stream(stream);
  layer.backward();
  const std::vector<std::uint64_t> dx = layer.dx().all_bits();
  layer.forward();
  const std::vector<std::uint64_t> y = layer.y().all_bits();
  const Layer::Unfused want = layer.unfused();
  CHECK((y == want.y));
  CHECK((dx == want.dx));
}

// All eight operations with an observer around each call.
void every_operation(const Handle& handle, CallObserver* observer, ggm_stream_t stream) {
  for (const std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT64})
    for (const std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP})
      run_layer(handle, layer_spec(type, combine), 80, observer, stream);
  run_layer(handle, few_rows_spec(GGM_TYPE_BFLOAT16), 4, observer, stream);
  Scene scene(handle);
  scene.set_observer(observer);
  scene.set_stream(stream);
  array_products(&scene);
}

#if defined(GGM_TEST_COUNTS_MALLOC)
struct CountAllocations : CallObserver {
  long before = 0, calls = 0, allocations = 0;
  void before_call() override { before = g_allocations; }
  void after_call() override {
    allocations += g_allocations - before;
    ++calls;
  }
};

TEST_CASE("promise: no allocation on the call path", "[host]") {
  const long start = g_allocations;
  for (const Backend& backend : host_backends()) {
    const Handle handle(backend);
    REQUIRE(g_allocations > start);  // the counting works, and reaches into the library
    CountAllocations observer;
    every_operation(handle, &observer, nullptr);
    CHECK(observer.calls > 40);
    CHECK(observer.allocations == 0);
  }
}
#endif

TEST_CASE("promise: no allocation of device memory on the call path, GPU", "[gpu][serial]") {
  for (const Backend& backend : cuda_backends()) {
    const Handle handle(backend);
    WatchDeviceMemory observer;
    every_operation(handle, &observer, nullptr);
    CHECK(observer.calls > 40);
    CHECK(observer.changed == 0);
  }
}

TEST_CASE("promise: capture of the first use of every operation in this process, GPU", "[gpu]") {
  // No call of the library was made before: the first ones are inside a capture.
  const Handle handle(cuda_backends().front());
  CaptureGraph observer;
  every_operation(handle, &observer, observer.stream());
  CHECK(observer.failures == 0);
}

// The graph of one captured call, replayed with other ids and rows in the same memory, against a plain call. A forward without
// gradients, else the backward with them. Returns how many kernels for few rows it has.
int replay(const LayerSpec& spec, Index tokens, std::uint32_t gradients) {
  const Handle handle(cuda_backends().front());
  CaptureGraph observer;
  observer.keep_graph = true;
  const bool backward = gradients != 0;
  Layer layer(handle, spec, first_tokens(tokens));
  layer.scene().set_observer(&observer);
  layer.scene().set_stream(observer.stream());
  // The workspace must live as long as the graph, so the scene's own, freed after each call, will not do.
  Buffer workspace(handle.backend(), std::size_t{64} << 20);
  layer.scene().set_workspace(&workspace);
  backward ? layer.backward(gradients) : layer.forward();
  REQUIRE(observer.failures == 0);
  for (const Index shift : {1, 400, 9000}) {
    std::vector<Index> other = first_tokens(tokens);
    for (Index& token : other) token = shift == 9000 ? 7 : token * 3 + shift;  // at last everything to the experts of one token
    Layer plain(handle, spec, other);
    backward ? plain.backward(gradients) : plain.forward();
    layer.take_inputs(plain);
    REQUIRE(observer.replay());
    for (Tensor* t : {&layer.y(), backward ? &layer.dx() : nullptr, backward ? &layer.d_weight() : nullptr,
                      backward ? &layer.d_routing_weights() : nullptr})
      if (t) t->download();
    if (!backward) CHECK((layer.y().all_bits() == plain.y().all_bits()));
    if (backward) {
      CHECK((layer.dx().all_bits() == plain.dx().all_bits()));
      CHECK((layer.d_weight().all_bits() == plain.d_weight().all_bits()));
      CHECK((layer.d_routing_weights().all_bits() == plain.d_routing_weights().all_bits()));
    }
  }
  return observer.kernels_named("gemm_tableless");
}

void replay_all(bool backward) {
  for (const std::int32_t type : {GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16})
    for (const std::int32_t combine : {GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP})
      replay(layer_spec(type, combine), 90, backward ? kAllGradients : 0);
  for (const std::int32_t type : {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16})
    for (const Index tokens : {4, 40}) {  // 8 ids, and more than 64
      INFO(tokens << " tokens of few rows, type " << type);
      CHECK(replay(few_rows_spec(type), tokens, backward ? kOnlyDx : 0) == 1);
    }
}

TEST_CASE("promise: a captured moe_forward replayed with other routing, GPU", "[gpu]") { replay_all(false); }
TEST_CASE("promise: a captured moe_backward replayed with other routing, GPU", "[gpu]") { replay_all(true); }

// ---- threads ----

void threads_on_one_handle(bool cuda, int runs, bool few_rows) {
  const Handle handle(backends(cuda).front());
  constexpr std::size_t kThreads = 8;
  struct Work {
    std::unique_ptr<Layer> layer;
    std::vector<std::uint64_t> y, dx;
    std::size_t forward_bytes = 0, backward_bytes = 0;
    std::unique_ptr<Buffer> workspace;
    std::unique_ptr<BusyStream> stream;
    int errors = 0;
  };
  std::vector<Work> work(kThreads);
  for (std::size_t i = 0; i < kThreads; ++i) {
    Work& w = work[i];
    const std::int32_t type = i % 3 == 0 ? GGM_TYPE_FLOAT32 : i % 3 == 1 ? GGM_TYPE_BFLOAT16 : GGM_TYPE_FLOAT16;
    const LayerSpec spec = few_rows ? few_rows_spec(i % 2 == 0 ? GGM_TYPE_BFLOAT16 : GGM_TYPE_FLOAT16)
                                    : layer_spec(type, static_cast<std::int32_t>(i % 3));
    w.layer = std::make_unique<Layer>(handle, spec, first_tokens(static_cast<Index>(few_rows ? 4 + i * 5 : 40 + i * 9)));
    w.layer->backward(few_rows ? kOnlyDx : kAllGradients);
    w.dx = w.layer->dx().all_bits();
    w.layer->forward();
    w.y = w.layer->y().all_bits();
    GGM_REQUIRE_OK(ggm_moe_forward_workspace_size(handle, &w.layer->problem(), &w.forward_bytes));
    GGM_REQUIRE_OK(ggm_moe_backward_workspace_size(handle, &w.layer->problem(), &w.backward_bytes));
    w.workspace = std::make_unique<Buffer>(handle.backend(), std::max(w.forward_bytes, w.backward_bytes));
    w.stream = std::make_unique<BusyStream>(handle.backend());
    w.layer->y().upload();  // poison again
    w.layer->dx().upload();
  }
  std::vector<std::thread> threads;
  for (Work& w : work)
    threads.emplace_back([&handle, &w, runs] {
      for (int run = 0; run < runs; ++run) {
        w.errors += ggm_moe_forward(handle, &w.layer->problem(), &w.layer->forward_tensors(), w.workspace->data(),
                                    w.workspace->bytes(), w.stream->stream()) != GGM_STATUS_SUCCESS;
        w.errors += ggm_moe_backward(handle, &w.layer->problem(), &w.layer->backward_tensors(), w.workspace->data(),
                                     w.workspace->bytes(), w.stream->stream()) != GGM_STATUS_SUCCESS;
        // A failing call in between: its text belongs to this thread alone and harms no one.
        w.errors += ggm_moe_forward(handle, nullptr, nullptr, nullptr, 0, nullptr) != GGM_STATUS_NULL_POINTER;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (Work& w : work) {
    CHECK(w.errors == 0);
    w.layer->y().download();
    w.layer->dx().download();
    CHECK((w.layer->y().all_bits() == w.y));
    CHECK((w.layer->dx().all_bits() == w.dx));
  }
}

TEST_CASE("promise: eight threads on one handle", "[host]") {
  for (const bool few_rows : {false, true}) threads_on_one_handle(false, 20, few_rows);
}
TEST_CASE("promise: eight threads on one handle, GPU", "[gpu]") {
  for (const bool few_rows : {false, true}) threads_on_one_handle(true, 50, few_rows);
}

// ---- workspace ----

template <typename P, typename T, typename Set>
void monotone(const Handle& handle, const Operation<P, T>& operation, const P& base, Set set) {
  std::size_t previous = 0;
  for (const Index value : {0,    1,    2,    3,    7,     8,     15,    16,    31,    32,     33,      63,      64,
                            65,   100,  127,  128,  129,   255,   256,   257,   500,   1000,   1024,    1025,    2048,
                            4095, 4096, 4097, 8192, 10000, 32768, 65535, 65536, 65537, 100000, 1 << 20, 3000000, 100000000}) {
    P problem = base;
    set(&problem, value);
    std::size_t bytes = 1;
    INFO(operation.name << " at " << value);
    GGM_REQUIRE_OK(operation.workspace_size(handle, &problem, &bytes));
    CHECK(bytes >= previous);
    CHECK(bytes % GGM_WORKSPACE_ALIGNMENT == 0);
    previous = bytes;
  }
}

void workspace_is_monotone(bool cuda) {
  for (const Backend& backend : backends(cuda)) {
    const Handle handle(backend);
    ggm_route_problem_t route = GGM_ROUTE_PROBLEM_INIT;
    route.top_k = 8;
    route.experts = 128;
    route.id_type = GGM_INDEX_INT32;
    monotone(handle, op::route, route, [](auto* p, Index v) { p->tokens = v; });
    route.tokens = 1000000;
    monotone(handle, op::route, route, [](auto* p, Index v) { p->max_rows = v + 1; });
    for (const std::int32_t type : kFloatTypes) {
      ggm_permute_problem_t permute = GGM_PERMUTE_PROBLEM_INIT;
      permute.top_k = 8;
      permute.experts = 128;
      permute.features = 300;
      permute.token_type = type;
      monotone(handle, op::permute, permute, [](auto* p, Index v) { p->tokens = v; });
      monotone(handle, op::unpermute, permute, [](auto* p, Index v) { p->tokens = v; });
      monotone(handle, op::unpermute_backward, permute, [](auto* p, Index v) { p->tokens = v; });
      for (std::int32_t form = GGM_GROUPS_SIZES; form <= GGM_GROUPS_ROW_GROUP; ++form) {
        ggm_grouped_gemm_problem_t gemm = GGM_GROUPED_GEMM_PROBLEM_INIT;
        gemm.groups = 128;
        gemm.n = 300;
        gemm.k = 200;
        gemm.a_type = gemm.b_type = type;
        gemm.b_order = GGM_ORDER_NK;
        gemm.group_form = form;
        monotone(handle, op::grouped_gemm, gemm, [](auto* p, Index v) { p->m = v; });
        gemm.layout = GGM_LAYOUT_VARIABLE_K;
        gemm.m = 100;
        gemm.b_order = 0;
        monotone(handle, op::grouped_gemm, gemm, [](auto* p, Index v) { p->k = v; });
      }
      for (const std::int32_t combine : {GGM_COMBINE_AUTO, GGM_COMBINE_ORDERED, GGM_COMBINE_TWO_STEP})
        for (const bool wide : {false, true}) {
          ggm_moe_problem_t moe = GGM_MOE_PROBLEM_INIT;
          moe.top_k = 8;
          moe.experts = 128;
          moe.in_features = 300;
          moe.out_features = 200;
          moe.id_type = GGM_INDEX_INT32;
          moe.x_type = moe.weight_type = moe.dy_type = type;
          moe.y_type = wide && is_16bit(type) ? GGM_TYPE_FLOAT32 : type;
          moe.weight_order = GGM_ORDER_NK;
          moe.combine = combine;
          moe.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS;
          monotone(handle, op::moe_forward, moe, [](auto* p, Index v) { p->tokens = v; });
          monotone(handle, op::moe_backward, moe, [](auto* p, Index v) { p->tokens = v; });
          moe.tokens = 100000000;
          monotone(handle, op::moe_forward, moe, [](auto* p, Index v) { p->max_rows = v + 1; });
          monotone(handle, op::moe_backward, moe, [](auto* p, Index v) { p->max_rows = v + 1; });
        }
    }
  }
}

TEST_CASE("promise: workspace is monotone in tokens, rows and max_rows", "[host]") { workspace_is_monotone(false); }
TEST_CASE("promise: workspace is monotone in tokens, rows and max_rows, GPU", "[gpu]") { workspace_is_monotone(true); }

}  // namespace
