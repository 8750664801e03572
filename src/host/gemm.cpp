// The bare grouped products: contiguous, masked and variable K.
#include "host/backend.h"
#include "host/groups.h"
#include "host/product.h"
#include "host/rows.h"

namespace ggm::host {
namespace {

// Groups of a ggm_grouped_gemm as products.
struct GemmWalk {
  const GemmProblem& problem;
  const ggm_grouped_gemm_tensors_t& tensors;
  const std::int32_t* sorted_rows;  // memory row of each sorted row (row_group form), else nullptr
  GroupWalk groups;

  bool next(Product* product) {
    GroupRange range;
    if (!groups.next(&range)) return false;
    *product = Product{};
    product->a.type = problem.a_type;
    product->b.type = problem.b_type;
    product->a.ld = problem.lda;
    product->b.ld = problem.ldb;
    product->ldc = problem.ldc;
    product->ldd = problem.ldd;
    product->n = problem.n;
    product->a.data = tensors.a;
    product->b.data = tensors.b;
    product->c = tensors.c;
    product->d = tensors.d;
    if (problem.layout == Layout::variable_k)
      set_variable_k(range, product);
    else
      set_rows(range, product);
    return true;
  }

 private:
  void set_rows(const GroupRange& range, Product* p) const {
    p->m = range.count;
    p->k = problem.k;
    if (p->m == 0 || p->n == 0) return;  // addresses of an empty group are not formed
    p->b.order = problem.b_order;
    if (p->k > 0) p->b.data = element(tensors.b, problem.b_type, range.group * problem.stride_b);
    if (sorted_rows != nullptr) {
      p->a.rows = p->cd_rows = sorted_rows + range.first;
      return;
    }
    // Masked groups start at their own row 0, contiguous ones have strides of 0.
    if (p->k > 0) p->a.data = element(tensors.a, problem.a_type, range.group * problem.stride_a + range.first * problem.lda);
    if (tensors.c != nullptr)
      p->c = element(tensors.c, problem.c_type, range.group * problem.stride_c + range.first * problem.ldc);
    p->d = element(tensors.d, problem.d_type, range.group * problem.stride_d + range.first * problem.ldd);
  }

