// Whether the tables of the conformance suite reach every row of the kernel tables in every layout, order, combine and type. On
// the host with the plan of faked devices; on a GPU by what the library says (GGM_LOG_PLAN) while the tables run.
#include <algorithm>
#include <cstring>
#include <set>

#include "conformance/array_case.h"
#include "conformance/gemm_case.h"
#include "conformance/moe_case.h"
#include "plan/plan.h"
#include "plan/tableless_table.h"
#include "plan/wgmma_table.h"

using namespace ggm_test;

namespace {

// "moe_forward bf16 nk ordered: mma_128x128x32"
using Launched = std::set<std::string>;

std::string order_name(std::int32_t order) { return order == GGM_ORDER_NK ? "nk" : "kn"; }

// Lines with the name of every portable kernel of this type that the device can run.
void add_portable(const ggm::Device& device, std::int32_t type, const std::vector<std::string>& heads, Launched* all) {
  for (const ggm::GemmKernel& kernel : ggm::kGemmKernels) {
    if (kernel.min_capability > device.capability || kernel.shared_bytes > device.shared_memory_bytes) continue;
    if (ggm::math_of(static_cast<ggm::Type>(type)) != kernel.math) continue;
    for (const std::string& head : heads) all->insert(head + ": " + kernel.name);
  }
}

// Lines with the wgmma kernels of products over rows: `heads` with rows in order, `gathered` with rows through a list,
// `relayed` with rows through a window.
void add_wgmma(const std::vector<std::string>& heads, const std::vector<std::string>& gathered,
               const std::vector<std::string>& relayed, Launched* all) {
  for (const ggm::WgmmaKernel& kernel : ggm::kWgmmaKernels) {
    if (kernel.over_k) continue;
    for (const std::string& head : kernel.relayed ? relayed : kernel.gathered ? gathered : heads)
      all->insert(head + ": " + kernel.name);
  }
}

// Lines with the kernels for few rows.
void add_tableless(const std::vector<std::string>& heads, Launched* all) {
  for (const ggm::TablelessKernel& kernel : ggm::kTablelessKernels)
    for (const std::string& head : heads) all->insert(head + ": " + kernel.name);
}

// What must have been launched: every kernel that the device can run, for every type of its math.
Launched required(const ggm::Device& device) {
  Launched all;
  for (const std::int32_t type : kFloatTypes) {
    const std::string head = std::string(" ") + name_of(type) + " ";
    std::vector<std::string> contiguous, masked, arrays, layers, relayed, gradients;
    for (const char* order : {"nk", "kn"}) {
      contiguous.push_back("grouped_gemm" + head + "contiguous " + order);
      masked.push_back("grouped_gemm" + head + "masked " + order);
      for (const char* a : {"mk ", "km "}) arrays.push_back("grouped_gemm_array" + head + a + order);
      for (const char* combine : {" ordered", " two-step"})
        for (const char* operation : {"moe_forward", "moe_backward"}) layers.push_back(operation + head + order + combine);
      relayed.push_back("moe_forward" + head + order + " two-step");
      gradients.push_back("d_weight" + head + order);
    }
    gradients.push_back("grouped_gemm" + head + "variable_k");
    add_portable(device, type, arrays, &all);
    if (is_16bit(type)) {
      std::vector<std::string> few = contiguous;
      for (const char* order : {"nk", "kn"})
        for (const char* operation : {"moe_forward", "moe_backward"}) few.push_back(operation + head + order + " two-step");
      add_tableless(few, &all);
    }
    if (device.kernel_family != GGM_KERNELS_CUDA_HOPPER || !is_16bit(type)) {
      for (const auto& heads : {contiguous, masked, layers, gradients}) add_portable(device, type, heads, &all);
      continue;
    }
    add_wgmma(contiguous, contiguous, {}, &all);
    add_wgmma(masked, {}, {}, &all);
    add_wgmma(layers, layers, relayed, &all);
    for (const ggm::WgmmaKernel& kernel : ggm::kWgmmaKernels)
      for (const std::string& line : gradients)
        if (kernel.over_k) all.insert(line + ": " + kernel.name);
  }
  return all;
}

void require_all(const Launched& launched, const ggm::Device& device) {
  const Launched want = required(device);
  CHECK(want.size() > 50);
  for (const std::string& line : want) {
    INFO("never launched by the suite: " << line);
    CHECK(launched.count(line) == 1);
  }
  const auto in_parts = [](const std::string& line) { return line.find(" ordered-in-parts: ") != std::string::npos; };
  CHECK(std::any_of(launched.begin(), launched.end(), in_parts));
}

std::string gemm_key(const GemmCase& c) {
  return std::string("grouped_gemm ") + name_of(c.type) +
         (c.layout == GGM_LAYOUT_VARIABLE_K ? " variable_k"
          : c.layout == GGM_LAYOUT_MASKED   ? " masked "
                                            : " contiguous ") +
         (c.layout == GGM_LAYOUT_VARIABLE_K ? "" : order_name(c.order));
}
std::string array_key(const ArrayCase& c) {
  return std::string("grouped_gemm_array ") + name_of(c.type) + (c.a_order == GGM_ORDER_MK ? " mk " : " km ") +
         order_name(c.b_order);
}
std::string moe_key(const char* operation, const MoeCase& c, const char* combine) {
  return std::string(operation) + " " + name_of(c.type) + " " + order_name(c.order) + combine;
}

// ---- by the plan of a faked device ----

template <typename Plan, typename Problem>
Plan plan_of(const Problem& problem, const ggm::Device& device) {
  Plan plan;
  GGM_REQUIRE_OK(ggm::make_plan(problem, device, &plan));
  return plan;
}
// As the log has it.
const char* combine_of(const ggm::CombinePlan& plan) {
  if (!plan.ordered) return " two-step";
  return plan.in_turn() ? " ordered" : " ordered-in-parts";
}

// The line of one product: its wgmma kernel, or else the portable one.
void add_line(const std::string& key, const ggm::ProductKernels& kernels, Launched* set) {
  const char* name = kernels.tableless >= 0 ? ggm::kTablelessKernels[kernels.tableless].name
                     : kernels.wgmma >= 0   ? ggm::kWgmmaKernels[kernels.wgmma].name
                                            : ggm::kGemmKernels[kernels.portable].name;
  set->insert(key + ": " + name);
}

std::vector<Launched> planned(const std::vector<ggm::Device>& devices) {
  const Handle handle(host_backends().front());
  std::vector<Launched> out(devices.size());
  const auto each = [&](auto insert) {
    for (std::size_t i = 0; i < devices.size(); ++i) insert(devices[i], &out[i]);
  };
  for (const std::int32_t type : kFloatTypes) {
    for (const GemmCase& c : gemm_cases(type, Data::integers)) {
      ggm::GemmProblem problem;
      GGM_REQUIRE_OK(ggm::make_problem(GemmRun(handle, c).problem(), &problem));
      each([&](const ggm::Device& device, Launched* set) {
        add_line(gemm_key(c), plan_of<ggm::GemmPlan>(problem, device).kernels, set);
      });
    }
    for (const bool backward : {false, true})
      for (const MoeCase& c : moe_cases(type, Data::integers, backward)) {
        ggm::MoeProblem problem;
        if (!backward) {
          GGM_REQUIRE_OK(ggm::make_problem(ggm::MoeKind::forward, MoeForwardRun(handle, c).problem(), &problem));
          each([&](const ggm::Device& device, Launched* set) {
            const auto plan = plan_of<ggm::MoeForwardPlan>(problem, device);
            add_line(moe_key("moe_forward", c, combine_of(plan.combine)), plan.kernels, set);
          });
          continue;
        }
        GGM_REQUIRE_OK(ggm::make_problem(ggm::MoeKind::backward, MoeBackwardRun(handle, c).problem(), &problem));
        each([&](const ggm::Device& device, Launched* set) {
          const auto plan = plan_of<ggm::MoeBackwardPlan>(problem, device);
          if (c.gradients & GGM_GRADIENT_X)
            add_line(moe_key("moe_backward", c, combine_of(plan.combine)), plan.dx_kernels, set);
          if (c.gradients & GGM_GRADIENT_WEIGHT) add_line(moe_key("d_weight", c, ""), plan.d_weight_kernels, set);
        });
      }
  }
  for (const ArrayCase& c : array_cases()) {
    ggm::GemmArrayProblem problem;
    GGM_REQUIRE_OK(ggm::make_problem(ArrayRun(handle, c).problem, &problem));
    each([&](const ggm::Device& device, Launched* set) {
      add_line(array_key(c), plan_of<ggm::GemmPlan>(problem, device).kernels, set);
    });
  }
  return out;
}

ggm::Device faked(int capability, int multiprocessors, int shared_bytes, std::int32_t family = GGM_KERNELS_CUDA_PORTABLE) {
  ggm::Device device;
  device.backend = ggm::BackendKind::cuda;
  device.capability = capability;
  device.multiprocessors = multiprocessors;
  device.shared_memory_bytes = shared_bytes;
  device.kernel_family = family;
  return device;
}

// ---- by what is launched ----

// Collects the plan lines of one handle.
struct Log {
  std::string line;
  static void take(void* user, std::int32_t level, const char* message) {
    if (level == GGM_LOG_PLAN) static_cast<Log*>(user)->line = message;
  }
  // The word after `field`, "" when the last line has none.
  std::string word(const char* field) const {
    const std::size_t start = line.find(field);
    if (start == std::string::npos) return "";
    const std::size_t begin = start + std::strlen(field);
    return line.substr(begin, line.find(' ', begin) - begin);
  }
};

Launched launched_on(const Backend& backend) {
  Log log;
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  params.log_level = GGM_LOG_PLAN;
  params.log = Log::take;
  params.log_user = &log;
  const Handle handle(backend, params);
  Launched out;
  for (const std::int32_t type : kFloatTypes) {
    for (const GemmCase& c : gemm_cases(type, Data::integers)) {
      GemmRun(handle, c).run();
      out.insert(gemm_key(c) + ": " + log.word(" kernel="));
    }
    for (const MoeCase& c : moe_cases(type, Data::integers, false)) {
      MoeForwardRun(handle, c).run();
      out.insert(moe_key("moe_forward", c, "") + " " + log.word(" combine=") + ": " + log.word(" kernel="));
    }
    for (const MoeCase& c : moe_cases(type, Data::integers, true)) {
      MoeBackwardRun(handle, c).run();
      if (c.gradients & GGM_GRADIENT_X)
        out.insert(moe_key("moe_backward", c, "") + " " + log.word(" combine=") + ": " + log.word(" kernel="));
      if (c.gradients & GGM_GRADIENT_WEIGHT) out.insert(moe_key("d_weight", c, "") + ": " + log.word(" d_weight_kernel="));
    }
  }
  for (const ArrayCase& c : array_cases()) {
    ArrayRun run(handle, c);
    run.scene.run(op::grouped_gemm_array, run.problem, run.tensors);
    out.insert(array_key(c) + ": " + log.word(" kernel="));
  }
  return out;
}

}  // namespace

TEST_CASE("coverage: the plans of the tables reach every kernel, layout, order, combine and type", "[host]") {
  const std::vector<ggm::Device> devices{faked(90, 132, 232448), faked(80, 108, 166912), faked(86, 84, 101376),
                                         faked(90, 132, 232448, GGM_KERNELS_CUDA_HOPPER)};
  const std::vector<Launched> launched = planned(devices);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    INFO("capability " << devices[i].capability << ", family " << devices[i].kernel_family);
    require_all(launched[i], devices[i]);
  }
}
TEST_CASE("coverage: the tables launch every kernel, layout, order, combine and type, GPU", "[gpu]") {
  for (const Backend& backend : cuda_backends()) {
    INFO(backend.name);
    const Handle handle(backend);
    ggm_info_t info = GGM_INFO_INIT;
    GGM_REQUIRE_OK(ggm_get_info(handle, &info));
    require_all(launched_on(backend),
                faked(info.compute_capability, info.multiprocessors, info.shared_memory_bytes, info.kernel_family));
  }
}
