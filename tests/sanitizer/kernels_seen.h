// Which kernels a program holds and which of them it has launched. The program must link the library statically and with the
// wraps of CMakeLists.txt: the linker sends each registration and each launch of the CUDA runtime through here. So no profiler
// is needed, and it works under compute-sanitizer, which does not say what it saw.
#pragma once

#include <map>
#include <string>

namespace ggm_test {

struct KernelSeen {
  bool own = true;  // false: of CUB, which registers variants that no device uses
  long long launches = 0;
};

// By demangled name, without parameters.
std::map<std::string, KernelSeen> kernels_seen();

}  // namespace ggm_test
