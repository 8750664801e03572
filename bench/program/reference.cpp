#include "reference.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace ggm_bench {

namespace {

// `count` indices of 0..size-1 without repetition, the first and last among them, spread by a fixed irregular step.
std::vector<std::int64_t> pick(std::int64_t size, std::int64_t count) {
  count = std::min(size, count);
  std::vector<std::int64_t> picked;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t from = i * size / count, to = (i + 1) * size / count;
    std::int64_t index = from + (i * 2654435761ll) % (to - from);
    if (i == 0) index = 0;
    if (i == count - 1) index = size - 1;
    picked.push_back(index);
  }
  return picked;
}

// Elements of a result that are compared. From 1024 of them the norm of rounding errors is known to about 3.5%: enough for
// one rounding, which is 20% below its limit; a result of two roundings is 10% below and takes twice as many.
constexpr std::int64_t kSamples = 1024;
constexpr std::int64_t kSamplesTwoRoundings = 2 * kSamples;
constexpr std::int64_t kGradientSide = 22;  // rows and columns of each of four experts' weight gradients

// Where column c of expert e's matrix begins; its K elements lie weight_step apart.
std::int64_t weight_start(const CellData& d, std::int64_t expert, std::int64_t c) {
  return expert * d.weight_stride() + (d.cell->kn() ? c : c * d.weight_ld());
}
std::int64_t weight_step(const CellData& d) { return d.cell->kn() ? d.weight_ld() : 1; }

// A row of the input with the expert whose weights it meets.
struct Meeting {
  std::int64_t row = 0, expert = 0;
};

// <x[row], W_expert[column]> for every meeting and column, [meetings, columns].
std::vector<double> meet(const CellData& d, Gather& gather, const std::vector<Meeting>& meetings,
                         const std::vector<std::int64_t>& columns) {
  std::vector<std::int64_t> rows, weights;
  for (const Meeting& m : meetings) {
    rows.push_back(m.row * d.cell->pitch(d.k));
    for (std::int64_t c : columns) weights.push_back(weight_start(d, m.expert, c));
  }
  return gather.dots(d.input(0), rows, d.weights(), weights, weight_step(d), d.cell->dtype, d.k);
}

std::vector<Expected> grouped(const CellData& d, Gather& gather) {
  const Routing& r = d.routing(0);
  const bool masked = d.cell->operation == "grouped_masked";
  const auto rows = pick(d.rows, 16);
  std::vector<Meeting> meetings;
  for (std::int64_t row : rows) {
    const std::int64_t e = r.host_ids[r.host_row_assignment[row]];
    meetings.push_back({masked ? e * d.capacity + row - r.host_offsets[e] : row, e});
  }
  const auto columns = pick(d.n, kSamples / static_cast<std::int64_t>(rows.size()));
  const auto products = meet(d, gather, meetings, columns);
  Expected expected{"d", {}, {}, {}};
  for (std::size_t i = 0; i < products.size(); ++i) {
    expected.add(meetings[i / columns.size()].row, columns[i % columns.size()], products[i]);
  }
  return {expected};
}

std::vector<Expected> forward(const CellData& d, Gather& gather) {
  const Routing& r = d.routing(0);
  const auto tokens = pick(d.tokens, 8);
  std::vector<Meeting> meetings;
  for (std::int64_t t : tokens) {
    for (std::int64_t j = 0; j < d.top_k; ++j) meetings.push_back({t, r.host_ids[t * d.top_k + j]});
  }
  const auto columns = pick(d.n, kSamplesTwoRoundings / static_cast<std::int64_t>(tokens.size()));
  const auto products = meet(d, gather, meetings, columns);
  Expected expected{"d", {}, {}, {}};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      double sum = 0;
      for (std::int64_t j = 0; j < d.top_k; ++j) {
        sum += static_cast<double>(r.host_weights[tokens[i] * d.top_k + j]) * products[(i * d.top_k + j) * columns.size() + c];
      }
      expected.add(tokens[i], columns[c], sum);
    }
  }
  return {expected};
}

// Elements of the weight gradient of up to four experts with rows, the smallest and the largest group among them.
// left [.., n] and right [.., k] have `row_of(r)` as the row of sorted row r; factor_of(r) multiplies it.
template <typename RowOf, typename FactorOf>
Expected weight_gradient(const CellData& d, Gather& gather, const char* part, RowOf row_of, FactorOf factor_of) {
  const Routing& r = d.routing(0);
  std::vector<std::int64_t> experts;
  for (std::int64_t e = 0; e < d.experts; ++e) {
    if (r.size(e) > 0) experts.push_back(e);
  }
  std::sort(experts.begin(), experts.end(), [&](auto a, auto b) { return r.size(a) < r.size(b); });
  Expected expected{part, {}, {}, {}};
  const auto ns = pick(d.n, kGradientSide), ks = pick(d.k, kGradientSide);
  for (std::int64_t which : pick(static_cast<std::int64_t>(experts.size()), 4)) {
    const std::int64_t e = experts[which], first = r.host_offsets[e], rows = r.size(e);
    std::vector<std::int64_t> left, right;
    for (std::int64_t n : ns) {
      for (std::int64_t i = 0; i < rows; ++i) left.push_back(row_of(first + i) * d.n + n);
    }
    for (std::int64_t k : ks) {
      for (std::int64_t i = 0; i < rows; ++i) right.push_back(row_of(first + i) * d.k + k);
    }
    const auto g = gather.elements(d.gradient(0), d.cell->dtype, left);
    const auto x = gather.elements(d.input(0), d.cell->dtype, right);
    for (std::size_t a = 0; a < ns.size(); ++a) {
      for (std::size_t b = 0; b < ks.size(); ++b) {
        double sum = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
          sum += factor_of(first + i) * static_cast<double>(g[a * rows + i]) * static_cast<double>(x[b * rows + i]);
        }
        expected.add(e * d.n + ns[a], ks[b], sum);
      }
    }
  }
  return expected;
}

