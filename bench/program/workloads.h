// The model layers of workloads.json and the shapes of shapes12.json. CMake writes both tables from these files.
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
  std::int64_t tokens = 0;        // of a seeded shape; layers have theirs from the table of the peers
};

std::span<const Workload> all_workloads();     // the layers
std::span<const Workload> seeded_workloads();  // s1 .. s12
const Workload& find_workload(const std::string& name);

// Size classes of the targets.
enum class SizeClass { one, decode, prefill, train };
SizeClass size_class(const Workload& workload, std::int64_t tokens);
const char* name_of(SizeClass size);

}  // namespace ggm_bench
