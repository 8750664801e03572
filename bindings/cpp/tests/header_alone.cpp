// Only compiled, never run: ggm.hpp with no header before it, every operation and builder instantiated.
#include "ggm/ggm.hpp"

std::size_t use(const ggm::handle& handle) {
  const ggm::routing_sizes routing{1, 1, 1};
  const ggm::gemm_sizes sizes{1, 1, 1, 1};
  const auto permute = ggm::permute_problem(routing, 1, ggm::type_code<double>::value);
  const auto moe = ggm::moe_problem(routing, 1, 1, ggm::type_code<float>::value, GGM_ORDER_NK);
  return ggm::shared_workspace_bytes(
      handle.route(ggm::route_problem(routing)), handle.permute(permute), handle.unpermute(permute),
      handle.unpermute_backward(permute), handle.grouped_gemm(ggm::masked_problem(sizes, GGM_TYPE_FLOAT32, GGM_ORDER_NK)),
      handle.grouped_gemm(ggm::variable_k_problem(sizes, GGM_TYPE_FLOAT32)),
      handle.grouped_gemm_array(ggm::array_problem(sizes, GGM_TYPE_FLOAT32, GGM_ORDER_MK, GGM_ORDER_NK)),
      handle.moe_forward(moe), handle.moe_backward(moe));
}
