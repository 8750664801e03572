#include "workloads.h"

#include <stdexcept>
#include <vector>

namespace ggm_bench {

std::span<const Workload> all_workloads() {
  static const std::vector<Workload> table = {
#include "workload_table.inc"
  };
  return table;
}

std::span<const Workload> seeded_workloads() {
  static const std::vector<Workload> table = {
#include "seeded_table.inc"
  };
  return table;
}

const Workload& find_workload(const std::string& name) {
  for (const auto table : {all_workloads(), seeded_workloads()}) {
    for (const Workload& workload : table) {
      if (workload.name == name) return workload;
    }
  }
  throw std::runtime_error("workload " + name + " is neither in workloads.json nor in shapes12.json");
}

SizeClass size_class(const Workload& workload, std::int64_t tokens) {
  if (tokens == 1) return SizeClass::one;
  if (tokens <= 256) return SizeClass::decode;
  return tokens == workload.train_tokens ? SizeClass::train : SizeClass::prefill;
}

const char* name_of(SizeClass size) {
  switch (size) {
    case SizeClass::one: return "one";
    case SizeClass::decode: return "decode";
    case SizeClass::prefill: return "prefill";
    case SizeClass::train: return "train";
  }
  return "";
}

}  // namespace ggm_bench
