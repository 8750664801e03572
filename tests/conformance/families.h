// Runs a table of random data on every kernel family of one backend: the first within the limits of its reference, the others
// with the very bits of the first. All CUDA families share the kernels for few rows, so 16-bit cases run once more on a tile
// kernel, which has none of them.
#pragma once

#include "support/forced.h"
#include "support/scene.h"

namespace ggm_test {

template <typename Run, typename Case, typename Bits>
void each_family(bool cuda, const std::vector<Case>& cases, Bits bits) {
  std::vector<Handle> handles;
  for (const Backend& backend : backends(cuda)) handles.emplace_back(backend);
  for (const Case& line : cases) {
    const std::string text = line.text();
    if (!case_selected(text)) continue;
    GGM_CASE(text);
    std::vector<std::uint64_t> first;
    for (const Handle& handle : handles) {
      INFO(handle.backend().name);
      Run run(handle, line);
      run.run();
      if (&handle == &handles.front()) {
        run.check();
        first = bits(run);
      } else {
        REQUIRE((bits(run) == first));
      }
    }
    if (!cuda || !is_16bit(line.type)) continue;
    INFO("forced: " << kTileKernel);
    const Forced forced(kTileKernel);
    Run run(handles.front(), line);
    run.run();
    REQUIRE((bits(run) == first));
  }
}

}  // namespace ggm_test
