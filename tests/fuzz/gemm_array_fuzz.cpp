#include <algorithm>
#include <cmath>

#include "fuzz/fuzz.h"
#include "support/reference_gemm.h"

namespace ggm_test::fuzz {
namespace {

constexpr Index kBound = 70;  // of the sizes; a problem with larger bounds gives every size by its array

ggm_grouped_gemm_array_problem_t plain_problem() {
  ggm_grouped_gemm_array_problem_t p = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  p.groups = 2;
  p.max_m = 3;
  p.max_n = 4;
  p.max_k = 5;
  p.a_order = GGM_ORDER_MK;
  p.b_order = GGM_ORDER_NK;
  p.a_type = p.b_type = GGM_TYPE_FLOAT32;
  return p;
}

ggm_grouped_gemm_array_problem_t draw_problem(Draw& draw) {
  ggm_grouped_gemm_array_problem_t p = GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT;
  p.groups = draw.between(0, 6);
  p.max_m = std::min(kBound, draw.extent());
  p.max_n = std::min(kBound, draw.extent());
  p.max_k = std::min(kBound, draw.extent());
  p.a_order = draw.choice(GGM_ORDER_MK, GGM_ORDER_KM);
  p.b_order = draw.choice(GGM_ORDER_NK, GGM_ORDER_KN);
  p.a_type = p.b_type = draw.float_type();
  p.d_type = draw.output_type(p.a_type);
  if (draw.chance(50)) {
    p.c_type = is_16bit(p.a_type) ? draw.any_of<std::int32_t>({GGM_TYPE_FLOAT32, p.a_type}) : p.a_type;
    if (draw.chance(70)) p.beta = draw.any_of<double>({1, 2, -1, 0.5});
  }
  if (draw.chance(30)) {
    p.flags |= GGM_FLAG_ALPHA;
    p.alpha = draw.any_of<double>({0, -1, 2});
  }
  p.index_type = draw.choice(GGM_INDEX_DEFAULT, GGM_INDEX_INT64);
  p.min_alignment = draw.any_of<std::int32_t>({0, 0, 1, 2, 4, 8, 16, 64, 256});
  p.sm_limit = draw.choice(0, 2);
  return p;
}

// One matrix of a group: its place in memory, and the pointer and leading dimension that the library is told.
struct Matrix {
  Tensor* tensor = nullptr;
  Index ld = 0;
  const void* pointer = nullptr;

  bool keeps(Index min_alignment) const {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    const Index element = bytes_of(tensor->type()), wanted = std::max<Index>(1, min_alignment);
    return address % static_cast<std::uintptr_t>(element) == 0 && address % static_cast<std::uintptr_t>(wanted) == 0 &&
           ld * element % wanted == 0;
  }
};

struct Group {
  Index m = 0, n = 0, k = 0;
  Matrix a, b, c, d;

  bool empty() const { return m == 0 || n == 0; }
};

class Arrays {
 public:
  Arrays(Round& round, const ggm_grouped_gemm_array_problem_t& p)
      : round_(round), p_(p), d_type_(p.d_type ? p.d_type : p.a_type), hostile_(round.draw.chance(50)) {
    m_ = sizes("m", p.max_m);
    n_ = sizes("n", p.max_n);
    k_ = sizes("k", p.max_k);
    with_ld_ = round.draw.chance(50);
    groups_.resize(at(p.groups));
    for (std::size_t g = 0; g < groups_.size(); ++g) make_group(g);
  }

  ggm_grouped_gemm_array_tensors_t tensors();
  void check() const;

 private:
  struct Sizes {
    std::vector<Index> given;
    const void* array = nullptr;  // NULL: the bound for every group
  };
  Sizes sizes(const char* name, Index bound);
  void make_group(std::size_t g);
  Matrix matrix(const char* name, std::int32_t type, Index rows, Index columns, bool written);
  void misguide(Group* group);
  bool skipped(const Group& group) const;
  void check_group(const Group& group) const;

