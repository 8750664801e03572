#include <algorithm>
#include <cmath>

#include "fuzz/fuzz.h"
#include "support/reference_gemm.h"

namespace ggm_test::fuzz {
namespace {

// Shapes of the operands of a problem, resolved.
struct Shapes {
  bool variable, masked, shared_a, shared_b, shared_c;
  Index rows;  // that groups share out: m, or k of a variable-K product
  Shape a, b, c, d;
  std::int32_t d_type;

  explicit Shapes(const ggm_grouped_gemm_problem_t& p)
      : variable(p.layout == GGM_LAYOUT_VARIABLE_K),
        masked(p.layout == GGM_LAYOUT_MASKED),
        shared_a(p.stride_a == GGM_STRIDE_SHARED),
        shared_b(p.stride_b == GGM_STRIDE_SHARED),
        shared_c(p.stride_c == GGM_STRIDE_SHARED),
        rows(variable ? p.k : p.m),
        d_type(p.d_type ? p.d_type : p.a_type) {
    const bool nk = p.b_order == GGM_ORDER_NK, many = variable || masked;
    const auto batches = [&](bool grouped, bool shared) {
      return !grouped ? Index{1} : shared ? std::min<Index>(1, p.groups) : p.groups;
    };
    const auto stride = [](Index field) { return field == GGM_STRIDE_SHARED ? Index{0} : field; };
    a = {batches(masked, shared_a), rows, variable ? p.m : p.k, p.lda, stride(p.stride_a)};
    b = variable ? Shape{1, rows, p.n, p.ldb}
                 : Shape{batches(true, shared_b), nk ? p.n : p.k, nk ? p.k : p.n, p.ldb, stride(p.stride_b)};
    c = {batches(many, shared_c), p.m, p.n, p.ldc, stride(p.stride_c)};
    d = {batches(many, false), p.m, p.n, p.ldd, p.stride_d};
  }
};

double span_of(const Shape& s) {
  const double ld = static_cast<double>(packed_if_zero(s.ld, s.columns));
  const double stride = s.stride ? static_cast<double>(s.stride) : static_cast<double>(s.rows) * ld;
  if (s.batches == 0 || s.rows == 0 || s.columns == 0) return 0;
  return static_cast<double>(s.batches - 1) * stride + static_cast<double>(s.rows - 1) * ld + static_cast<double>(s.columns);
}

ggm_grouped_gemm_problem_t plain_problem() {
  ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
  p.groups = 2;
  p.m = 3;
  p.n = 4;
  p.k = 5;
  p.b_order = GGM_ORDER_NK;
  p.a_type = p.b_type = GGM_TYPE_FLOAT32;
  return p;
}

// A group stride: packed, shared where it may be, or with a gap.
Index draw_stride(Draw& draw, bool may_share, const Shape& s) {
  if (draw.chance(50)) return 0;
  if (may_share && draw.chance(30)) return GGM_STRIDE_SHARED;
  return std::max(s.columns, s.rows * packed_if_zero(s.ld, s.columns)) + draw.between(0, 9);
}

void draw_scaling(Draw& draw, ggm_grouped_gemm_problem_t* p, bool* in_place) {
  if (draw.chance(30)) {
    p->flags |= GGM_FLAG_ALPHA;
    p->alpha = draw.any_of<double>({0, 1, -1, 2, 0.5});
  }
  if (draw.chance(50)) return;
  const std::int32_t d_type = p->d_type ? p->d_type : p->a_type;
  p->c_type = is_16bit(p->a_type) ? draw.any_of<std::int32_t>({GGM_TYPE_FLOAT32, p->a_type}) : p->a_type;
  if (draw.chance(70)) p->beta = draw.any_of<double>({1, 2, -1, 0.5});
  *in_place = draw.chance(40);
  if (*in_place) {
    p->c_type = d_type;
    p->ldc = p->ldd;
    p->stride_c = p->stride_d;
  } else {
    p->ldc = draw.leading(p->n);
    if (p->layout != GGM_LAYOUT_CONTIGUOUS) p->stride_c = draw_stride(draw, true, Shapes(*p).c);
  }
}

ggm_grouped_gemm_problem_t draw_problem(Draw& draw, bool* in_place) {
  ggm_grouped_gemm_problem_t p = GGM_GROUPED_GEMM_PROBLEM_INIT;
  p.layout = draw.choice(GGM_LAYOUT_CONTIGUOUS, GGM_LAYOUT_VARIABLE_K);
  const bool masked = p.layout == GGM_LAYOUT_MASKED, variable = p.layout == GGM_LAYOUT_VARIABLE_K;
  if (!masked) p.group_form = draw.choice(GGM_GROUPS_SIZES, GGM_GROUPS_ROW_GROUP);
  p.groups = draw.chance(95) ? draw.between(0, 6) : draw.between(50, 300);
  p.m = draw.extent();
  p.n = draw.extent();
  p.k = draw.extent();
  if (p.groups > 6 && (masked || variable)) p.m %= 9, p.n %= 9;
  if (!variable) p.b_order = draw.choice(GGM_ORDER_NK, GGM_ORDER_KN);
  p.a_type = p.b_type = draw.float_type();
  p.d_type = draw.output_type(p.a_type);
  const Shapes shapes(p);
  p.lda = draw.leading(shapes.a.columns);
  p.ldb = draw.leading(shapes.b.columns);
  p.ldd = draw.leading(p.n);
  if (masked) p.stride_a = draw_stride(draw, true, Shapes(p).a);
  if (!variable) p.stride_b = draw_stride(draw, true, Shapes(p).b);
  if (masked || variable) p.stride_d = draw_stride(draw, false, Shapes(p).d);
  draw_scaling(draw, &p, in_place);
  if (!variable && draw.chance(30)) p.flags |= GGM_FLAG_KEEP_UNUSED_ROWS;
  p.index_type = draw.choice(GGM_INDEX_DEFAULT, GGM_INDEX_INT64);
  p.sm_limit = draw.choice(0, 2);
  return p;
}

// Whether an accepted problem can be computed here: small, exact scaling factors, no output matrix inside another.
bool can_follow(const Round& round, const ggm_grouped_gemm_problem_t& p) {
  const auto exact = [](double v) { return v == 0 || std::fabs(v) == 0.5 || std::fabs(v) == 1 || std::fabs(v) == 2; };
  if (!exact(p.alpha) || !exact(p.beta)) return false;
  const Shapes s(p);
  if (!round.affordable(
          {span_of(s.a), span_of(s.b), span_of(s.c), span_of(s.d), static_cast<double>(p.groups), static_cast<double>(s.rows)}))
    return false;
  if (s.d.batches > 1 && s.d.stride && s.d.stride < (s.d.rows - 1) * packed_if_zero(s.d.ld, p.n) + p.n) return false;
  const Index batches = s.masked ? p.groups : 1;
  return round.affordable(
      {}, static_cast<double>(batches) * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k));
}

// Group sizes, offsets or groups of rows, some of them hostile.
void draw_groups(Draw& draw, GemmInput* in, Index rows) {
  const ggm_grouped_gemm_problem_t& p = in->problem;
  const bool wide = p.index_type == GGM_INDEX_INT64, hostile = draw.chance(50);
  const auto maybe = [&](Index value) { return hostile && draw.chance(15) ? draw.hostile_element(wide) : value; };
  const auto ascending = [&](Index count) {
    std::vector<Index> list;
    for (Index i = 0; i < count; ++i) list.push_back(draw.between(0, rows));
    std::sort(list.begin(), list.end());
    for (Index& value : list) value = maybe(value);
    return list;
  };
  Index left = rows;
  switch (p.group_form) {
    case GGM_GROUPS_SIZES:
      for (Index g = 0; g < p.groups; ++g) {
        const Index most = p.layout == GGM_LAYOUT_MASKED ? rows : left;
        const Index size = draw.chance(20) ? 0 : draw.chance(10) ? most : draw.between(0, most);
        in->sizes.push_back(maybe(size));
        left -= std::min(left, size);
      }
      break;
    case GGM_GROUPS_OFFSETS: in->offsets = ascending(p.groups + 1); break;
    case GGM_GROUPS_ENDS: in->offsets = ascending(p.groups); break;
    case GGM_GROUPS_STARTS_SIZES:
      for (Index g = 0; g < p.groups; ++g) {
        const Index start = draw.between(0, rows);
        in->offsets.push_back(maybe(start));
        in->sizes.push_back(maybe(draw.between(0, std::min(rows - start, rows / p.groups))));
      }
      break;
    default: {
      const bool runs = draw.chance(50);
      Index group = -1;
      for (Index r = 0; r < rows; ++r) {
        if (!runs || draw.chance(20)) group = draw.between(-1, p.groups - 1);
        in->row_group.push_back(maybe(group));
      }
    }
  }
}

// Groups given by starts and sizes may share rows; of a contiguous product these are undefined then.
bool rows_are_shared(const GemmInput& in) {
  if (in.problem.layout != GGM_LAYOUT_CONTIGUOUS || in.problem.group_form != GGM_GROUPS_STARTS_SIZES) return false;
  Faults ignored{};
  std::vector<bool> used(at(in.problem.m), false);
  for (const RowRange& range : group_ranges(in, in.problem.m, &ignored))
    for (Index r = range.begin; r < range.end; ++r) {
      if (used[at(r)]) return true;
      used[at(r)] = true;
    }
  return false;
}

struct Operands {
  Tensor *a, *b, *c = nullptr, *d;
  GemmInput in;

