// ggm_route over shapes, localities, id patterns and types; then permute, unpermute and its backward on what it made.
#include "conformance/pairwise.h"
#include "conformance/routing_case.h"
#include "support/compare.h"
#include "support/inputs.h"
#include "support/reference_moe.h"

using namespace ggm_test;

namespace {

using Index = std::int64_t;
std::size_t at(Index i) { return static_cast<std::size_t>(i); }

void require_equal(const Tensor& tensor, const std::vector<Index>& want) {
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (tensor.integer(static_cast<Index>(i)) == want[i]) continue;
    FAIL(tensor.name() << "[" << i << "] = " << tensor.integer(static_cast<Index>(i)) << ", expected " << want[i]);
  }
}

void require_faults(const Tensor& faults, const Faults& want) {
  for (Index i = 0; i < GGM_FAULT_WORDS; ++i) {
    INFO("fault word " << i);
    REQUIRE(faults.integer(i) == want[at(i)]);
  }
}

void route_case(const Handle& handle, const RoutingCase& line, std::int32_t id_type, Index gap, std::int32_t sm_limit) {
  const std::string text = handle.backend().name + " " + line.text() + (id_type == GGM_INDEX_INT64 ? " i64" : " i32") +
                           " gap=" + std::to_string(gap) + " sm=" + std::to_string(sm_limit);
  if (!case_selected(text)) return;
  GGM_CASE(text);
  const RouteInput in = line.input();
  const Routing want = route_reference(in);
  Scene scene(handle);
  ggm_route_problem_t problem = GGM_ROUTE_PROBLEM_INIT;
  problem.tokens = in.tokens;
  problem.top_k = in.top_k;
  problem.experts = in.experts;
  problem.experts_total = in.experts_total;
  problem.first_expert = in.first_expert;
  problem.max_rows = in.max_rows;
  problem.ids_ld = gap ? in.top_k + gap : 0;
  problem.id_type = id_type;
  problem.sm_limit = sm_limit;
  const RoutingTensors routing = routing_tensors(&scene, in, id_type, problem.ids_ld);
  Tensor& offsets = scene.output("group_offsets", kInt32, {1, 1, in.experts + 1}, 1);
  Tensor& assignments = scene.output("row_assignment", kInt32, {1, 1, in.row_bound()}, 2);
  Tensor& rows = scene.output("assignment_row", kInt32, {1, 1, in.tokens * in.top_k}, 3);
  Tensor& faults = scene.faults();
  ggm_route_tensors_t tensors = GGM_ROUTE_TENSORS_INIT;
  tensors.ids = routing.ids_data();
  tensors.expert_map = routing.expert_map_data();
  tensors.num_tokens = routing.num_tokens_data();
  tensors.faults = static_cast<std::uint32_t*>(faults.data());
  tensors.group_offsets = static_cast<std::int32_t*>(offsets.data());
  tensors.row_assignment = static_cast<std::int32_t*>(assignments.data());
  tensors.assignment_row = static_cast<std::int32_t*>(rows.data());
  scene.run_twice(op::route, problem, tensors);
  require_equal(offsets, want.group_offsets);
  require_equal(assignments, want.row_assignment);
  require_equal(rows, want.assignment_row);
  require_faults(faults, want.faults);
}

void route(bool cuda) {
  for (const Backend& backend : backends(cuda)) {
    if (&backend != &backends(cuda).front()) break;  // routing has no kernel families
    const Handle handle(backend);
    for (const std::vector<int>& row : all_pairs({kRoutingShapeCount + 3, kLocalities, kIdPatterns, 2, 3, 3}, 9)) {
      constexpr Index large[3][3] = {{513, 4, 1023}, {2049, 8, 256}, {1000, 1, 4096}};
      const Index* shape = row[0] < kRoutingShapeCount ? kRoutingShapes[row[0]] : large[row[0] - kRoutingShapeCount];
      RoutingCase line{shape[0], shape[1], shape[2], static_cast<Locality>(row[1]), static_cast<Ids>(row[2]), 3u};
      route_case(handle, line, row[3] ? GGM_INDEX_INT64 : GGM_INDEX_INT32, row[4] * 3, row[5]);
    }
  }
}

