// One product over groups, from operands to launch: which kernel can serve them, its table of groups, and its launch. The one
// door between the operations and the product kernels.
#pragma once

#include "cuda/device/gemm_call.h"
#include "cuda/gemm/groups.h"
#include "cuda/gemm/wgmma.h"
#include "plan/plan.h"

namespace ggm::cuda {

// A product as the host knows it before anything is launched.
struct Product {
  // `build` and `call` describe the same product. Of the plan's kernels that one will run which can serve these operands and
  // results; all give the same bits. Pointers of `call` to the table are filled in here.
  Product(const ProductKernels& kernels, const GroupBuild& build, const GemmCall& call, const TablePointers& table);

  // Whether there is a table of groups at all.
  bool has_table() const { return kernels.tableless < 0; }
  // Whether its kernel finds its rows by the ids, so that nothing else must.
  bool finds_rows() const { return kernels.tableless >= 0 && build.ids.ids != nullptr; }
  // Whether its kernel relays rows of A, so that `relay` must be filled in, with zero counts.
  bool relays() const { return kernels.wgmma >= 0 && kernels.tableless < 0 && kWgmmaKernels[kernels.wgmma].relayed; }
  TileGrid grid() const;
  // For a step in front that can make the table by the way; not where its order or its groups depend on more than sizes.
  bool has_recipe() const { return has_table() && !build.rows_are_k && build.skip_without == nullptr; }
  TableRecipe recipe() const { return recipe_of(build, grid(), table); }

  ProductKernels kernels;  // without those that cannot serve these operands and results
  GroupBuild build;
  GemmCall call;
  TablePointers table;
  MapSource a, b;
  Relay relay;
};

// Builds the table, unless that is done or there is none, and launches the kernel.
ggm_status_t run_product(const Product& product, bool table_made, const Launch& launch);

// The same for the general groups of ggm_grouped_gemm_array.
ggm_status_t run_array_product(const ProductKernels& kernels, const ArrayBuild& build, GemmCall call,
                               const TablePointers& table, const Launch& launch);

}  // namespace ggm::cuda
