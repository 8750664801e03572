// The library with its choice of kernels restricted. The portable kernels have a handle of their own. For one kernel alone
// there is the variable GGM_KERNELS, which is read when a call is planned: it is set around the making of a contender and
// around each of its calls, and a captured graph keeps what was planned.
#include <cstdlib>

#include "contender.h"
#include "plan/kernel_table.h"
#include "plan/tableless_table.h"
#include "plan/wgmma_table.h"

namespace ggm_bench {

namespace {

constexpr const char* kVariable = "GGM_KERNELS";

class KernelsVariable {
 public:
  explicit KernelsVariable(const std::string& value) {
    if (const char* now = std::getenv(kVariable)) before_ = now, was_set_ = true;
    setenv(kVariable, value.c_str(), 1);
  }
  ~KernelsVariable() {
    if (was_set_) {
      setenv(kVariable, before_.c_str(), 1);
    } else {
      unsetenv(kVariable);
    }
  }
  KernelsVariable(const KernelsVariable&) = delete;
  KernelsVariable& operator=(const KernelsVariable&) = delete;

 private:
  std::string before_;
  bool was_set_ = false;
};

std::vector<Contender> of_library(const Context& context) {
  std::vector<Contender> made = ggm_products(context);
  return made.empty() ? ggm_moe(context) : made;
}

// A library that does not read the variable would be measured against itself.
void require_variable(const Context& context) {
  const KernelsVariable variable("no such kernel");
  try {
    of_library(context);
  } catch (const std::exception&) {
    return;
  }
  throw std::runtime_error(
      "the library plans products with GGM_KERNELS = \"no such kernel\", so it does not read the variable");
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  for (const auto& row : ggm::kGemmKernels) names.push_back(row.name);
  for (const auto& row : ggm::kWgmmaKernels) names.push_back(row.name);
  for (const auto& row : ggm::kTablelessKernels) names.push_back(row.name);
  return names;
}

// Those of `made` that are compared, under another name; the ordered combine has no twin.
std::vector<Contender> renamed(std::vector<Contender> made, const std::string& name) {
  std::erase_if(made, [](const Contender& c) { return c.combine == "ordered"; });
  for (Contender& c : made) {
    c.name = name;
    c.baseline = true;
  }
  return made;
}

// With one kernel of the table alone.
std::vector<Contender> forced(const Context& context, const std::string& kernel) {
  const KernelsVariable variable(kernel);
  std::vector<Contender> made = renamed(of_library(context), "ggm:" + kernel);
  for (Contender& c : made) {
    c.enqueue = [kernel, inner = std::move(c.enqueue)](int set, cudaStream_t stream) {
      const KernelsVariable during(kernel);
      inner(set, stream);
    };
  }
  return made;
}

bool compared(const Cell& cell) {
  const std::string& o = cell.operation;
  const bool large = cell.size() == SizeClass::train || cell.size() == SizeClass::prefill;
  return large && (o == "grouped" || o == "grouped_k" || o == "moe_forward" || o == "moe_backward");
}

}  // namespace

std::vector<Contender> ggm_portable(const Context& context) {
  if (!compared(*context.data.cell)) return {};
  return renamed(of_library({context.data, context.portable, context.cublas, context.portable}), "ggm-portable");
}

std::vector<Contender> ggm_forced_rows(const Context& context) {
  std::vector<Contender> all;
  if (!compared(*context.data.cell)) return all;
  require_variable(context);
  for (const std::string& name : kernel_names()) {
    try {
      for (Contender& c : forced(context, name)) all.push_back(std::move(c));
    } catch (const std::exception&) {
      // The library refuses a row of another arithmetic: it is no way to do the cell.
    }
  }
  return all;
}

}  // namespace ggm_bench
