// The model layers of workloads.json. The table is written by CMake from that file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace ggm_bench {

// One product of a layer: y [rows, n] = x [rows, k] @ W^T, W [n, k].
struct Product {
  std::int64_t n = 0;
  std::int64_t k = 0;
};

struct Workload {
  std::string name;
  Product up;
  Product down;  // n = 0: the workload has the up product alone
  std::int64_t experts = 0;
  std::int64_t top_k = 0;
  std::int64_t train_tokens = 0;  // 0: no train size
};

std::span<const Workload> all_workloads();
const Workload& find_workload(const std::string& name);

// Size classes of the targets.
enum class SizeClass { one, decode, prefill, train };
SizeClass size_class(const Workload& workload, std::int64_t tokens);
const char* name_of(SizeClass size);

}  // namespace ggm_bench