enum class Kind { permute, unpermute, unpermute_backward };

struct PermuteCase {
  RoutingCase routing;
  Kind kind = Kind::permute;
  std::int32_t token_type = GGM_TYPE_FLOAT32, row_type = 0, weight_type = 0;
  Index features = 1, gap = 0, misalign = 0;
  bool keep = false, add = false;
  int outputs = 3;  // of the backward: bit 0 d_rows, bit 1 d_routing_weights

  std::string text() const {
    static const char* const kinds[] = {"permute", "unpermute", "unpermute_backward"};
    return std::string(kinds[static_cast<int>(kind)]) + " " + routing.text() + " tokens=" + name_of(token_type) +
           " rows=" + name_of(row_type) + " w=" + name_of(weight_type) + " features=" + std::to_string(features) +
           " gap=" + std::to_string(gap) + " misalign=" + std::to_string(misalign) + (keep ? " keep" : "") +
           (add ? " add" : "") + " outputs=" + std::to_string(outputs);
  }
};

// Problem, routing arrays, weights and the two row tensors of a case.
struct PermuteRun {
  const PermuteCase& line;
  Scene scene;
  PermuteInput input;
  Routing routing;
  ggm_permute_problem_t& problem = input.problem;
  Tensor *arrays[3], *weights = nullptr, *tokens = nullptr, *rows = nullptr, *faults = nullptr;
  RoutingTensors extra;

  PermuteRun(const Handle& handle, const PermuteCase& c) : line(c), scene(handle) {
    const RouteInput in = c.routing.input();
    routing = route_reference(in);
    input.routing = check_routing(routing, in.tokens, in.top_k, in.row_bound(), in.has_num_tokens, in.num_tokens);
    input.num_tokens = real_tokens(in);
    problem.tokens = in.tokens;
    problem.top_k = in.top_k;
    problem.experts = in.experts;
    problem.max_rows = in.max_rows;
    problem.features = c.features;
    problem.token_type = c.token_type;
    problem.row_type = c.row_type;
    problem.routing_weight_type = c.weight_type;
    if (c.gap) problem.token_ld = c.features + c.gap;
    if (c.gap) problem.row_ld = c.features + 2 * c.gap;
    if (c.keep) problem.flags |= GGM_FLAG_KEEP_UNUSED_ROWS;
    if (c.add) problem.flags |= GGM_FLAG_ADD_TO_Y;
    extra = routing_tensors(&scene, in, GGM_INDEX_INT32, 0, false);
    const std::vector<Index>* content[] = {&routing.group_offsets, &routing.row_assignment, &routing.assignment_row};
    for (std::size_t i = 0; i < 3; ++i)
      arrays[i] = &scene.input("routing array " + std::to_string(i), kInt32, {1, 1, static_cast<Index>(content[i]->size())}, 1)
                       .assign(*content[i]);
    if (c.weight_type) {
      if (c.gap) problem.routing_weights_ld = in.top_k + c.gap;
      weights =
          &scene.input("routing_weights", c.weight_type, {1, in.tokens, in.top_k, problem.routing_weights_ld}, c.misalign);
      weights->fill(
          [&](Index, Index t, Index j) { return routing.assignment_row[at(t * in.top_k + j)] < 0 ? NAN : power_weight(t, j); });
      input.weights = weights->initial_values();
    }
    faults = &scene.faults();
  }

