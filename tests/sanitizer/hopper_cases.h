// Calls for a handle of the Hopper family: every wgmma kernel, its kinds of results and of tiles, and one cluster that works on
// many tiles. Few, as the tools are slow.
#pragma once

#include <functional>
#include <string>

namespace ggm_test {

// Those of the parts that are selected: hopper_rows_nk, hopper_rows_kn, hopper_k, hopper_layers_ordered,
// hopper_layers_two_step.
void hopper_calls(const std::function<bool(const std::string&)>& selected);

}  // namespace ggm_test
