// The valid calls that the rows of the misuse table break, and how they are made.
#include <cstring>

#include "misuse.h"

namespace misuse {
namespace {

constexpr std::int64_t kTokens = 4, kTopK = 2, kExperts = 3, kFeatures = 8, kRows = kTokens * kTopK;
constexpr std::size_t kFloat = sizeof(float), kInt = sizeof(std::int32_t);
// Room of every tensor: above any of the shapes here, so that an unaligned or shifted pointer stays inside.
constexpr std::size_t kRoom = 2048;

constexpr bool in = false, out = true;

#define POINTER(type, field, alignment, output, need) \
  Pointer { #field, offsetof(type, field), kRoom, alignment, output, Need::need }

void fill_route(Call& c) {
  c.route.tokens = kTokens;
  c.route.top_k = kTopK;
  c.route.experts = kExperts;
  c.route.id_type = GGM_INDEX_INT32;
}

void fill_permute(Call& c) {
  c.permute.tokens = kTokens;
  c.permute.top_k = kTopK;
  c.permute.experts = kExperts;
  c.permute.features = kFeatures;
  c.permute.token_type = GGM_TYPE_FLOAT32;
}
void fill_unpermute(Call& c) {
  fill_permute(c);
  c.permute.routing_weight_type = GGM_TYPE_FLOAT32;
}

void fill_gemm(Call& c) {
  c.gemm.groups = kExperts;
  c.gemm.m = kRows;
  c.gemm.n = c.gemm.k = kFeatures;
  c.gemm.b_order = GGM_ORDER_NK;
  c.gemm.a_type = c.gemm.b_type = c.gemm.c_type = GGM_TYPE_FLOAT32;
  c.gemm.beta = 1.0;
}
template <int form>
void fill_gemm_form(Call& c) {
  fill_gemm(c);
  c.gemm.group_form = form;
  c.gemm.c_type = GGM_TYPE_DEFAULT;
  c.gemm.beta = 0.0;
}
void fill_gemm_masked(Call& c) {
  fill_gemm(c);
  c.gemm.layout = GGM_LAYOUT_MASKED;
}
void fill_gemm_variable(Call& c) {
  fill_gemm(c);
  c.gemm.layout = GGM_LAYOUT_VARIABLE_K;
  c.gemm.b_order = 0;
}

void fill_array(Call& c) {
  c.array.groups = 2;
  c.array.max_m = c.array.max_n = c.array.max_k = kFeatures;
  c.array.a_order = GGM_ORDER_MK;
  c.array.b_order = GGM_ORDER_NK;
  c.array.a_type = c.array.b_type = c.array.c_type = GGM_TYPE_FLOAT32;
  c.array.beta = 1.0;
}

void fill_moe(Call& c) {
  c.moe.tokens = kTokens;
  c.moe.top_k = kTopK;
  c.moe.experts = kExperts;
  c.moe.in_features = c.moe.out_features = kFeatures;
  c.moe.id_type = GGM_INDEX_INT32;
  c.moe.routing_weight_type = c.moe.x_type = c.moe.weight_type = c.moe.bias_type = GGM_TYPE_FLOAT32;
  c.moe.weight_order = GGM_ORDER_NK;
  c.moe.gradients = GGM_GRADIENT_X | GGM_GRADIENT_WEIGHT | GGM_GRADIENT_ROUTING_WEIGHTS | GGM_GRADIENT_BIAS;
}
void fill_moe_given(Call& c) {
  fill_moe(c);
  c.moe.id_type = GGM_INDEX_DEFAULT;
}

std::vector<Pointer> route_pointers() {
  using T = ggm_route_tensors_t;
  return {POINTER(T, ids, kInt, in, required),
          POINTER(T, expert_map, kInt, in, optional),
          POINTER(T, num_tokens, kInt, in, optional),
          POINTER(T, faults, kInt, out, optional),
          POINTER(T, group_offsets, kInt, out, required),
          POINTER(T, row_assignment, kInt, out, required),
          POINTER(T, assignment_row, kInt, out, required)};
}

std::vector<Pointer> permute_pointers(bool weights) {
  using T = ggm_permute_tensors_t;
  std::vector<Pointer> p{POINTER(T, group_offsets, kInt, in, required),  POINTER(T, row_assignment, kInt, in, required),
                         POINTER(T, assignment_row, kInt, in, required), POINTER(T, input, kFloat, in, required),
                         POINTER(T, output, kFloat, out, required),      POINTER(T, num_tokens, kInt, in, optional),
                         POINTER(T, faults, kInt, out, optional)};
  if (weights) p.push_back(POINTER(T, routing_weights, kFloat, in, by_type));
  return p;
}

std::vector<Pointer> unpermute_backward_pointers() {
  using T = ggm_unpermute_backward_tensors_t;
  return {POINTER(T, group_offsets, kInt, in, required),  POINTER(T, row_assignment, kInt, in, required),
          POINTER(T, assignment_row, kInt, in, required), POINTER(T, routing_weights, kFloat, in, by_type),
          POINTER(T, rows, kFloat, in, required),         POINTER(T, dy, kFloat, in, required),
          POINTER(T, d_rows, kFloat, out, optional),      POINTER(T, d_routing_weights, kFloat, out, optional),
          POINTER(T, num_tokens, kInt, in, optional),     POINTER(T, faults, kInt, out, optional)};
}

std::vector<Pointer> gemm_pointers(bool sizes, bool offsets, bool row_group, bool c) {
  using T = ggm_grouped_gemm_tensors_t;
  std::vector<Pointer> p{POINTER(T, a, kFloat, in, required), POINTER(T, b, kFloat, in, required),
                         POINTER(T, d, kFloat, out, required), POINTER(T, faults, kInt, out, optional)};
  if (sizes) p.push_back(POINTER(T, group_sizes, kInt, in, required));
  if (offsets) p.push_back(POINTER(T, group_offsets, kInt, in, required));
  if (row_group) p.push_back(POINTER(T, row_group, kInt, in, required));
  if (c) p.push_back(POINTER(T, c, kFloat, in, by_type));
  return p;
}

std::vector<Pointer> array_pointers() {
  using T = ggm_grouped_gemm_array_tensors_t;
  constexpr std::size_t address = sizeof(void*);
  return {POINTER(T, m, kInt, in, optional),   POINTER(T, n, kInt, in, optional),    POINTER(T, k, kInt, in, optional),
          POINTER(T, lda, kInt, in, optional), POINTER(T, ldb, kInt, in, optional),  POINTER(T, ldc, kInt, in, optional),
          POINTER(T, ldd, kInt, in, optional), POINTER(T, a, address, in, required), POINTER(T, b, address, in, required),
          POINTER(T, c, address, in, by_type), POINTER(T, d, address, in, required), POINTER(T, faults, kInt, out, optional)};
}

template <class T>
std::vector<Pointer> moe_inputs(bool given, bool bias_by_type) {
  std::vector<Pointer> p;
  if (given) {
    p = {POINTER(T, group_offsets, kInt, in, required), POINTER(T, row_assignment, kInt, in, required),
         POINTER(T, assignment_row, kInt, in, required)};
  } else {
    p = {POINTER(T, ids, kInt, in, by_type), POINTER(T, expert_map, kInt, in, optional)};
  }
  const std::vector<Pointer> rest{
      POINTER(T, routing_weights, kFloat, in, by_type),
      POINTER(T, x, kFloat, in, required),
      POINTER(T, weight, kFloat, in, required),
      Pointer{"bias", offsetof(T, bias), kRoom, kFloat, in, bias_by_type ? Need::by_type : Need::required},
      POINTER(T, num_tokens, kInt, in, optional),
      POINTER(T, faults, kInt, out, optional)};
  p.insert(p.end(), rest.begin(), rest.end());
  return p;
}
std::vector<Pointer> forward_pointers(bool given) {
  auto p = moe_inputs<ggm_moe_forward_tensors_t>(given, true);
  p.push_back(POINTER(ggm_moe_forward_tensors_t, y, kFloat, out, required));
  return p;
}
std::vector<Pointer> backward_pointers(bool given) {
  using T = ggm_moe_backward_tensors_t;
  auto p = moe_inputs<T>(given, false);  // of the gradients only d_routing_weights reads the bias
  const std::vector<Pointer> own{POINTER(T, dy, kFloat, in, required), POINTER(T, dx, kFloat, out, required),
                                 POINTER(T, d_weight, kFloat, out, required), POINTER(T, d_bias, kFloat, out, required),
                                 POINTER(T, d_routing_weights, kFloat, out, required)};
  p.insert(p.end(), own.begin(), own.end());
  return p;
}

template <class T>
const char* type_name();
#define NAME(type)                \
  template <>                     \
  const char* type_name<type>() { \
    return #type;                 \
  }
NAME(ggm_route_problem_t)
NAME(ggm_permute_problem_t)
NAME(ggm_grouped_gemm_problem_t)
NAME(ggm_grouped_gemm_array_problem_t)
NAME(ggm_moe_problem_t)
NAME(ggm_route_tensors_t)
NAME(ggm_permute_tensors_t)
NAME(ggm_unpermute_backward_tensors_t)
NAME(ggm_grouped_gemm_tensors_t)
NAME(ggm_grouped_gemm_array_tensors_t)
NAME(ggm_moe_forward_tensors_t)
NAME(ggm_moe_backward_tensors_t)

// One line of the table of bases: the two functions by name, the structs by their member of Call.
#define BASE(operation, problem, tensors, fill, pointers)                                                                  \
  BaseInfo {                                                                                                               \
#operation, type_name<decltype(Call::problem)>(), type_name<decltype(Call::tensors)>(), offsetof(Call, problem),         \
        sizeof(Call::problem), offsetof(Call, tensors), sizeof(Call::tensors),                                               \
        [](ggm_handle_t h, const void* p, std::size_t* bytes) {                                                              \
          return ggm_##operation##_workspace_size(h, static_cast<const decltype(Call::problem)*>(p), bytes);                 \
        },                                                                                                                   \
        [](ggm_handle_t h, const void* p, const void* t, void* w, std::size_t bytes, ggm_stream_t s) {                       \
          return ggm_##operation(h, static_cast<const decltype(Call::problem)*>(p),                                          \
                                 static_cast<const decltype(Call::tensors)*>(t), w, bytes, s);                               \
        },                                                                                                                   \
        fill, pointers \
  }

// In the order of enum Base.
std::vector<BaseInfo> make_bases() {
  return {
      BASE(route, route, route_tensors, fill_route, route_pointers()),
      BASE(permute, permute, permute_tensors, fill_permute, permute_pointers(false)),
      BASE(unpermute, permute, permute_tensors, fill_unpermute, permute_pointers(true)),
      BASE(unpermute_backward, permute, unpermute_backward_tensors, fill_unpermute, unpermute_backward_pointers()),
      BASE(grouped_gemm, gemm, gemm_tensors, fill_gemm, gemm_pointers(true, false, false, true)),
      BASE(grouped_gemm, gemm, gemm_tensors, fill_gemm_form<GGM_GROUPS_OFFSETS>, gemm_pointers(false, true, false, false)),
      BASE(grouped_gemm, gemm, gemm_tensors, fill_gemm_form<GGM_GROUPS_STARTS_SIZES>, gemm_pointers(true, true, false, false)),
      BASE(grouped_gemm, gemm, gemm_tensors, fill_gemm_form<GGM_GROUPS_ROW_GROUP>, gemm_pointers(false, false, true, false)),
      BASE(grouped_gemm, gemm, gemm_tensors, fill_gemm_masked, gemm_pointers(true, false, false, true)),
      BASE(grouped_gemm, gemm, gemm_tensors, fill_gemm_variable, gemm_pointers(true, false, false, true)),
      BASE(grouped_gemm_array, array, array_tensors, fill_array, array_pointers()),
      BASE(moe_forward, moe, forward_tensors, fill_moe, forward_pointers(false)),
      BASE(moe_forward, moe, forward_tensors, fill_moe_given, forward_pointers(true)),
      BASE(moe_backward, moe, backward_tensors, fill_moe, backward_pointers(false)),
      BASE(moe_backward, moe, backward_tensors, fill_moe_given, backward_pointers(true)),
  };
}

// A struct of the call in memory of its own, with bytes behind it that a larger struct_size lets the library see.
class Copy {
 public:
  Copy(const Call& call, std::size_t offset, std::size_t bytes, unsigned char tail) {
    std::memset(memory_, tail, sizeof memory_);
    std::memcpy(memory_, reinterpret_cast<const unsigned char*>(&call) + offset, bytes);
  }
  const void* get() const { return memory_; }