  void set_variable_k(const GroupRange& range, Product* p) const {
    p->m = problem.m;
    p->k = range.count;
    if (p->m == 0 || p->n == 0) return;
    p->a.order = p->b.order = Order::inner_strided;
    if (tensors.c != nullptr) p->c = element(tensors.c, problem.c_type, range.group * problem.stride_c);
    p->d = element(tensors.d, problem.d_type, range.group * problem.stride_d);
    if (p->k == 0) return;
    if (sorted_rows != nullptr) {
      p->a.rows = p->b.rows = sorted_rows + range.first;
      return;
    }
    p->a.data = element(tensors.a, problem.a_type, range.first * problem.lda);
    p->b.data = element(tensors.b, problem.b_type, range.first * problem.ldb);
  }
};

// The row_group form becomes offsets of rows sorted by group; invalid entries are left out.
Rows sort_row_groups(const GemmProblem& problem, const GemmPlan& plan, const void* row_group, void* workspace, Faults* faults) {
  const RouteProblem routing = routing_of_rows(problem);
  Rows rows(plan.rows, workspace);
  rows.real_tokens = routing.tokens;
  route_rows(routing, {row_group, nullptr}, plan.scratch.counts.at<std::int32_t>(workspace), rows, faults);
  return rows;
}

GroupSource group_source(const GemmProblem& problem, const ggm_grouped_gemm_tensors_t& tensors, const Rows& sorted) {
  GroupSource source;
  source.groups = problem.groups;
  source.rows = problem.rows();
  if (problem.group_form == GroupForm::row_group) {
    source.form = GroupForm::offsets;
    source.offsets = sorted.group_offsets;
    return source;
  }
  source.form = problem.group_form;
  source.type = problem.index_type;
  source.sizes = tensors.group_sizes;
  source.offsets = tensors.group_offsets;
  source.own_rows = problem.layout == Layout::masked;
  return source;
}

// +0.0 to rows first .. first + count - 1 of the D that starts at element `base`.
void zero_rows(const Engine& engine, const GemmProblem& problem, void* d, std::int64_t base, std::int64_t first,
               std::int64_t count, int limit) {
  if (count <= 0 || problem.n == 0) return;
  engine.pool.for_ranges(threads_for(work_of(count, problem.n), limit), count, 64,
                         [&](std::int64_t begin, std::int64_t end, int) {
                           for (std::int64_t r = begin; r < end; ++r)
                             store_zeros(problem.d_type, d, base + (first + r) * problem.ldd, problem.n);
                         });
}

// Rows of D that no group covers. `walk` counts faults, so it runs whether or not there is anything to zero.
void settle_unused_rows(const Engine& engine, const GemmProblem& problem, const GemmPlan& plan, void* d, const Rows& sorted,
                        GroupWalk walk, void* workspace) {
  const int limit = plan.multiprocessors;
  const bool zero = !problem.keep_unused_rows && problem.layout != Layout::variable_k;
  auto* used = plan.row_used.at<std::uint8_t>(workspace);
  if (used != nullptr && zero) std::memset(used, 0, problem.m);
  GroupRange range;
  std::int64_t begin = -1, end = 0;
  while (walk.next(&range)) {
    if (begin < 0) begin = range.first;
    end = range.first + range.count;
    if (!zero) continue;
    if (problem.layout == Layout::masked)
      zero_rows(engine, problem, d, range.group * problem.stride_d, end, problem.m - end, limit);
    else if (used != nullptr && range.count > 0)
      std::memset(used + range.first, 1, range.count);
  }
  if (!zero || problem.layout == Layout::masked) return;
  if (problem.group_form == GroupForm::row_group) {
    for (std::int64_t r = 0; r < problem.m; ++r)
      if (sorted.assignment_row[r] < 0) store_zeros(problem.d_type, d, r * problem.ldd, problem.n);
  } else if (used != nullptr) {
    for (std::int64_t r = 0; r < problem.m; ++r)
      if (used[r] == 0) store_zeros(problem.d_type, d, r * problem.ldd, problem.n);
  } else {
    zero_rows(engine, problem, d, 0, 0, max64(begin, 0), limit);
    zero_rows(engine, problem, d, 0, end, problem.m - end, limit);
  }
}

// Groups of a ggm_grouped_gemm_array as products.
struct ArrayWalk {
  const GemmArrayProblem& problem;
  const ggm_grouped_gemm_array_tensors_t& tensors;
  Faults* faults;
  std::int64_t group = 0;

  bool next(Product* product) {
    if (group == problem.groups) return false;
    *product = Product{};
    const std::int64_t g = group++;
    bool clamped = false;
    product->m = size(tensors.m, g, problem.max_m, &clamped);
    product->n = size(tensors.n, g, problem.max_n, &clamped);
    product->k = size(tensors.k, g, problem.max_k, &clamped);
    if (clamped && faults != nullptr) faults->add(GGM_FAULT_SIZE_CLAMPED);
    if (product->m == 0 || product->n == 0) return true;
    const bool a_inner = problem.a_order == Order::inner_contiguous, b_inner = problem.b_order == Order::inner_contiguous;
    bool aligned = true;
    if (product->k > 0) {
      set_operand(&product->a, problem.a_type, problem.a_order, tensors.a[g], tensors.lda, g, a_inner ? product->k : product->m,
                  &aligned);
      set_operand(&product->b, problem.b_type, problem.b_order, tensors.b[g], tensors.ldb, g, b_inner ? product->k : product->n,
                  &aligned);
    }
    product->ldd = leading(tensors.ldd, g, product->n);
    product->d = tensors.d[g];
    check(product->d, product->ldd, problem.d_type, &aligned);
    if (problem.beta != 0) {
      product->ldc = leading(tensors.ldc, g, product->n);
      product->c = tensors.c[g];
      check(product->c, product->ldc, problem.c_type, &aligned);
    }
    if (!aligned) {
      if (faults != nullptr) faults->add(GGM_FAULT_MISALIGNED_GROUP);
      product->m = 0;
    }
    return true;
  }