  Operands(Round& round, const ggm_grouped_gemm_problem_t& p, bool in_place) {
    Draw& draw = round.draw;
    const Shapes s(p);
    in.problem = p;
    draw_groups(draw, &in, s.rows);
    const auto old = [&draw](auto, auto, auto) { return draw.old_value(); };
    const auto integers = [&draw](int most) { return [&draw, most](auto, auto, auto) { return draw.choice(-most, most); }; };
    a = &round.scene.input("a", p.a_type, s.a, draw.between(0, 3)).fill(integers(2));
    b = &round.scene.input("b", p.b_type, s.b, draw.between(0, 3)).fill(integers(2));
    d = &round.scene.output("d", s.d_type, s.d, draw.between(0, 3));
    if ((p.flags & GGM_FLAG_KEEP_UNUSED_ROWS) || p.beta != 0 || draw.chance(50)) d->fill(old);
    if (p.c_type && in_place) c = d;
    if (p.c_type && !in_place) {
      c = &round.scene.input("c", p.c_type, s.c, draw.between(0, 3));  // poison when it is not read
      if (p.beta != 0) c->fill(old);
    }
    in.a = a->initial_values();
    in.b = b->initial_values();
    if (c) in.c = c->initial_values();
    in.d = d->initial_values();
  }
};

ggm_grouped_gemm_tensors_t tensors_of(Round& round, const Operands& operands) {
  const GemmInput& in = operands.in;
  const std::int32_t form = in.problem.group_form;
  const auto array = [&](const char* name, const std::vector<Index>& content) {
    const Shape shape{1, 1, static_cast<Index>(content.size())};
    return round.scene.input(name, index_element(in.problem.index_type), shape, round.draw.between(0, 3))
        .assign(content)
        .data();
  };
  ggm_grouped_gemm_tensors_t t = GGM_GROUPED_GEMM_TENSORS_INIT;
  if (form == GGM_GROUPS_SIZES || form == GGM_GROUPS_STARTS_SIZES) t.group_sizes = array("group_sizes", in.sizes);
  if (form >= GGM_GROUPS_OFFSETS && form <= GGM_GROUPS_STARTS_SIZES) t.group_offsets = array("group_offsets", in.offsets);
  if (form == GGM_GROUPS_ROW_GROUP) t.row_group = array("row_group", in.row_group);
  t.a = operands.a->data();
  t.b = operands.b->data();
  t.c = operands.c ? operands.c->data() : nullptr;
  t.d = operands.d->data();
  t.faults = round.faults();
  return t;
}

void grouped_gemm(Round& round) {
  bool in_place = false;
  ggm_grouped_gemm_problem_t p = draw_problem(round.draw, &in_place);
  const bool accepted = round.accepted(op::grouped_gemm, &p, offsetof(ggm_grouped_gemm_problem_t, layout));
  const ggm_grouped_gemm_problem_t fit = accepted ? p : plain_problem();
  if (!can_follow(round, fit)) return;
  in_place = in_place && fit.ldc == fit.ldd && fit.stride_c == fit.stride_d && fit.c_type == Shapes(fit).d_type;
  const Operands operands(round, fit, in_place);
  const bool any_a = operands.a->size() > 0 && fit.groups > 0, any_d = operands.d->size() > 0;
  const bool same_size = bytes_of(operands.a->type()) == bytes_of(operands.d->type());
  using Tensors = ggm_grouped_gemm_tensors_t;
  const bool ran =
      round.call(op::grouped_gemm, p, tensors_of(round, operands),
                 {{any_d, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->d = nullptr; }},
                  {any_a, GGM_STATUS_NULL_POINTER, [](Tensors* m) { m->a = nullptr; }},
                  {any_a, GGM_STATUS_MISALIGNED, [](Tensors* m) { m->a = static_cast<const char*>(m->a) + 1; }},
                  {any_d, GGM_STATUS_MISALIGNED, [](Tensors* m) { m->d = static_cast<char*>(m->d) + 1; }},
                  {any_a && any_d && same_size, GGM_STATUS_ALIASING, [](Tensors* m) { m->d = const_cast<void*>(m->a); }},
                  {!operands.c, GGM_STATUS_TYPE_MISMATCH, [](Tensors* m) { m->c = m->b; }}});
  if (!ran) return;
  const GemmResult want = gemm_reference(operands.in, Rounding::contract);
  if (!rows_are_shared(operands.in)) round.compare(*operands.d, want.d);
  round.compare_faults(want.faults, fit.groups > 0 && fit.m > 0 && fit.n > 0 && fit.k > 0);
}

}  // namespace
}  // namespace ggm_test::fuzz

GGM_FUZZ("ggm_grouped_gemm", ggm_test::fuzz::grouped_gemm)
