// The demo: a text file through one Mixture-of-Experts layer, forward and backward, checked against float64.
// main only orders the steps; run.cpp is the file to read for how the library is called.
#include <cstdio>
#include <exception>
#include <memory>

#include "ggm/ggm.hpp"
#include "layer.h"
#include "memory.h"
#include "options.h"
#include "progress.h"
#include "reference.h"
#include "report.h"
#include "run.h"
#include "text.h"

namespace {

enum ExitCode { kPassed = 0, kFailed = 1, kCouldNotRun = 2 };

ggm::handle open_handle(std::int32_t backend) {
  demo::Step step("loading kernels");
  return ggm::handle::on(backend);
}

int run(demo::Options options) {
  const ggm::handle handle = open_handle(options.backend);
  const ggm_info_t info = handle.info();
  options = demo::with_defaults(options, info.backend);
  const std::unique_ptr<demo::Memory> memory = demo::Memory::make(info);
  const demo::Text text = demo::read_text(options.file);

  demo::print_setting(options, text, info, memory->device_name());
  demo::Layer layer = demo::make_layer(options, text);
  demo::print_routing(layer);
  const demo::RunResult result = demo::run_layer(handle, *memory, layer);
  demo::print_memory(layer, result);
  demo::print_times(layer, result);
  const bool same_bits = demo::print_bits(result);
  const bool close = demo::print_errors(demo::check_layer(layer));
  std::printf("%s\n", same_bits && close ? "All checks passed." : "FAILED: see above.");
  return same_bits && close ? kPassed : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const demo::Options options = demo::parse_options(argc, argv);
    if (options.help) {
      std::fputs(demo::usage(), stdout);
      return kPassed;
    }
    return run(options);
  } catch (const demo::UsageError& e) {
    std::fprintf(stderr, "ggm_demo: %s\nggm_demo --help lists the options.\n", e.what());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ggm_demo: %s\n", e.what());
  }
  return kCouldNotRun;
}