 private:
  std::int64_t size(const void* array, std::int64_t g, std::int64_t bound, bool* clamped) const {
    if (array == nullptr) return bound;
    const Clamped kept = clamp_count(read_index(problem.index_type, array, g), bound);
    *clamped |= kept.changed;
    return kept.value;
  }
  std::int64_t leading(const void* array, std::int64_t g, std::int64_t packed) const {
    return array == nullptr ? packed : read_index(problem.index_type, array, g);
  }
  void check(const void* pointer, std::int64_t ld, Type type, bool* aligned) const {
    const auto need = static_cast<std::uintptr_t>(max64(problem.min_alignment, bytes_of(type)));
    const auto ld_bytes = static_cast<std::uintptr_t>(ld) * static_cast<std::uintptr_t>(bytes_of(type));
    *aligned &= reinterpret_cast<std::uintptr_t>(pointer) % need == 0 && ld_bytes % need == 0;
  }
  void set_operand(Operand* x, Type type, Order order, const void* pointer, const void* ld, std::int64_t g, std::int64_t packed,
                   bool* aligned) const {
    x->data = pointer;
    x->type = type;
    x->order = order;
    x->ld = leading(ld, g, packed);
    check(pointer, x->ld, type, aligned);
  }
};

template <typename T>
void run_gemm(const Engine& engine, const GemmProblem& problem, const GemmPlan& plan, const ggm_grouped_gemm_tensors_t& tensors,
              void* workspace) {
  Faults faults;
  Rows sorted;
  const bool by_row = problem.group_form == GroupForm::row_group;
  if (by_row) sorted = sort_row_groups(problem, plan, tensors.row_group, workspace, &faults);
  const GroupSource source = group_source(problem, tensors, sorted);
  settle_unused_rows(engine, problem, plan, tensors.d, sorted, GroupWalk(source, &faults), workspace);
  const GemmWalk walk{problem, tensors, by_row ? sorted.row_assignment : nullptr, GroupWalk(source, nullptr)};
  run_products<T>(engine, plan.multiprocessors, plan.host_scratch.at<void>(workspace), walk,
                  StoreEpilogue{problem.alpha, problem.beta, problem.c_type, problem.d_type});
  faults.deliver(tensors.faults);
}

template <typename T>
void run_gemm_array(const Engine& engine, const GemmArrayProblem& problem, const GemmPlan& plan,
                    const ggm_grouped_gemm_array_tensors_t& tensors, void* workspace) {
  Faults faults;
  Product product;
  for (ArrayWalk checking{problem, tensors, &faults}; checking.next(&product);) continue;
  run_products<T>(engine, plan.multiprocessors, plan.host_scratch.at<void>(workspace), ArrayWalk{problem, tensors, nullptr},
                  StoreEpilogue{problem.alpha, problem.beta, problem.c_type, problem.d_type});
  faults.deliver(tensors.faults);
}

}  // namespace

ggm_status_t HostBackend::grouped_gemm(const GemmProblem& problem, const GemmPlan& plan,
                                       const ggm_grouped_gemm_tensors_t& tensors, void* workspace, ggm_stream_t) {
  if (problem.a_type == Type::float64)
    run_gemm<double>(engine_, problem, plan, tensors, workspace);
  else
    run_gemm<float>(engine_, problem, plan, tensors, workspace);
  return GGM_STATUS_SUCCESS;
}

ggm_status_t HostBackend::grouped_gemm_array(const GemmArrayProblem& problem, const GemmPlan& plan,
                                             const ggm_grouped_gemm_array_tensors_t& tensors, void* workspace, ggm_stream_t) {
  if (problem.a_type == Type::float64)
    run_gemm_array<double>(engine_, problem, plan, tensors, workspace);
  else
    run_gemm_array<float>(engine_, problem, plan, tensors, workspace);
  return GGM_STATUS_SUCCESS;
}

}  // namespace ggm::host
