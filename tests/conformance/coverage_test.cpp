// Whether the tables of the conformance suite reach every row of the kernel table in every layout, order, combine and type. On
// the host with the plan of faked devices; on a GPU by what the library says it launches (GGM_LOG_PLAN) while the tables run.
#include <cstring>
#include <set>

#include "conformance/array_case.h"
#include "conformance/gemm_case.h"
#include "conformance/moe_case.h"
#include "plan/plan.h"

using namespace ggm_test;

namespace {

// "moe_forward bf16 nk ordered: mma_128x128x32"
using Launched = std::set<std::string>;

std::string order_name(std::int32_t order) { return order == GGM_ORDER_NK ? "nk" : "kn"; }

// What must have been launched: every kernel that the device can run, for every type of its math.
Launched required(int capability, int shared_bytes) {
  Launched all;
  for (const ggm::GemmKernel& kernel : ggm::kGemmKernels) {
    if (kernel.min_capability > capability || kernel.shared_bytes > shared_bytes) continue;
    for (const std::int32_t type : kFloatTypes) {
      if (ggm::math_of(static_cast<ggm::Type>(type)) != kernel.math) continue;
      const std::string head = std::string(" ") + name_of(type) + " ", tail = std::string(": ") + kernel.name;
      for (const char* order : {"nk", "kn"}) {
        for (const char* layout : {"contiguous ", "masked "}) all.insert("grouped_gemm" + head + layout + order + tail);
        for (const char* a : {"mk ", "km "}) all.insert("grouped_gemm_array" + head + a + order + tail);
        for (const char* combine : {" ordered", " two-step"}) {
          all.insert("moe_forward" + head + order + combine + tail);
          all.insert("moe_backward" + head + order + combine + tail);
        }
        all.insert("d_weight" + head + order + tail);
      }
      all.insert("grouped_gemm" + head + "variable_k" + tail);
    }
  }
  return all;
}

void require_all(const Launched& launched, int capability, int shared_bytes) {
  const Launched want = required(capability, shared_bytes);
  CHECK(want.size() > 50);
  for (const std::string& line : want) {
    INFO("never launched by the suite: " << line);
    CHECK(launched.count(line) == 1);
  }
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
std::string name(int kernel) { return std::string(": ") + ggm::kGemmKernels[kernel].name; }

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
        set->insert(gemm_key(c) + name(plan_of<ggm::GemmPlan>(problem, device).kernel));
      });
    }
    for (const bool backward : {false, true})
      for (const MoeCase& c : moe_cases(type, Data::integers, backward)) {
        ggm::MoeProblem problem;
        if (!backward) {
          GGM_REQUIRE_OK(ggm::make_problem(ggm::MoeKind::forward, MoeForwardRun(handle, c).problem(), &problem));
          each([&](const ggm::Device& device, Launched* set) {
            const auto plan = plan_of<ggm::MoeForwardPlan>(problem, device);
            set->insert(moe_key("moe_forward", c, plan.ordered ? " ordered" : " two-step") + name(plan.kernel));
          });
          continue;
        }
        GGM_REQUIRE_OK(ggm::make_problem(ggm::MoeKind::backward, MoeBackwardRun(handle, c).problem(), &problem));
        each([&](const ggm::Device& device, Launched* set) {
          const auto plan = plan_of<ggm::MoeBackwardPlan>(problem, device);
          if (c.gradients & GGM_GRADIENT_X)
            set->insert(moe_key("moe_backward", c, plan.ordered ? " ordered" : " two-step") + name(plan.dx_kernel));
          if (c.gradients & GGM_GRADIENT_WEIGHT) set->insert(moe_key("d_weight", c, "") + name(plan.d_weight_kernel));
        });
      }
  }
  for (const ArrayCase& c : array_cases()) {
    ggm::GemmArrayProblem problem;
    GGM_REQUIRE_OK(ggm::make_problem(ArrayRun(handle, c).problem, &problem));
    each([&](const ggm::Device& device, Launched* set) {
      set->insert(array_key(c) + name(plan_of<ggm::GemmPlan>(problem, device).kernel));
    });
  }
  return out;
}

ggm::Device faked(int capability, int multiprocessors, int shared_bytes) {
  ggm::Device device;
  device.backend = ggm::BackendKind::cuda;
  device.capability = capability;
  device.multiprocessors = multiprocessors;
  device.shared_memory_bytes = shared_bytes;
  device.kernel_family = GGM_KERNELS_CUDA_PORTABLE;
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
  const std::vector<ggm::Device> devices{faked(90, 132, 232448), faked(80, 108, 166912), faked(86, 84, 101376)};
  const std::vector<Launched> launched = planned(devices);
  for (std::size_t i = 0; i < devices.size(); ++i)
    require_all(launched[i], devices[i].capability, devices[i].shared_memory_bytes);
}
TEST_CASE("coverage: the tables launch every kernel, layout, order, combine and type, GPU", "[gpu]") {
  for (const Backend& backend : cuda_backends()) {
    const Handle handle(backend);
    ggm_info_t info = GGM_INFO_INIT;
    GGM_REQUIRE_OK(ggm_get_info(handle, &info));
    require_all(launched_on(backend), info.compute_capability, info.shared_memory_bytes);
  }
}