  Round& round_;
  const ggm_grouped_gemm_array_problem_t& p_;
  std::int32_t d_type_;
  bool hostile_, with_ld_ = false;
  Sizes m_, n_, k_;
  std::vector<Group> groups_;
  Faults counted_{};
};

Arrays::Sizes Arrays::sizes(const char* name, Index bound) {
  Draw& draw = round_.draw;
  Sizes out;
  const bool by_array = bound > kBound || draw.chance(80);
  for (Index g = 0; g < p_.groups; ++g) {
    const bool wrong = hostile_ && bound <= kBound && draw.chance(10);
    const Index size =
        wrong ? draw.hostile_element(p_.index_type == GGM_INDEX_INT64) : draw.between(0, std::min(bound, kBound));
    out.given.push_back(by_array ? size : bound);
  }
  if (by_array)
    out.array =
        round_.scene.input(name, index_element(p_.index_type), {1, 1, p_.groups}, draw.between(0, 3)).assign(out.given).data();
  return out;
}

Matrix Arrays::matrix(const char* name, std::int32_t type, Index rows, Index columns, bool written) {
  Draw& draw = round_.draw;
  Matrix out;
  out.ld = columns + (with_ld_ ? draw.between(0, 3) : 0);
  const Shape shape{1, rows, columns, out.ld};
  const Index misalign = draw.between(0, 3);
  out.tensor = written ? &round_.scene.output(name, type, shape, misalign) : &round_.scene.input(name, type, shape, misalign);
  out.tensor->fill([&](auto, auto, auto) { return written ? draw.old_value() : draw.choice(-2, 2); });
  out.pointer = out.tensor->data();
  return out;
}

void Arrays::make_group(std::size_t g) {
  Group& group = groups_[g];
  bool clamped = false;
  const auto resolve = [&](const Sizes& sizes, Index bound) {
    const Index size = std::clamp<Index>(sizes.given[g], 0, bound);
    clamped |= size != sizes.given[g];
    return size;
  };
  group.m = resolve(m_, p_.max_m);
  group.n = resolve(n_, p_.max_n);
  group.k = resolve(k_, p_.max_k);
  if (clamped) ++counted_[GGM_FAULT_SIZE_CLAMPED];
  const bool mk = p_.a_order == GGM_ORDER_MK, nk = p_.b_order == GGM_ORDER_NK;
  group.a = matrix("a", p_.a_type, mk ? group.m : group.k, mk ? group.k : group.m, false);
  group.b = matrix("b", p_.b_type, nk ? group.n : group.k, nk ? group.k : group.n, false);
  group.d = matrix("d", d_type_, group.m, group.n, true);
  if (p_.c_type) {
    const bool in_place = p_.c_type == d_type_ && round_.draw.chance(40);
    group.c = in_place ? group.d : matrix("c", p_.c_type, group.m, group.n, false);
  }
  misguide(&group);
  if (skipped(group)) ++counted_[GGM_FAULT_MISALIGNED_GROUP];
}

// Pointers that must not be looked at, and outputs that are not aligned to their element.
void Arrays::misguide(Group* group) {
  const auto nowhere = [&] { return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(round_.draw.between(0, 9))); };
  if (group->empty() || group->k == 0) {
    if (round_.draw.chance(60)) group->a.pointer = nowhere();
    if (round_.draw.chance(60)) group->b.pointer = nowhere();
  }
  if (group->c.tensor && (group->empty() || p_.beta == 0) && round_.draw.chance(60)) group->c.pointer = nowhere();
  if (group->empty()) {
    if (round_.draw.chance(60)) group->d.pointer = nowhere();
  } else if (round_.draw.chance(5)) {
    group->d.pointer = static_cast<const char*>(group->d.pointer) + 1;
  }
}

bool Arrays::skipped(const Group& group) const {
  if (group.empty()) return false;
  const auto breaks = [&](const Matrix& matrix) { return !matrix.keeps(p_.min_alignment); };
  return (group.k > 0 && (breaks(group.a) || breaks(group.b))) || (p_.beta != 0 && breaks(group.c)) || breaks(group.d);
}

ggm_grouped_gemm_array_tensors_t Arrays::tensors() {
  const auto place = [&](const char* name, std::int32_t type) -> Tensor& {
    return round_.scene.input(name, type, {1, 1, p_.groups});
  };
  const auto pointers = [&](const char* name, Matrix Group::*which) {
    return place(name, kInt64)
        .fill([&](auto, auto, Index g) { return reinterpret_cast<std::intptr_t>((groups_[at(g)].*which).pointer); })
        .data();
  };
  const auto leading = [&](const char* name, Matrix Group::*which) -> const void* {
    if (!with_ld_) return nullptr;
    return place(name, index_element(p_.index_type))
        .fill([&](auto, auto, Index g) { return (groups_[at(g)].*which).ld; })
        .data();
  };
  ggm_grouped_gemm_array_tensors_t t = GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT;
  t.m = m_.array;
  t.n = n_.array;
  t.k = k_.array;
  t.lda = leading("lda", &Group::a);
  t.ldb = leading("ldb", &Group::b);
  if (p_.c_type) t.ldc = leading("ldc", &Group::c);
  t.ldd = leading("ldd", &Group::d);
  t.a = static_cast<const void* const*>(pointers("a pointers", &Group::a));
  t.b = static_cast<const void* const*>(pointers("b pointers", &Group::b));
  if (p_.c_type) t.c = static_cast<const void* const*>(pointers("c pointers", &Group::c));
  t.d = static_cast<void* const*>(pointers("d pointers", &Group::d));
  t.faults = round_.faults();
  return t;
}

void Arrays::check_group(const Group& group) const {
  std::vector<double> want = group.d.tensor->initial_values();
  if (!skipped(group)) {
    const std::vector<double> old = p_.beta != 0 ? group.c.tensor->initial_values() : want;
    want = product(group.m, group.n, group.k, group.a.tensor->initial_values().data(), p_.a_order,
                   group.b.tensor->initial_values().data(), p_.b_order);
    const double alpha = group.k == 0 ? 0 : p_.flags & GGM_FLAG_ALPHA ? p_.alpha : 1;
    for (std::size_t i = 0; i < want.size(); ++i)
      want[i] = scale_and_add(Rounding::contract, p_.a_type, d_type_, alpha, want[i], p_.beta, old[i]);
  }
  round_.compare(*group.d.tensor, want);
}

void Arrays::check() const {
  for (const Group& group : groups_) check_group(group);
  round_.compare_faults(counted_, p_.max_m > 0 && p_.max_n > 0);
}

void gemm_array(Round& round) {
  ggm_grouped_gemm_array_problem_t p = draw_problem(round.draw);
  const bool accepted = round.accepted(op::grouped_gemm_array, &p, offsetof(ggm_grouped_gemm_array_problem_t, index_type));
  const ggm_grouped_gemm_array_problem_t fit = accepted ? p : plain_problem();
  const auto exact = [](double v) { return v == 0 || std::fabs(v) == 0.5 || std::fabs(v) == 1 || std::fabs(v) == 2; };
  if (!exact(fit.alpha) || !exact(fit.beta) || fit.groups > 100 || !round.affordable({})) return;
  Arrays arrays(round, fit);
  using Tensors = ggm_grouped_gemm_array_tensors_t;
  const bool any_d = fit.groups > 0 && fit.max_m > 0 && fit.max_n > 0, any_a = any_d && fit.max_k > 0;
  const bool ran = round.call(op::grouped_gemm_array, p, arrays.tensors(),
                              {{any_a, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->a = nullptr; }},
                               {any_d, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->d = nullptr; }},
                               {any_d && fit.c_type, GGM_STATUS_TYPE_MISMATCH, [](Tensors* m) { m->c = nullptr; }},
                               {any_a, GGM_STATUS_MISALIGNED, [](Tensors* m) {
                                  m->b = reinterpret_cast<const void* const*>(reinterpret_cast<const char*>(m->b) + 4);
                                }}});
  if (ran) arrays.check();
}

}  // namespace
}  // namespace ggm_test::fuzz

GGM_FUZZ("ggm_grouped_gemm_array", ggm_test::fuzz::gemm_array)
