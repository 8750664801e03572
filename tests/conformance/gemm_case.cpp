#include "conformance/gemm_case.h"

#include <cmath>
#include <numeric>
#include <sstream>

#include "conformance/pairwise.h"
#include "support/compare.h"
#include "support/inputs.h"

namespace ggm_test {
namespace {

using Index = std::int64_t;
std::size_t at(Index i) { return static_cast<std::size_t>(i); }

constexpr Index kExtents[] = {1, 2, 3, 7, 8, 15, 17, 24, 64, 65, 128, 129, 200};
constexpr int kSizePatterns = 6;
constexpr int kMediumSizes = kSizePatterns;  // these two are not of the pairs
constexpr int kManySizes = kSizePatterns + 1;

Index group_size(int pattern, Index group, Index groups) {
  const std::uint32_t h = mix(static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(pattern), 5);
  switch (pattern) {
    case 0: return 0;
    case 1: return 1;
    case 2: return h % 9;
    case 3: return group + 1 == groups ? 250 : 0;
    case kMediumSizes: return 40 + h % 20;
    case kManySizes: return 510;
    case 4: return group == 0 ? 128 : group == 1 ? 130 : group == 2 ? 65 : group == 3 ? 0 : h % 4;
    default: return group % 3 == 1 ? 0 : h % 24;
  }
}

double value_of(Data data, std::uint32_t stream, Index r, Index c, int integer) {
  return data == Data::random ? uniform(stream, r, c) : integer;
}

}  // namespace

std::string GemmCase::text() const {
  static const char* const layouts[] = {"contiguous", "masked", "variable_k"};
  static const char* const forms[] = {"sizes", "offsets", "ends", "starts_sizes", "row_group"};
  static const char* const scales[] = {"plain", "alpha", "add", "add_in_place", "alpha_add_other"};
  std::ostringstream out;
  out << name_of(type) << (wide_output ? "->f32 " : " ") << layouts[layout] << " " << forms[form]
      << (layout == GGM_LAYOUT_VARIABLE_K ? ""
          : order == GGM_ORDER_NK         ? " nk"
                                          : " kn")
      << " n=" << n << " inner=" << inner << " groups=" << groups << " sizes=" << sizes << " tail=" << tail
      << (index_type == GGM_INDEX_INT64 ? " i64" : " i32") << " gaps=" << gap_a << "," << gap_b << "," << gap_d
      << " strides=" << strides << " misalign=" << misalign << " " << scales[static_cast<int>(scale)] << (keep ? " keep" : "")
      << " sm=" << sm_limit << (data == Data::random ? " random" : "");
  if (hostile) out << " hostile=" << hostile;
  for (std::size_t g = 0; g < own_sizes.size(); ++g) out << (g == 0 ? " of " : ",") << own_sizes[g];
  return out.str();
}

std::vector<GemmCase> gemm_cases(std::int32_t type, Data data) {
  struct Kind {
    std::int32_t layout, form, order;
  };
  std::vector<Kind> kinds;
  for (std::int32_t form = GGM_GROUPS_SIZES; form <= GGM_GROUPS_ROW_GROUP; ++form) {
    kinds.push_back({GGM_LAYOUT_CONTIGUOUS, form, GGM_ORDER_NK});
    kinds.push_back({GGM_LAYOUT_CONTIGUOUS, form, GGM_ORDER_KN});
    kinds.push_back({GGM_LAYOUT_VARIABLE_K, form, 0});
  }
  kinds.push_back({GGM_LAYOUT_MASKED, GGM_GROUPS_SIZES, GGM_ORDER_NK});
  kinds.push_back({GGM_LAYOUT_MASKED, GGM_GROUPS_SIZES, GGM_ORDER_KN});
  constexpr Index groups[] = {1, 2, 3, 7, 40}, gaps[] = {0, 1, 8}, misaligns[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

  std::vector<GemmCase> cases;
  for (const std::vector<int>& row :
       all_pairs({static_cast<int>(kinds.size()), 13, 13, 5, kSizePatterns, 2, 2, 3, 3, 3, 3, 9, 2, 5, 2, 3},
                 static_cast<std::uint32_t>(type))) {
    GemmCase c;
    const Kind kind = kinds[at(row[0])];
    c.type = type;
    c.layout = kind.layout;
    c.form = kind.form;
    c.order = kind.order;
    c.n = kExtents[row[1]];
    c.inner = kExtents[row[2]];
    c.groups = groups[row[3]];
    c.sizes = row[4];
    c.tail = row[5] * 5;
    c.index_type = row[6] ? GGM_INDEX_INT64 : GGM_INDEX_INT32;
    c.gap_a = gaps[row[7]];
    c.gap_b = gaps[row[8]];
    c.gap_d = gaps[row[9]];
    c.strides = row[10];
    c.misalign = misaligns[row[11]];
    c.wide_output = is_16bit(type) && row[12];
    c.scale = static_cast<Scale>(row[13]);
    c.keep = row[14] && c.layout != GGM_LAYOUT_VARIABLE_K;
    c.sm_limit = row[15] == 2 ? 3 : row[15];
    c.data = data;
    cases.push_back(c);
  }
  // For every kind a product for each height of row tiles: few, some and many rows a group.
  struct Height {
    Index inner, groups;
    int sizes;
  };
  for (const Kind& kind : kinds)
    for (const Height& height : {Height{24, 7, 1}, Height{50, 3, kMediumSizes}, Height{200, 1, 3}}) {
      GemmCase c;
      c.type = type;
      c.layout = kind.layout;
      c.form = kind.form;
      c.order = kind.order;
      c.n = 129;
      c.inner = height.inner;
      c.groups = height.groups;
      c.sizes = height.sizes;
      c.data = data;
      cases.push_back(c);
    }
  // Few rows a group and no more than a product: two on average, and eight with a long K.
  for (const Kind& kind : kinds)
    for (const std::vector<Index>& sizes : {std::vector<Index>{2, 0, 4}, std::vector<Index>{13, 3, 8}}) {
      if (!is_16bit(type) || kind.layout != GGM_LAYOUT_CONTIGUOUS || kind.form > GGM_GROUPS_ENDS) continue;
      GemmCase c;
      c.type = type;
      c.form = kind.form;
      c.order = kind.order;
      c.n = 40;
      c.inner = sizes[0] == 2 ? 72 : 2056;
      c.groups = 3;
      c.own_sizes = sizes;
      c.data = data;
      cases.push_back(c);
    }
  // Many rows and a long K: several tiles of the tallest kernels, and stages that are used again.
  for (const Kind& kind : kinds) {
    if (!is_16bit(type) || kind.layout == GGM_LAYOUT_VARIABLE_K || kind.form != GGM_GROUPS_SIZES) continue;
    GemmCase c;
    c.type = type;
    c.layout = kind.layout;
    c.order = kind.order;
    c.n = 40;
    c.inner = 1032;
    c.sizes = kManySizes;
    c.data = data;
    cases.push_back(c);
  }
  return cases;
}

GemmRun::GemmRun(const Handle& handle, const GemmCase& line) : line_(line), scene_(handle) {
  problem_.groups = line.groups;
  problem_.layout = line.layout;
  problem_.group_form = line.form;
  problem_.index_type = line.index_type;
  make_groups();
  if (line.hostile) spoil_groups();
  upload_groups();
  make_problem();
  lay_out();
  make_inputs();
  make_outputs();
  tensors_.a = a_->data();
  tensors_.b = b_->data();
  tensors_.c = c_ ? c_->data() : nullptr;
  tensors_.d = d_->data();
  tensors_.faults = static_cast<std::uint32_t*>(faults_->data());
  input_.problem = problem_;
}

void GemmRun::make_groups() {
  std::vector<Index> sizes(at(line_.groups));
  for (Index g = 0; g < line_.groups; ++g)
    sizes[at(g)] = line_.own_sizes.empty() ? group_size(line_.sizes, g, line_.groups) : line_.own_sizes[at(g)];
  const Index total = std::accumulate(sizes.begin(), sizes.end(), Index{0});
  rows_ = total + line_.tail;
  used_groups_.resize(sizes.size());
  for (std::size_t g = 0; g < sizes.size(); ++g) used_groups_[g] = sizes[g] > 0;
  if (line_.layout == GGM_LAYOUT_MASKED) {
    rows_ = *std::max_element(sizes.begin(), sizes.end()) + line_.tail;  // m
    used_rows_.assign(at(line_.groups * rows_), false);
    for (Index g = 0; g < line_.groups; ++g) std::fill_n(used_rows_.begin() + g * rows_, sizes[at(g)], true);
    input_.sizes = sizes;
    return;
  }
  used_rows_.assign(at(rows_), false);
  std::fill_n(used_rows_.begin(), total, true);
  std::vector<Index> ends(sizes.size());
  std::partial_sum(sizes.begin(), sizes.end(), ends.begin());
  switch (line_.form) {
    case GGM_GROUPS_SIZES: input_.sizes = sizes; break;
    case GGM_GROUPS_OFFSETS:
      input_.offsets = ends;
      input_.offsets.insert(input_.offsets.begin(), 0);
      break;
    case GGM_GROUPS_ENDS: input_.offsets = ends; break;
    case GGM_GROUPS_STARTS_SIZES: {  // last group first, and the tail as a gap before everything
      Index start = line_.tail;
      input_.sizes = sizes;
      input_.offsets.resize(sizes.size());
      for (std::size_t g = sizes.size(); g-- > 0; start += sizes[g]) input_.offsets[g] = start;
      used_rows_.assign(at(rows_), false);
      std::fill_n(used_rows_.begin() + line_.tail, total, true);
      break;
    }
    default: {  // ROW_GROUP: dealt out in turn, so that groups interleave; the tail's rows are spread as -1
      input_.row_group.assign(at(rows_), -1);
      std::vector<Index> left = sizes;
      Index group = 0, skip = line_.tail;
      used_rows_.assign(at(rows_), false);
      for (Index r = 0; r < rows_; ++r) {
        if (skip > 0 && r % 3 == 1) {
          --skip;
          continue;
        }
        for (Index tried = 0; tried < line_.groups && left[at(group)] == 0; ++tried) group = (group + 1) % line_.groups;
        if (left[at(group)] == 0) continue;
        input_.row_group[at(r)] = group;
        used_rows_[at(r)] = true;
        --left[at(group)];
        if (r % 4 != 0) group = (group + 1) % line_.groups;
      }
      for (std::size_t g = 0; g < left.size(); ++g)
        if (left[g] == sizes[g]) used_groups_[g] = false;
    }
  }
}

// Wrong values among good ones. What is used follows from the reference then, so no operand holds NaN.
void GemmRun::spoil_groups() {
  const bool wide = line_.index_type == GGM_INDEX_INT64;
  std::uint32_t which = 0;
  for (std::vector<Index>* array : {&input_.sizes, &input_.offsets, &input_.row_group}) {
    ++which;
    for (std::size_t i = 0; i < array->size(); ++i) {
      const std::uint32_t h = mix(static_cast<std::uint32_t>(i), line_.hostile, which);
      if (h % (1 + line_.hostile % 4) != 0) continue;
      switch ((h >> 8) % 6) {
        case 0: (*array)[i] = wide ? INT64_MIN : INT32_MIN; break;
        case 1: (*array)[i] = wide ? INT64_MAX : INT32_MAX; break;
        case 2: (*array)[i] = -1 - static_cast<Index>(h >> 30); break;
        case 3: (*array)[i] = rows_ + static_cast<Index>(h >> 30); break;
        case 4: (*array)[i] = wide ? (Index{1} << 32) + (*array)[i] : (*array)[i] + 1; break;
        default: (*array)[i] = static_cast<Index>(h >> 16) % (rows_ + 1); break;
      }
    }
  }
  used_rows_.assign(used_rows_.size(), true);
  used_groups_.assign(used_groups_.size(), true);
}

void GemmRun::upload_groups() {
  const std::int32_t element = index_element(line_.index_type);
  if (!input_.sizes.empty())
    tensors_.group_sizes = scene_.input("group_sizes", element, {1, 1, line_.groups}).assign(input_.sizes).data();
  if (!input_.offsets.empty())
    tensors_.group_offsets =
        scene_.input("group_offsets", element, {1, 1, static_cast<Index>(input_.offsets.size())}).assign(input_.offsets).data();
  if (line_.form == GGM_GROUPS_ROW_GROUP)
    tensors_.row_group = scene_.input("row_group", element, {1, 1, rows_}).assign(input_.row_group).data();
}

void GemmRun::make_problem() {
  const bool variable = line_.layout == GGM_LAYOUT_VARIABLE_K;
  problem_.m = variable ? line_.inner : rows_;
  problem_.n = line_.n;
  problem_.k = variable ? rows_ : line_.inner;
  problem_.b_order = line_.order;
  problem_.a_type = problem_.b_type = line_.type;
  problem_.d_type = line_.wide_output ? GGM_TYPE_FLOAT32 : 0;
  problem_.sm_limit = line_.sm_limit;
  if (line_.keep) problem_.flags |= GGM_FLAG_KEEP_UNUSED_ROWS;
  const std::int32_t d_type = problem_.d_type ? problem_.d_type : line_.type;
  switch (line_.scale) {
    case Scale::plain: break;
    case Scale::alpha: problem_.alpha = -2; break;
    case Scale::add: problem_.beta = 1; break;
    case Scale::add_in_place: problem_.beta = -1; break;
    case Scale::alpha_add_other_type: problem_.alpha = 0.5, problem_.beta = 2; break;
  }
  if (problem_.alpha != 0) problem_.flags |= GGM_FLAG_ALPHA;
  if (problem_.beta != 0) {
    problem_.c_type = d_type;
    if (line_.scale == Scale::alpha_add_other_type && is_16bit(line_.type))
      problem_.c_type = d_type == GGM_TYPE_FLOAT32 ? line_.type : GGM_TYPE_FLOAT32;
  }
}

// A resolved stride with a gap when the case spaces its groups out, or 0 for packed.
static Index stride_of(const GemmCase& line, Index rows, Index ld) {
  const Index packed = std::max<Index>(rows, 1) * ld;
  return line.strides == 1 ? packed + 3 : line.strides == 3 ? packed + 8 : Index{0};
}

// Leading dimensions and strides, as fields of the problem and as the shapes of the operands.
void GemmRun::lay_out() {
  const bool variable = line_.layout == GGM_LAYOUT_VARIABLE_K, masked = line_.layout == GGM_LAYOUT_MASKED;
  const bool shared = line_.strides == 2, nk = line_.order == GGM_ORDER_NK;
  const Index m = problem_.m, n = problem_.n, k = problem_.k, groups = line_.groups;
  const Index a_columns = variable ? m : k, b_rows = nk ? n : k, b_columns = nk ? k : n;  // VARIABLE_K: B [k,n], no order
  const Index lda = a_columns + line_.gap_a, ldb = b_columns + line_.gap_b, ldd = n + line_.gap_d;
  problem_.lda = line_.gap_a ? lda : 0;
  problem_.ldb = line_.gap_b ? ldb : 0;
  problem_.ldd = line_.gap_d ? ldd : 0;
  a_shape_ = {masked && !shared ? groups : 1, masked ? m : rows_, a_columns, lda, masked ? stride_of(line_, m, lda) : 0};
  b_shape_ = {variable || shared ? 1 : groups, b_rows, b_columns, ldb, variable ? 0 : stride_of(line_, b_rows, ldb)};
  d_shape_ = {1, m, n, ldd, 0};
  if (line_.layout != GGM_LAYOUT_CONTIGUOUS) {
    d_shape_.batches = groups;
    d_shape_.stride = problem_.stride_d = stride_of(line_, m, ldd);
  }
  if (masked) problem_.stride_a = shared ? GGM_STRIDE_SHARED : a_shape_.stride;
  if (!variable) problem_.stride_b = shared ? GGM_STRIDE_SHARED : b_shape_.stride;
}

// A and B; what must not be read is NaN.
void GemmRun::make_inputs() {
  const bool variable = line_.layout == GGM_LAYOUT_VARIABLE_K, masked = line_.layout == GGM_LAYOUT_MASKED;
  const bool shared = line_.strides == 2;
  a_ = &scene_.input("a", line_.type, a_shape_, line_.misalign);
  a_->fill([&](Index b, Index r, Index c) -> double {
    const bool used = used_rows_.empty() || (masked && shared) || used_rows_[at(b * a_shape_.rows + r)];
    return used ? value_of(line_.data, 1, b * 1000 + r, c, P(b * 1000 + r, c)) : NAN;
  });
  b_ = &scene_.input("b", line_.type, b_shape_, (line_.misalign + 1) / 2);
  b_->fill([&](Index e, Index r, Index c) -> double {
    if (variable) return used_rows_[at(r)] ? value_of(line_.data, 2, r, c, P2(r, c)) : NAN;
    const Index row = line_.order == GGM_ORDER_NK ? r : c, column = line_.order == GGM_ORDER_NK ? c : r;
    return shared || used_groups_[at(e)] ? value_of(line_.data, 2, e * 1000 + row, column, Q(e, row, column)) : NAN;
  });
  input_.a = a_->initial_values();
  input_.b = b_->initial_values();
}

// D, what it held before, C and the faults.
void GemmRun::make_outputs() {
  const Index m = problem_.m;
  const bool grouped = line_.layout != GGM_LAYOUT_CONTIGUOUS;
  d_ = &scene_.output("d", problem_.d_type ? problem_.d_type : line_.type, d_shape_, line_.misalign);
  if (line_.keep || problem_.beta != 0)
    d_->fill([&](Index b, Index r, Index c) { return value_of(line_.data, 3, b * 1000 + r, c, P(b + r, c + 9)); });
  if (line_.scale == Scale::add_in_place) {
    c_ = d_;
    problem_.ldc = problem_.ldd;
    problem_.stride_c = problem_.stride_d;
  } else if (problem_.beta != 0) {
    const bool shared = line_.strides == 2 && grouped;
    const Index ldc = problem_.n + line_.gap_a, stride = grouped ? stride_of(line_, m, ldc) : 0;
    problem_.ldc = line_.gap_a ? ldc : 0;
    problem_.stride_c = shared ? GGM_STRIDE_SHARED : stride;
    c_ = &scene_.input("c", problem_.c_type, {shared ? 1 : d_shape_.batches, m, problem_.n, ldc, stride}, line_.misalign / 2);
    c_->fill([&](Index b, Index r, Index c) -> double {
      const bool used = line_.layout == GGM_LAYOUT_VARIABLE_K || shared || used_rows_[at(b * m + r)];
      return used ? value_of(line_.data, 4, b * 1000 + r, c, P(b + 2 * r, c + 5)) : NAN;
    });
  }
  faults_ = &scene_.faults();
  if (c_) input_.c = c_->initial_values();
  input_.d = d_->initial_values();
}

void GemmRun::check() const {
  const GemmResult want = gemm_reference(input_, line_.data == Data::integers ? Rounding::contract : Rounding::none);
  for (Index i = 0; i < GGM_FAULT_WORDS; ++i) {
    INFO("fault word " << i);
    CHECK(faults_->integer(i) == want.faults[at(i)]);
  }
  // Groups that overlap leave the rows they share undefined.
  if (line_.hostile && line_.form == GGM_GROUPS_STARTS_SIZES && line_.layout == GGM_LAYOUT_CONTIGUOUS) return;
  if (line_.data == Data::integers) {
    const std::string wrong = difference(*d_, want.d);
    INFO(wrong);
    REQUIRE(wrong.empty());
    return;
  }
  GemmInput absolute = input_;
  for (std::vector<double>* values : {&absolute.a, &absolute.b, &absolute.c, &absolute.d})
    for (double& v : *values) v = std::fabs(v);
  absolute.problem.alpha = std::fabs(absolute.problem.alpha);
  absolute.problem.beta = std::fabs(absolute.problem.beta);
  const Index inner = line_.layout == GGM_LAYOUT_VARIABLE_K ? rows_ : line_.inner;
  const std::string wrong = beyond_bound(*d_, want.d, gemm_reference(absolute, Rounding::none).d,
                                         rounding_bound(line_.type, d_->type(), inner), absolute_floor(d_->type()));
  INFO(wrong);
  REQUIRE(wrong.empty());
}

}  // namespace ggm_test