  std::int32_t row_type() const { return line.row_type ? line.row_type : line.token_type; }
  Tensor& make(const char* name, bool of_tokens, bool output) {
    const Shape shape{1, of_tokens ? line.routing.tokens : static_cast<Index>(routing.row_assignment.size()), line.features,
                      of_tokens ? problem.token_ld : problem.row_ld};
    const std::int32_t type = of_tokens ? line.token_type : row_type();
    Tensor& tensor = output ? scene.output(name, type, shape, line.misalign) : scene.input(name, type, shape, line.misalign);
    if (!output)
      tensor.fill([&](Index, Index r, Index c) {
        const bool used = of_tokens ? r < input.num_tokens : input.routing.row_assignment[at(r)] >= 0;
        return used ? P(r + (of_tokens ? 0 : 7000), c) : NAN;
      });
    else if (line.keep || line.add)
      tensor.fill([&](Index, Index r, Index c) { return P(r, c + 4); });
    (of_tokens ? input.tokens : input.rows) = tensor.initial_values();
    return tensor;
  }
  template <typename T>
  void set_common(T* t) const {
    t->group_offsets = static_cast<const std::int32_t*>(arrays[0]->data());
    t->row_assignment = static_cast<const std::int32_t*>(arrays[1]->data());
    t->assignment_row = static_cast<const std::int32_t*>(arrays[2]->data());
    t->routing_weights = weights ? weights->data() : nullptr;
    t->num_tokens = extra.num_tokens_data();
    t->faults = static_cast<std::uint32_t*>(faults->data());
  }
  void require(const Tensor& tensor, const std::vector<double>& want) const {
    const std::string wrong = difference(tensor, want);
    INFO(wrong);
    REQUIRE(wrong.empty());
  }

  void permute_or_unpermute() {
    const bool permute = line.kind == Kind::permute;
    Tensor& in = make("input", permute, false);
    Tensor& out = make("output", !permute, true);
    ggm_permute_tensors_t t = GGM_PERMUTE_TENSORS_INIT;
    set_common(&t);
    t.input = in.data();
    t.output = out.data();
    scene.run_twice(permute ? op::permute : op::unpermute, problem, t);
    require(out, permute ? permute_reference(input) : unpermute_reference(input));
  }

  void backward() {
    const bool wants_rows = line.outputs & 1, wants_weights = line.outputs & 2;
    ggm_unpermute_backward_tensors_t t = GGM_UNPERMUTE_BACKWARD_TENSORS_INIT;
    set_common(&t);
    t.dy = make("dy", true, false).data();
    std::vector<double> old;
    Tensor *d_rows = nullptr, *d_weights = nullptr;
    if (wants_rows) {
      d_rows = &make("d_rows", false, true);
      old.swap(input.rows);
      t.d_rows = d_rows->data();
    }
    if (wants_weights) {
      t.rows = make("rows", false, false).data();
      d_weights = &scene.output("d_routing_weights", GGM_TYPE_FLOAT32, {1, line.routing.tokens, line.routing.top_k});
      t.d_routing_weights = static_cast<float*>(d_weights->data());
    }
    scene.run_twice(op::unpermute_backward, problem, t);
    const UnpermuteBackward want = unpermute_backward_reference(input, old);
    if (d_rows) require(*d_rows, want.d_rows);
    if (d_weights) require(*d_weights, want.d_weights);
  }
};

