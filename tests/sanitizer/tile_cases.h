// Calls in which one block works on many tiles: what a block does between two of them is where the copies of one tile and the
// results of another lie side by side. Under a limit of one multiprocessor there is one block (launch.cu), so that it is seen
// on any card.
#pragma once

namespace ggm_test {

void many_tiles();

}  // namespace ggm_test
