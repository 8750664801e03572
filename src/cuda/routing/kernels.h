// The loading functions of this folder's files, joined by load_routing_kernels.
#pragma once

#include "ggm/ggm.h"

namespace ggm::cuda {

ggm_status_t load_route_kernels();
ggm_status_t load_check_kernels();

}  // namespace ggm::cuda