 private:
  alignas(16) unsigned char memory_[1024];
};

}  // namespace

const BaseInfo& info(Base base) {
  static const std::vector<BaseInfo> bases = make_bases();
  return bases.at(static_cast<std::size_t>(base));
}

ggm_status_t query(const Call& call, std::size_t* bytes) {
  const BaseInfo& base = info(call.base);
  const Copy problem(call, base.problem_offset, base.problem_bytes, call.problem_tail);
  return base.query(call.handle, call.null_problem ? nullptr : problem.get(), call.null_bytes ? nullptr : bytes);
}

ggm_status_t run(const Call& call) {
  const BaseInfo& base = info(call.base);
  const Copy problem(call, base.problem_offset, base.problem_bytes, call.problem_tail);
  const Copy tensors(call, base.tensors_offset, base.tensors_bytes, call.tensors_tail);
  return base.run(call.handle, call.null_problem ? nullptr : problem.get(), call.null_tensors ? nullptr : tensors.get(),
                  call.workspace, call.workspace_bytes, call.stream);
}

Row set_row(Base base, const char* field, std::function<void(Call&)> break_it, long long value, ggm_status_t status,
            std::vector<std::string> more) {
  std::vector<std::string> words{field};
  // Flags are named by their bits, which the row gives.
  if (status != GGM_STATUS_INVALID_FLAGS) words.push_back(std::to_string(value));
  words.insert(words.end(), more.begin(), more.end());
  return problem_row(base, field, std::to_string(value).c_str(), std::move(break_it), status, std::move(words));
}

Row problem_row(Base base, const char* field, const char* what, std::function<void(Call&)> break_it, ggm_status_t status,
                std::vector<std::string> words) {
  return Row{std::string(info(base).problem_type) + "." + field,
             what,
             base,
             std::move(break_it),
             status,
             std::move(words),
             Stage::problem};
}

Row tensors_row(Base base, const char* field, const char* what, std::function<void(Call&)> break_it, ggm_status_t status,
                std::vector<std::string> words) {
  return Row{std::string(info(base).tensors_type) + "." + field,
             what,
             base,
             std::move(break_it),
             status,
             std::move(words),
             Stage::call};
}

void* some_pointer() {
  alignas(256) static unsigned char memory[256];
  return memory;
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (auto* make : {common_rows, route_rows, gemm_rows, moe_rows})
    for (Row& row : make()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace misuse
