#include "host/rows.h"

#include "host/groups.h"

namespace ggm::host {
namespace {

// Local expert of an id, or -1.
struct ExpertOf {
  const RouteProblem& problem;
  const std::int32_t* map;
  Faults* faults;

  std::int64_t operator()(std::int64_t id) const {
    LocalExpert found;
    if (!id_in_range(id, problem.experts_total))
      found = outside_id(id);
    else if (map != nullptr)
      found = expert_by_map(map[id], problem.experts);
    else
      found = expert_by_range(id, problem.first_expert, problem.experts);
    if (found.kind == IdKind::bad) faults->add(GGM_FAULT_BAD_ID);
    return found.expert;
  }
};

template <typename T>
void load_weights(const Engine& engine, const RouteProblem& problem, const RoutingWeights& weights, const Rows& rows,
                  std::int64_t begin, std::int64_t end) {
  T* out = static_cast<T*>(rows.row_weight);
  for (std::int64_t r = begin; r < end; ++r) {
    const std::int64_t a = rows.row_assignment[r];
    out[r] = 0;
    if (a >= 0)
      load(engine.family, weights.type, weights.values, a / problem.top_k * weights.ld + a % problem.top_k, 1, out + r);
  }
}

}  // namespace

std::int64_t clamp_tokens(const std::int32_t* num_tokens, std::int64_t tokens, Faults* faults) {
  if (num_tokens == nullptr) return tokens;
  const Clamped kept = clamp_count(*num_tokens, tokens);
  if (kept.changed) faults->add(GGM_FAULT_SIZE_CLAMPED);
  return kept.value;
}

void route_rows(const RouteProblem& problem, const RouteInputs& inputs, std::int32_t* counts, const Rows& rows,
                Faults* faults) {
  const ExpertOf expert_of{problem, inputs.expert_map, faults};
  std::memset(counts, 0, problem.experts * sizeof(*counts));

  // First pass: count, and park each slot's expert in assignment_row.
  std::int64_t a = 0;
  for (std::int64_t t = 0; t < rows.real_tokens; ++t) {
    for (std::int64_t j = 0; j < problem.top_k; ++j, ++a) {
      const std::int64_t expert = expert_of(read_index(problem.id_type, inputs.ids, t * problem.ids_ld + j));
      rows.assignment_row[a] = static_cast<std::int32_t>(expert);
      if (expert >= 0) ++counts[expert];
    }
  }
  const std::int64_t real = a;
  for (; a < problem.assignments; ++a) rows.assignment_row[a] = -1;

  // Counts become the next row of each expert. Sums stay below 2^31: there are no more rows than assignments.
  std::int64_t total = 0;
  for (std::int64_t e = 0; e < problem.experts; ++e) {
    const std::int32_t count = counts[e];
    counts[e] = static_cast<std::int32_t>(total);
    rows.group_offsets[e] = static_cast<std::int32_t>(min64(total, problem.max_rows));
    total += count;
  }
  const std::int64_t kept = min64(total, problem.max_rows);
  rows.group_offsets[problem.experts] = static_cast<std::int32_t>(kept);
  faults->add(GGM_FAULT_ROWS_DROPPED, total - kept);

  for (a = 0; a < real; ++a) {
    const std::int32_t expert = rows.assignment_row[a];
    if (expert < 0) continue;
    const std::int64_t row = counts[expert]++;
    if (row < problem.max_rows) rows.row_assignment[row] = static_cast<std::int32_t>(a);
    rows.assignment_row[a] = row < problem.max_rows ? static_cast<std::int32_t>(row) : -1;
  }
  for (std::int64_t r = kept; r < problem.max_rows; ++r) rows.row_assignment[r] = -1;
}

void check_rows(const RouteProblem& problem, const GivenRows& given, const Rows& rows, Faults* faults) {
  std::int64_t previous = 0;
  for (std::int64_t e = 0; e <= problem.experts; ++e) {
    // Without rows the arrays may be absent.
    const Clamped kept = clamp_offset(given.group_offsets == nullptr ? 0 : given.group_offsets[e], previous, problem.max_rows);
    if (kept.changed) faults->add(GGM_FAULT_BAD_ROUTING);
    previous = kept.value;
    rows.group_offsets[e] = static_cast<std::int32_t>(previous);
  }
  const std::int64_t begin = rows.group_offsets[0], end = rows.group_offsets[problem.experts];
  const std::int64_t real = rows.real_tokens * problem.top_k;
  for (std::int64_t a = 0; a < problem.assignments; ++a) rows.assignment_row[a] = -1;
  for (std::int64_t r = 0; r < problem.max_rows; ++r) {
    rows.row_assignment[r] = -1;
    if (r < begin || r >= end) continue;
    const std::int32_t a = given.row_assignment[r];
    if (a >= 0 && a < real && given.assignment_row[a] == r) {
      rows.row_assignment[r] = a;
      rows.assignment_row[a] = static_cast<std::int32_t>(r);
    } else {
      faults->add(GGM_FAULT_BAD_ROUTING);
    }
  }
}

void prepare_rows(const Engine& engine, const RouteProblem& problem, const RoutingWeights& weights, const Rows& rows) {
  for (std::int64_t r = 0; r < problem.max_rows; ++r) {
    const std::int64_t a = rows.row_assignment[r];
    rows.row_token[r] = a < 0 ? -1 : static_cast<std::int32_t>(a / problem.top_k);
  }
  if (rows.row_weight == nullptr) return;
  if (weights.type == Type::float64)
    load_weights<double>(engine, problem, weights, rows, 0, problem.max_rows);
  else
    load_weights<float>(engine, problem, weights, rows, 0, problem.max_rows);
}

}  // namespace ggm::host
