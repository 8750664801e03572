// The one kernel that products on CUDA may take, by its name in a table (GGM_KERNELS, docs/kernels.md), while an object lives.
// The library reads it whenever it plans a call, so no other thread may call it meanwhile.
#pragma once

#include <cstdlib>

namespace ggm_test {

// Of the portable family, for either 16-bit type: serves every product.
inline constexpr const char* kTileKernel = "mma_32x128x64";

class Forced {
 public:
  explicit Forced(const char* kernel) { setenv("GGM_KERNELS", kernel, 1); }
  Forced(const Forced&) = delete;
  ~Forced() { unsetenv("GGM_KERNELS"); }
};

}  // namespace ggm_test
