// What the memory gives in this run: copies (the driver's, a kernel's) and a read of 4096 MiB.
#pragma once

#include <vector>

#include "contender.h"

namespace ggm_bench {

struct Bandwidth {
  Contender contender;
  double bytes = 0;
};
std::vector<Bandwidth> bandwidth_contenders(Buffers& buffers, cudaStream_t stream);

}  // namespace ggm_bench