std::vector<Expected> backward(const CellData& d, Gather& gather) {
  const Routing& r = d.routing(0);
  const auto factor = [&r](std::int64_t a) { return static_cast<double>(r.host_weights[a]); };
  Expected dx{"dx", {}, {}, {}}, dw{"d_routing_weights", {}, {}, {}};
  const auto tokens = pick(d.tokens, 4);
  std::vector<std::int64_t> rows, weights, inputs;
  for (std::int64_t t : tokens) {
    inputs.push_back(t * d.k);
    for (std::int64_t j = 0; j < d.top_k; ++j) {
      rows.push_back(t * d.n);
      weights.push_back(r.host_ids[t * d.top_k + j] * d.weight_stride());
    }
  }
  const auto q = gather.rows_times_weights(d.gradient(0), d.weights(), d.cell->dtype, rows, weights, d.n, d.k);
  const auto x = gather.vectors(d.input(0), d.cell->dtype, inputs, 1, d.k);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    std::vector<double> sum(d.k, 0.0);
    for (std::int64_t j = 0; j < d.top_k; ++j) {
      double inner = 0;
      for (std::int64_t k = 0; k < d.k; ++k) {
        const double value = q[(i * d.top_k + j) * d.k + k];
        sum[k] += factor(tokens[i] * d.top_k + j) * value;
        inner += value * static_cast<double>(x[i * d.k + k]);
      }
      dw.add(tokens[i], j, inner);
    }
    for (std::int64_t k = 0; k < d.k; ++k) dx.add(tokens[i], k, sum[k]);
  }
  Expected d_weight = weight_gradient(
      d, gather, "d_weight", [&](std::int64_t row) { return r.host_row_assignment[row] / d.top_k; },
      [&](std::int64_t row) { return factor(r.host_row_assignment[row]); });
  return {dx, d_weight, dw};
}

std::vector<Expected> permute(const CellData& d, Gather& gather) {
  const Routing& r = d.routing(0);
  Expected expected{"d", {}, {}, {}};
  for (std::int64_t row : pick(d.rows, 32)) {
    const auto x = gather.vectors(d.input(0), d.cell->dtype, {r.host_row_assignment[row] / d.top_k * d.k}, 1, d.k);
    for (std::int64_t k : pick(d.k, 64)) expected.add(row, k, static_cast<double>(x[k]));
  }
  return {expected};
}

std::vector<Expected> unpermute(const CellData& d, Gather& gather) {
  const Routing& r = d.routing(0);
  Expected expected{"d", {}, {}, {}};
  for (std::int64_t t : pick(d.tokens, 16)) {
    std::vector<std::int64_t> starts;
    for (std::int64_t j = 0; j < d.top_k; ++j) starts.push_back(r.host_assignment_row[t * d.top_k + j] * d.k);
    const auto rows = gather.vectors(d.input(0), d.cell->dtype, starts, 1, d.k);
    for (std::int64_t k : pick(d.k, 64)) {
      double sum = 0;
      for (std::int64_t j = 0; j < d.top_k; ++j) {
        sum += static_cast<double>(r.host_weights[t * d.top_k + j]) * static_cast<double>(rows[j * d.k + k]);
      }
      expected.add(t, k, sum);
    }
  }
  return {expected};
}

double relative_error(const Expected& expected, const OutputView& view, Gather& gather) {
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; i < expected.value.size(); ++i) offsets.push_back(view.offset(expected.row[i], expected.column[i]));
  const auto got = gather.elements(view.base, view.type, offsets);
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - expected.value[i], 2);
    norm += std::pow(expected.value[i], 2);
  }
  return std::sqrt(difference / norm);
}

}  // namespace

std::vector<Expected> expected_of(const CellData& d, Gather& gather) {
  const std::string& operation = d.cell->operation;
  if (operation == "grouped_k") {
    const auto same = [](std::int64_t row) { return row; };
    return {weight_gradient(d, gather, "d", same, [](std::int64_t) { return 1.0; })};
  }
  if (operation == "moe_forward") return forward(d, gather);
  if (operation == "moe_backward") return backward(d, gather);
  if (operation == "permute") return permute(d, gather);
  if (operation == "unpermute") return unpermute(d, gather);
  if (operation == "route") return {};
  return grouped(d, gather);
}

std::vector<PartError> measure_error(const Contender& contender, const std::vector<Expected>& expected, const CellData& d,
                                     Gather& gather) {
  for (const OutputView& view : contender.outputs) {
    check(cudaMemsetAsync(view.base, 0xff, static_cast<std::size_t>(view.bytes), d.stream), "poison");
  }
  contender.enqueue(0, d.stream);
  check(cudaStreamSynchronize(d.stream), contender.name.c_str());
  if (contender.exact_error) return {{"indices", contender.exact_error(gather)}};
  std::vector<PartError> errors;
  for (const OutputView& view : contender.outputs) {
    for (const Expected& part : expected) {
      if (part.part == view.part) errors.push_back({part.part, relative_error(part, view, gather)});
    }
  }
  return errors;
}

}  // namespace ggm_bench