void permute_table(bool cuda, Kind kind) {
  const Handle handle(backends(cuda).front());
  const std::int32_t types[][2] = {{GGM_TYPE_FLOAT32, 0},
                                   {GGM_TYPE_BFLOAT16, 0},
                                   {GGM_TYPE_FLOAT16, 0},
                                   {GGM_TYPE_FLOAT64, 0},
                                   {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT32},
                                   {GGM_TYPE_FLOAT32, GGM_TYPE_FLOAT16},
                                   {GGM_TYPE_FLOAT16, GGM_TYPE_BFLOAT16}};
  const std::int32_t weight_types[] = {0, GGM_TYPE_FLOAT32, GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT16};
  constexpr Index features[] = {1, 2, 3, 7, 8, 17, 64, 65, 129, 200};
  constexpr Index gaps[] = {0, 1, 8}, misaligns[] = {0, 1, 2, 3, 5, 8};
  for (const std::vector<int>& row :
       all_pairs({kRoutingShapeCount, kLocalities, kIdPatterns, 7, 4, 10, 3, 6, 2, 2, 3}, static_cast<std::uint32_t>(kind))) {
    PermuteCase c;
    c.routing = {kRoutingShapes[row[0]][0],     kRoutingShapes[row[0]][1], kRoutingShapes[row[0]][2],
                 static_cast<Locality>(row[1]), static_cast<Ids>(row[2]),  7u};
    c.kind = kind;
    c.token_type = types[row[3]][0];
    c.row_type = types[row[3]][1];
    c.weight_type = kind == Kind::permute ? 0 : weight_types[row[4]];
    if (c.token_type == GGM_TYPE_FLOAT64 && c.weight_type) c.weight_type = GGM_TYPE_FLOAT64;
    c.features = features[row[5]];
    c.gap = gaps[row[6]];
    c.misalign = misaligns[row[7]];
    c.keep = row[8];
    c.add = kind == Kind::unpermute && row[9];
    c.outputs = 1 + row[10];
    const std::string text = handle.backend().name + " " + c.text();
    if (!case_selected(text)) continue;
    GGM_CASE(text);
    PermuteRun run(handle, c);
    kind == Kind::unpermute_backward ? run.backward() : run.permute_or_unpermute();
    require_faults(*run.faults, run.input.routing.faults);
  }
}

// Tokens so few and so wide that several blocks share one; the last block's columns end anywhere.
void wide_tokens(bool cuda) {
  const Handle handle(backends(cuda).front());
  constexpr Index shapes[][2] = {{1, 1}, {1, 9}, {2, 2}, {3, 8}, {17, 4}, {90, 3}};  // tokens, top_k
  constexpr Index features[] = {2048, 2049, 4104, 5760, 28672};
  constexpr std::int32_t types[] = {GGM_TYPE_BFLOAT16, GGM_TYPE_FLOAT32, GGM_TYPE_FLOAT64};
  for (const std::vector<int>& row : all_pairs({6, 5, 3, kIdPatterns, 2, 2, 2}, 11)) {
    PermuteCase c;
    c.routing = {shapes[row[0]][0], shapes[row[0]][1], 12, Locality::all_local, static_cast<Ids>(row[3]), 5u};
    c.kind = Kind::unpermute;
    c.token_type = types[row[2]];
    c.weight_type = c.token_type == GGM_TYPE_FLOAT64 ? GGM_TYPE_FLOAT64 : GGM_TYPE_FLOAT32;
    c.features = features[row[1]];
    c.gap = row[4];
    c.keep = row[5];
    c.add = row[6];
    const std::string text = handle.backend().name + " " + c.text();
    if (!case_selected(text)) continue;
    GGM_CASE(text);
    PermuteRun(handle, c).permute_or_unpermute();
  }
}

}  // namespace

TEST_CASE("route: sorted by expert, token, slot for every locality and id pattern", "[host]") { route(false); }
TEST_CASE("route: sorted by expert, token, slot for every locality and id pattern, GPU", "[gpu]") { route(true); }
TEST_CASE("permute: every type, shape and flag", "[host]") { permute_table(false, Kind::permute); }
TEST_CASE("permute: every type, shape and flag, GPU", "[gpu]") { permute_table(true, Kind::permute); }
TEST_CASE("unpermute: every type, shape and flag", "[host]") { permute_table(false, Kind::unpermute); }
TEST_CASE("unpermute: every type, shape and flag, GPU", "[gpu]") { permute_table(true, Kind::unpermute); }
TEST_CASE("unpermute: few tokens of many features", "[host]") { wide_tokens(false); }
TEST_CASE("unpermute: few tokens of many features, GPU", "[gpu]") { wide_tokens(true); }
TEST_CASE("unpermute_backward: every type, shape and flag", "[host]") { permute_table(false, Kind::unpermute_backward); }
TEST_CASE("unpermute_backward: every type, shape and flag, GPU", "[gpu]") { permute_table(true, Kind::unpermute_backward); }
