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
  // `build` and `call` describe the same product. The plan's wgmma kernel will run when the copy engine can read the operands,
  // else the portable one; both give the same bits. Pointers of `call` to the table are filled in here.
  Product(const ProductKernels& kernels, const GroupBuild& build, const GemmCall& call, const TablePointers& table);

  TileGrid grid() const;
  // For a step in front that can make the table by the way; not where its order or its groups depend on more than sizes.
  bool has_recipe() const { return !build.rows_are_k && build.skip_without == nullptr; }
  TableRecipe recipe() const { return recipe_of(build, grid(), table); }

  ProductKernels kernels;  // wgmma: -1 where the copy engine cannot read the operands
  GroupBuild build;
  GemmCall call;
  TablePointers table;
  MapSource a, b;
};

// Builds the table, unless that is done, and launches the kernel.
ggm_status_t run_product(const Product& product, bool table_made, const Launch& launch);

// The same for the general groups of ggm_grouped_gemm_array.
ggm_status_t run_array_product(const ProductKernels& kernels, const ArrayBuild& build, GemmCall call,
                               const TablePointers& table, const Launch& launch);

}  // namespace ggm::cuda
