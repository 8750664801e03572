#include "cuda/gemm/product.h"

#include "base/status.h"
#include "cuda/gemm/gemm.h"
#include "cuda/gemm/tableless.h"

namespace ggm::cuda {
namespace {

MapSource map_source(const GroupBuild& build, const GroupOperand& operand, std::int64_t inner, std::int64_t rows, Type type) {
  MapSource source;
  source.base = operand.base;
  source.type = type;
  source.inner = inner;
  source.rows = rows;
  source.ld_bytes = operand.ld * bytes_of(type);
  source.by_group = operand.group_bytes != 0;
  source.groups = source.by_group ? build.group_count : 1;
  source.group_bytes = operand.group_bytes;
  source.divided = operand.row_bytes != 0;
  source.ends_with_group = build.rows_are_k;
  return source;
}

MapSource map_a(const GroupBuild& build, const GemmCall& call) {
  return map_source(build, build.a, build.rows_are_k ? build.m : build.k, build.rows, call.type);
}

MapSource map_b(const GroupBuild& build, const GemmCall& call) {
  const bool k_inside = !build.rows_are_k && call.b_order == Order::inner_contiguous;
  const std::int64_t rows = build.rows_are_k ? build.rows : k_inside ? build.n : build.k;
  return map_source(build, build.b, k_inside ? build.k : build.n, rows, call.type);
}

// Groups of the rows that K runs over have a matrix of results each.
MapSource map_d(const GroupBuild& build, const GemmCall& call) {
  MapSource source = map_source(build, build.d, build.n, build.rows_are_k ? build.m : build.rows, call.epilogue.d_type);
  source.ends_with_group = false;
  return source;
}

// Whether rows of the matrix begin anywhere, not at multiples of 16 bytes alone.
bool unaligned(const MapSource& source) {
  const std::uint64_t bits = reinterpret_cast<std::uint64_t>(source.base) | static_cast<std::uint64_t>(source.ld_bytes) |
                             static_cast<std::uint64_t>(source.by_group ? source.group_bytes : 0);
  return bits % 16 != 0;
}

void use_table(const TablePointers& table, std::int64_t groups, GemmCall* call) {
  call->groups = table.groups;
  call->tile_offsets = table.tile_offsets;
  call->tile_counter = table.tile_counter;
  call->group_count = static_cast<std::int32_t>(groups);
}

}  // namespace

Product::Product(const ProductKernels& plan, const GroupBuild& groups, const GemmCall& kernel_call,
                 const TablePointers& pointers)
    : kernels(plan), build(groups), call(kernel_call), table(pointers), a(map_a(groups, call)), b(map_b(groups, call)) {
  use_table(table, build.group_count, &call);
  if (a.obstacle() != nullptr || b.obstacle() != nullptr) {
    kernels.wgmma = -1;
    kernels.tableless = -1;
  }
  if (kernels.tableless >= 0 && tableless_obstacle(build, call) != nullptr) kernels.tableless = -1;
}

TileGrid Product::grid() const {
  if (kernels.wgmma < 0) return kGemmKernels[kernels.portable];
  return kWgmmaKernels[kernels.wgmma];
}

ggm_status_t run_product(const Product& product, bool table_made, const Launch& launch) {
  const ProductKernels& kernels = product.kernels;
  const MapSource &a = product.a, &b = product.b;
  // Without offsets that the library has just made.
  const bool first = product.build.source != RowSource::row_offsets || product.finds_rows();
  if (kernels.tableless >= 0)
    return launch_tableless(kernels.tableless, product.build, product.call, first ? launch : behind(launch));
  if (!table_made) GGM_TRY(build_groups(product.build, product.grid(), product.table, first ? launch : behind(launch)));
  if (kernels.wgmma < 0) return launch_gemm(kernels.portable, product.call, unaligned(a) && unaligned(b), behind(launch));
  return launch_wgmma(kernels.wgmma, product.call, a, b, map_d(product.build, product.call), product.relay, behind(launch));
}

ggm_status_t run_array_product(const ProductKernels& kernels, const ArrayBuild& build, GemmCall call,
                               const TablePointers& table, const Launch& launch) {
  use_table(table, build.group_count, &call);
  GGM_TRY(build_array_groups(build, kGemmKernels[kernels.portable], table, launch));
  if (build.max_m == 0 || build.max_n == 0) return GGM_STATUS_SUCCESS;
  return launch_gemm(kernels.portable, call, false, behind(launch));
}

}  // namespace ggm::cuda
