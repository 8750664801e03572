// Plans of the fused operations.
#include "base/status.h"
#include "plan/book.h"
#include "plan/choose.h"
#include "plan/wgmma_table.h"

namespace ggm {
namespace {

// AUTO takes two-step: no row waits for another then. NOTE: a rule here may not look at the number of tokens, or the workspace
// would not be monotone in it.
bool resolve_ordered(const MoeProblem& problem, bool by_tokens) { return by_tokens && problem.combine == GGM_COMBINE_ORDERED; }

// Whether the rows of x for inner products with dy @ W may be copied into sorted order for a wgmma kernel that takes rows in
// order: it has the copy engine fetch them, while rows by tokens are read one by one. Not for few rows (more rows never need
// less workspace, as the rule asks); not where the copy engine cannot read them or the weights anyway; not with the ordered
// combine, whose callers want no tensor of a row for each assignment.
constexpr std::int64_t kSortedRows = 4096;
bool may_sort_for_dots(const MoeProblem& problem) {
  const bool aligned = problem.in_features % 8 == 0 && problem.out_features % 8 == 0 && problem.weight_ld % 8 == 0 &&
                       problem.weight_stride % 8 == 0;
  return problem.wants(GGM_GRADIENT_ROUTING_WEIGHTS) && problem.routing.max_rows >= kSortedRows && aligned &&
         problem.combine != GGM_COMBINE_ORDERED;
}

// Whether rows of dy that lie by tokens are copied into sorted order as well, for that kernel: where the inner products, which
// it hides under the products of another tile, are long beside them, and groups long enough for its tiles (docs/kernels.md).
// The forward never does that, because it promises to hold no row of x for each assignment.
constexpr std::int64_t kShortInner = 4096, kSortedGroup = 256;
bool sorts_for_dx(const MoeProblem& problem) {
  return may_sort_for_dots(problem) && problem.out_features <= kShortInner &&
         problem.routing.max_rows >= kSortedGroup * problem.routing.experts;
}

// The product over the rows of an operand that lies by tokens (gathered) or in sorted rows.
ProductShape row_product(const MoeProblem& problem, bool ordered, bool grouped, std::int64_t columns, std::int64_t inner) {
  ProductShape shape{};
  shape.type = problem.x_type;
  shape.groups = problem.routing.experts;
  shape.rows = shape.max_rows = problem.routing.max_rows;
  shape.ordered = ordered;
  shape.gathered = !grouped;
  shape.columns = columns;
  shape.inner = inner;
  return shape;
}

// The window that relayed rows of x pass through: at most so many bytes, most of which stay in L2; rows begin at whole lines of
// memory.
constexpr std::int64_t kWindowBytes = std::int64_t{32} << 20, kLine = 128;
std::int64_t window_ld_bytes(const MoeProblem& problem) {
  return ceil_div(problem.in_features * bytes_of(problem.x_type), kLine) * kLine;
}
std::int64_t most_window_rows(const MoeProblem& problem) {
  return kWindowBytes / window_ld_bytes(problem) / kRelayChunk * kRelayChunk;
}

// Not where the window would hold so few rows that tiles wait for each other, where the copy engine cannot read rows, or under
// the ordered combine, whose callers want little memory.
constexpr std::int64_t kLeastWindowRows = 1024;
constexpr std::int64_t kMostRelayColumns = 1 << 20;  // a chunk's count of used rows, once for each left tile, has 32 bits
static_assert(kWindowBytes / kLeastWindowRows <= kRelayPieces * kRelayPieceBytes, "a block copies whole rows");
bool may_relay(const MoeProblem& problem) {
  return !problem.input_grouped && problem.combine != GGM_COMBINE_ORDERED && is_16bit(problem.x_type) &&
         problem.in_features > 0 && problem.in_features % 8 == 0 && problem.out_features < kMostRelayColumns &&
         most_window_rows(problem) >= kLeastWindowRows;
}

// NOTE: no deadlock: a tile waits for whole chunks, a chunk for the one that lay in its place. A part's rows, with the chunks
// that it begins and ends in, fit into the window.
RelayPlan book_relay(const MoeProblem& problem, Ledger* ledger) {
  RelayPlan relay;
  const std::int64_t rows = problem.routing.max_rows;
  relay.chunks = ceil_div(rows, kRelayChunk);
  relay.window_rows = min64(most_window_rows(problem), relay.chunks * kRelayChunk);
  relay.part_rows = relay.window_rows < rows ? relay.window_rows / 2 - kRelayChunk : relay.window_rows;
  relay.pieces = static_cast<int>(ceil_div(problem.in_features * bytes_of(problem.x_type), kRelayPieceBytes));
  while (2 * relay.batch_rows * relay.pieces <= kRelayPieces) relay.batch_rows *= 2;
  relay.ld_bytes = window_ld_bytes(problem);
  relay.window = ledger->book(Checked(relay.window_rows + kRelayTail), relay.ld_bytes);
  relay.counts = ledger->book(Checked(relay.chunks) + Checked(1), 8);
  return relay;
}

// Into a result [tokens, columns] whose products have an inner dimension of `inner`.
struct CombineShape {
  std::int64_t columns, inner;
  Type product, result;
};

// The ordered combine of a result that is narrower than its float32 sum: how many columns go through the product at a time, so
// that what all rows have of these fits into the bytes of the sum, in whole left tiles of the kernels. A pass sums them behind
// each product, and no row waits for its turn. 0: rows add in turn, where not even one tile's columns fit or the work of a part
// is short beside the three launches that each takes.
// NOTE: regions are booked alike in both cases, so a rule here may look at the number of tokens.
constexpr std::int64_t kPartColumns = 256;
constexpr double kLongPart = 1.6e10;  // products: some 60 us on an H200
std::int64_t part_columns(const MoeProblem& problem, const CombineShape& shape, const Region& sums) {
  const std::int64_t rows = problem.routing.max_rows;
  if (sums.bytes == 0 || rows == 0 || shape.columns == 0) return 0;
  const std::int64_t fit = sums.bytes / bytes_of(shape.product) / rows;
  if (fit >= shape.columns) return shape.columns;
  const std::int64_t part = fit / kPartColumns * kPartColumns;
  const double products = static_cast<double>(rows) * static_cast<double>(part) * static_cast<double>(shape.inner);
  return products >= kLongPart ? part : 0;
}

CombinePlan plan_combine(const MoeProblem& problem, const CombineShape& shape, bool by_tokens, const Device& device,
                         Ledger* ledger) {
  CombinePlan plan;
  plan.ordered = resolve_ordered(problem, by_tokens);
  if (!by_tokens) return plan;
  if (!plan.ordered) {
    plan.products = ledger->book(Checked(problem.routing.max_rows) * Checked(shape.columns), bytes_of(shape.product));
    return plan;
  }
  const Type accumulator = accumulator_of(problem.x_type);
  const Checked tokens = problem.routing.tokens;
  if (shape.result != accumulator) plan.sums = ledger->book(tokens * Checked(shape.columns), bytes_of(accumulator));
  if (device.backend != BackendKind::cuda) return plan;
  plan.turns = ledger->book(tokens * Checked(ceil_div(shape.columns, kTurnColumns)), 2);
  plan.part_columns = part_columns(problem, shape, plan.sums);
  return plan;
}

// A copy of rows in sorted order: in the bytes of a region that is done with by then, where they suffice.
Region book_sorted(const MoeProblem& problem, std::int64_t features, Type type, const Region& done, Ledger* ledger) {
  const Checked elements = Checked(problem.routing.max_rows) * Checked(features);
  const Checked bytes = elements * Checked(bytes_of(type));
  if (!bytes.overflow && bytes.value <= done.bytes) return {done.offset, bytes.value};
  return ledger->book(elements, bytes_of(type));
}

// Whether the weight gradient may run on a wgmma kernel, whose copy engine wants both operands in sorted rows of whole 16
// bytes, all of them with an assignment. Copies are made where the caller's rows lie by tokens; not with the ordered combine,
// whose callers want no tensor of a row for each assignment. Sorted rows of the caller's own have no unused ones inside a group
// when the library made the routing; they cannot be scaled in place.
bool sorts_for_gradient(const MoeProblem& problem) {
  const bool routed = problem.routing.id_type != IndexType::none;
  const bool x = !problem.input_grouped || routed;
  const bool dy = !problem.output_grouped || (routed && problem.routing_weight_type == Type::none);
  const bool aligned = problem.in_features % 8 == 0 && problem.out_features % 8 == 0;
  return x && dy && aligned && problem.combine != GGM_COMBINE_ORDERED;
}

// Whether the rows of dy are scaled in a pass of their own before the weight gradient: that costs less than scaling them again
// in every tile. Not with the ordered combine, whose callers want no tensor of a row for each assignment; nor for dy in sorted
// rows, whose caller has such a tensor and would pay for a second one; nor for float32, whose products are slower than that
// anyway.
bool scales_dy_before(const MoeProblem& problem, const Device& device) {
  return device.backend == BackendKind::cuda && is_16bit(problem.x_type) && problem.combine != GGM_COMBINE_ORDERED &&
         !problem.output_grouped && problem.routing_weight_type != Type::none;
}

}  // namespace

ggm_status_t make_plan(const MoeProblem& problem, const Device& device, MoeForwardPlan* plan) {
  *plan = MoeForwardPlan{};
  Ledger ledger;
  const bool cuda = device.backend == BackendKind::cuda;
  const bool by_tokens = !problem.output_grouped;
  plan->multiprocessors = limited_multiprocessors(device, problem.sm_limit);
  const CombineShape y{problem.out_features, problem.in_features, problem.forward_product_type, problem.y_type};
  plan->combine = plan_combine(problem, y, by_tokens, device, &ledger);
  plan->rows = book_rows(problem.routing, problem.routing_weight_type, cuda && plan->combine.ordered, &ledger);
  if (problem.routing.id_type != IndexType::none) plan->scratch = book_sort(problem.routing, device, &ledger);
  plan->table = book_groups(problem.routing.experts, device, &ledger);
  if (cuda) {
    const std::int64_t columns = plan->combine.columns_at_a_time(problem.out_features);
    ProductShape shape = row_product(problem, plan->combine.in_turn(), problem.input_grouped, columns, problem.in_features);
    shape.plain = by_tokens && problem.bias_type == Type::none;
    shape.may_relay = may_relay(problem);
    GGM_TRY(choose_kernels(shape, device, plan->multiprocessors, &plan->kernels));
    if (plan->kernels.wgmma >= 0 && kWgmmaKernels[plan->kernels.wgmma].relayed) plan->relay = book_relay(problem, &ledger);
  }
  plan->host_scratch = book_host_scratch(problem.x_type, device, &ledger);
  return close_ledger(ledger, &plan->workspace_bytes);
}

ggm_status_t make_plan(const MoeProblem& problem, const Device& device, MoeBackwardPlan* plan) {
  *plan = MoeBackwardPlan{};
  Ledger ledger;
  const bool cuda = device.backend == BackendKind::cuda;
  const bool dx = problem.wants(GGM_GRADIENT_X), dw = problem.wants(GGM_GRADIENT_ROUTING_WEIGHTS);
  const bool by_tokens = dx && !problem.input_grouped;
  plan->multiprocessors = limited_multiprocessors(device, problem.sm_limit);
  const CombineShape dx_shape{problem.in_features, problem.out_features, problem.backward_product_type, problem.dx_type};
  plan->combine = plan_combine(problem, dx_shape, by_tokens, device, &ledger);
  plan->rows = book_rows(problem.routing, problem.routing_weight_type, cuda && plan->combine.ordered, &ledger);
  if (problem.routing.id_type != IndexType::none) plan->scratch = book_sort(problem.routing, device, &ledger);
  if (dx || dw) {
    if (cuda) {
      const std::int64_t columns = plan->combine.columns_at_a_time(problem.in_features);
      ProductShape shape = row_product(problem, plan->combine.in_turn(), problem.output_grouped, columns, problem.out_features);
      shape.may_sort = sorts_for_dx(problem);
      shape.plain = by_tokens && !dw;
      GGM_TRY(choose_kernels(shape, device, plan->multiprocessors, &plan->dx_kernels));
    }
    plan->dx_table = book_groups(problem.routing.experts, device, &ledger);
    const int wgmma = plan->dx_kernels.wgmma;
    const bool in_order = wgmma >= 0 && !kWgmmaKernels[wgmma].takes_list();
    if (!problem.output_grouped && in_order)
      plan->sorted_dy = book_sorted(problem, problem.out_features, problem.dy_type, Region{}, &ledger);
    plan->dots_of_sorted_x = dw && !problem.input_grouped && in_order && may_sort_for_dots(problem);
    if (plan->dots_of_sorted_x) plan->sorted_x = book_sorted(problem, problem.in_features, problem.x_type, Region{}, &ledger);
  }
  if (dw) {
    const Checked blocks = ceil_div(problem.in_features, kDotColumns);
    plan->dots = ledger.book(Checked(problem.routing.max_rows) * blocks, bytes_of(accumulator_of(problem.x_type)));
  }
  if (problem.wants(GGM_GRADIENT_WEIGHT)) {
    if (cuda) {
      ProductShape shape{};
      shape.type = problem.x_type;
      shape.groups = problem.routing.experts;
      shape.max_rows = problem.weight_order == Order::inner_contiguous ? problem.out_features : problem.in_features;
      shape.rows = shape.max_rows * shape.groups;  // below 2^31 * 2^16
      shape.variable_k = true;
      shape.portable = !sorts_for_gradient(problem);
      GGM_TRY(choose_kernels(shape, device, plan->multiprocessors, &plan->d_weight_kernels));
    }
    plan->d_weight_table = book_groups(problem.routing.experts, device, &ledger);
    const bool sorts = plan->d_weight_kernels.wgmma >= 0;
    if (scales_dy_before(problem, device) || (sorts && !problem.output_grouped)) {
      const Region& done = plan->sorted_dy.bytes > 0 ? plan->sorted_dy : sorts ? Region{} : plan->combine.products;
      plan->scaled_dy = book_sorted(problem, problem.out_features, problem.dy_type, done, &ledger);
    }
    if (sorts && !problem.input_grouped && !plan->dots_of_sorted_x)
      plan->sorted_x = book_sorted(problem, problem.in_features, problem.x_type, plan->combine.products, &ledger);
  }
  plan->host_scratch = book_host_scratch(problem.x_type, device, &ledger);
  return close_ledger(ledger, &plan->workspace_bytes);
}

}  // namespace ggm
