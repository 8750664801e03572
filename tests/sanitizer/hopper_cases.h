// Calls for a handle of the Hopper family: every wgmma kernel, its kinds of results and of tiles, and one cluster that works on
// many tiles. Few, as the tools are slow.
#pragma once

namespace ggm_test {

void hopper_calls();

}  // namespace ggm_test
