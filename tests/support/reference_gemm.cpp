#include "support/reference_gemm.h"

#include <algorithm>
#include <cmath>

namespace ggm_test {
namespace {

using Index = std::int64_t;

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

Index clamp_size(Index size, Index room, Faults* faults) {
  const Index clamped = std::clamp<Index>(size, 0, room);
  if (clamped != size) ++(*faults)[GGM_FAULT_SIZE_CLAMPED];
  return clamped;
}

Index next_offset(Index previous, Index value, Index rows, Faults* faults) {
  const Index fixed = std::max(previous, std::clamp<Index>(value, 0, rows));
  if (fixed != value) ++(*faults)[GGM_FAULT_BAD_ROUTING];
  return fixed;
}

std::int32_t output_type(const ggm_grouped_gemm_problem_t& p) { return p.d_type ? p.d_type : p.a_type; }

struct Writer {
  const GemmInput& in;
  Rounding rounding;
  GemmResult& result;

  // One row of D from its float64 sums over k terms; d and c are the indices of the row's first element. Without terms the
  // sum is +0.0 whatever the sign of alpha.
  void row(const double* sums, Index n, Index k, Index d, Index c) const {
    const ggm_grouped_gemm_problem_t& p = in.problem;
    const double alpha = k == 0 ? 0.0 : p.flags & GGM_FLAG_ALPHA ? p.alpha : 1.0;
    for (Index j = 0; j < n; ++j)
      result.d[at(d + j)] =
          scale_and_add(rounding, p.a_type, output_type(p), alpha, sums[j], p.beta, p.beta != 0 ? in.c[at(c + j)] : 0.0);
  }
};

Index b_matrix(const ggm_grouped_gemm_problem_t& p, Index group) {
  return p.stride_b == GGM_STRIDE_SHARED ? 0 : group * p.n * p.k;
}

void rows_of_group(const Writer& write, Index group, Index begin, Index end) {
  const ggm_grouped_gemm_problem_t& p = write.in.problem;
  const std::vector<double> sums = product(end - begin, p.n, p.k, write.in.a.data() + begin * p.k, GGM_ORDER_MK,
                                           write.in.b.data() + b_matrix(p, group), p.b_order);
  for (Index r = begin; r < end; ++r) write.row(sums.data() + (r - begin) * p.n, p.n, p.k, r * p.n, r * p.n);
}

void contiguous(const Writer& write, std::vector<bool>* used) {
  const ggm_grouped_gemm_problem_t& p = write.in.problem;
  if (p.group_form == GGM_GROUPS_ROW_GROUP) {
    for (Index r = 0; r < p.m; ++r) {
      const Index group = write.in.row_group[at(r)];
      if (group < -1 || group >= p.groups) ++write.result.faults[GGM_FAULT_BAD_ID];
      if (group < 0 || group >= p.groups) continue;
      rows_of_group(write, group, r, r + 1);
      (*used)[at(r)] = true;
    }
    return;
  }
  const std::vector<RowRange> ranges = group_ranges(write.in, p.m, &write.result.faults);
  for (Index g = 0; g < p.groups; ++g) {
    rows_of_group(write, g, ranges[at(g)].begin, ranges[at(g)].end);
    for (Index r = ranges[at(g)].begin; r < ranges[at(g)].end; ++r) (*used)[at(r)] = true;
  }
}

void masked(const Writer& write, std::vector<bool>* used) {
  const ggm_grouped_gemm_problem_t& p = write.in.problem;
  for (Index g = 0; g < p.groups; ++g) {
    const Index rows = clamp_size(write.in.sizes[at(g)], p.m, &write.result.faults);
    const Index a = p.stride_a == GGM_STRIDE_SHARED ? 0 : g * p.m * p.k;
    const Index c = p.stride_c == GGM_STRIDE_SHARED ? 0 : g * p.m;
    const std::vector<double> sums =
        product(rows, p.n, p.k, write.in.a.data() + a, GGM_ORDER_MK, write.in.b.data() + b_matrix(p, g), p.b_order);
    for (Index r = 0; r < rows; ++r) {
      write.row(sums.data() + r * p.n, p.n, p.k, (g * p.m + r) * p.n, (c + r) * p.n);
      (*used)[at(g * p.m + r)] = true;
    }
  }
}

void variable_k(const Writer& write) {
  const ggm_grouped_gemm_problem_t& p = write.in.problem;
  const std::vector<RowRange> ranges = group_ranges(write.in, p.k, &write.result.faults);
  for (Index g = 0; g < p.groups; ++g) {
    const Index begin = ranges[at(g)].begin, length = ranges[at(g)].end - begin;
    const std::vector<double> sums =
        product(p.m, p.n, length, write.in.a.data() + begin * p.m, GGM_ORDER_KM, write.in.b.data() + begin * p.n, GGM_ORDER_KN);
    const Index c = p.stride_c == GGM_STRIDE_SHARED ? 0 : g * p.m;
    for (Index i = 0; i < p.m; ++i) write.row(sums.data() + i * p.n, p.n, length, (g * p.m + i) * p.n, (c + i) * p.n);
  }
}

// row_group of a variable-K product: each row adds its outer product to its group.
void variable_k_by_row(const Writer& write) {
  const ggm_grouped_gemm_problem_t& p = write.in.problem;
  std::vector<double> sums(at(p.groups * p.m * p.n), 0.0);
  std::vector<Index> count(at(p.groups), 0);
  for (Index r = 0; r < p.k; ++r) {
    const Index group = write.in.row_group[at(r)];
    if (group < -1 || group >= p.groups) ++write.result.faults[GGM_FAULT_BAD_ID];
    if (group < 0 || group >= p.groups) continue;
    ++count[at(group)];
    for (Index i = 0; i < p.m; ++i)
      for (Index j = 0; j < p.n; ++j)
        sums[at((group * p.m + i) * p.n + j)] += write.in.a[at(r * p.m + i)] * write.in.b[at(r * p.n + j)];
  }
  for (Index g = 0; g < p.groups; ++g) {
    const Index c = p.stride_c == GGM_STRIDE_SHARED ? 0 : g * p.m;
    for (Index i = 0; i < p.m; ++i)
      write.row(sums.data() + (g * p.m + i) * p.n, p.n, count[at(g)], (g * p.m + i) * p.n, (c + i) * p.n);
  }
}

}  // namespace

std::vector<double> product(Index m, Index n, Index k, const double* a, std::int32_t a_order, const double* b,
                            std::int32_t b_order) {
  std::vector<double> turned;
  if (b_order == GGM_ORDER_NK && m > 0) {  // to [k,n], so that the inner loop runs along n
    turned.resize(at(n * k));
    for (Index j = 0; j < n; ++j)
      for (Index l = 0; l < k; ++l) turned[at(l * n + j)] = b[j * k + l];
    b = turned.data();
  }
  std::vector<double> out(at(m * n), 0.0);
  for (Index i = 0; i < m; ++i)
    for (Index l = 0; l < k; ++l) {
      const double factor = a_order == GGM_ORDER_MK ? a[i * k + l] : a[l * m + i];
      for (Index j = 0; j < n; ++j) out[at(i * n + j)] += factor * b[l * n + j];
    }
  return out;
}

double scale_and_add(Rounding rounding, std::int32_t in, std::int32_t out, double alpha, double sum, double beta, double c) {
  if (rounding == Rounding::none || in == GGM_TYPE_FLOAT64) return beta != 0 ? alpha * sum + beta * c : alpha * sum;
  const double scaled = alpha == 1.0 ? f32(sum) : f32(f32(alpha) * f32(sum));
  return round_to(out, f32(beta != 0 ? scaled + f32(f32(beta) * c) : scaled));
}

double blocked_dot(const double* u, const double* v, Index n, bool wide) {
  double total = 0;
  for (Index block = 0; block < n; block += 64) {
    std::vector<double> sums(32, 0.0);
    for (Index i = 0; i < 32; ++i)
      for (Index column : {block + i / 8 * 16 + i % 8, block + i / 8 * 16 + i % 8 + 8}) {
        if (column >= n) continue;
        double& s = sums[static_cast<std::size_t>(i)];
        s = wide ? std::fma(u[column], v[column], s)
                 : std::fmaf(static_cast<float>(u[column]), static_cast<float>(v[column]), static_cast<float>(s));
      }
    const auto add = [&](double x, double y) { return wide ? x + y : f32(x + y); };
    while (sums.size() > 1) {
      std::vector<double> pairs;
      for (std::size_t i = 0; i < sums.size(); i += 2) pairs.push_back(add(sums[i], sums[i + 1]));
      sums = pairs;
    }
    total = block == 0 ? sums[0] : add(total, sums[0]);
  }
  return total;
}

std::vector<RowRange> group_ranges(const GemmInput& in, Index rows, Faults* faults) {
  std::vector<RowRange> ranges;
  const Index groups = in.problem.groups;
  Index previous = 0;
  switch (in.problem.group_form) {
    case GGM_GROUPS_SIZES:
      for (Index g = 0; g < groups; ++g) {
        const Index size = clamp_size(in.sizes[at(g)], rows - previous, faults);
        ranges.push_back({previous, previous + size});
        previous += size;
      }
      break;
    case GGM_GROUPS_OFFSETS:
      previous = next_offset(0, in.offsets[0], rows, faults);
      for (Index g = 0; g < groups; ++g) {
        const Index end = next_offset(previous, in.offsets[at(g + 1)], rows, faults);
        ranges.push_back({previous, end});
        previous = end;
      }
      break;
    case GGM_GROUPS_ENDS:
      for (Index g = 0; g < groups; ++g) {
        const Index end = next_offset(previous, in.offsets[at(g)], rows, faults);
        ranges.push_back({previous, end});
        previous = end;
      }
      break;
    default:  // STARTS_SIZES: the start is moved into the rows, then the size keeps what fits behind it; one fault a group
      for (Index g = 0; g < groups; ++g) {
        const Index start = std::clamp<Index>(in.offsets[at(g)], 0, rows);
        const Index size = std::clamp<Index>(in.sizes[at(g)], 0, rows - start);
        if (start != in.offsets[at(g)] || size != in.sizes[at(g)]) ++(*faults)[GGM_FAULT_SIZE_CLAMPED];
        ranges.push_back({start, start + size});
      }
  }
  return ranges;
}

GemmResult gemm_reference(const GemmInput& in, Rounding rounding) {
  const ggm_grouped_gemm_problem_t& p = in.problem;
  GemmResult result;
  result.d = in.d;
  const Writer write{in, rounding, result};
  if (p.layout == GGM_LAYOUT_VARIABLE_K) {
    p.group_form == GGM_GROUPS_ROW_GROUP ? variable_k_by_row(write) : variable_k(write);
    return result;
  }
  std::vector<bool> used(at(p.layout == GGM_LAYOUT_MASKED ? p.groups * p.m : p.m), false);
  p.layout == GGM_LAYOUT_MASKED ? masked(write, &used) : contiguous(write, &used);
  const bool keep = (p.flags & GGM_FLAG_KEEP_UNUSED_ROWS) || p.beta != 0;
  for (std::size_t r = 0; r < used.size() && !keep; ++r)
    if (!used[r]) std::fill_n(result.d.begin() + static_cast<Index>(r) * p.n, p.n, 0.0);
  return result;
}

}  // namespace ggm_test
