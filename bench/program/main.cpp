// ggm_bench: libggm beside cuBLAS on the workloads of workloads.json. bench/README.md says what is measured and how.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "cells.h"
#include "options.h"
#include "run.h"

namespace ggm_bench {
namespace {

std::string device_name() {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  return properties.name;
}

// ggm_build_info() without the commit: source_id says what was measured, and the folder of the build may be a copy that has
// commits of its own.
std::string build() {
  std::string text = ggm_build_info();
  const std::size_t begin = text.find(" commit ");
  if (begin != std::string::npos) text.erase(begin, text.find(',', begin) + 1 - begin);
  return text;
}

// What the numbers depend on besides the sources and the card, as further JSON fields.
std::string environment_fields(const Cublas& cublas, const std::string& command) {
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  std::string escaped;
  for (char c : command) escaped += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
  return ", \"driver_cuda\": " + std::to_string(driver) + ", \"runtime_cuda\": " + std::to_string(runtime) +
         ", \"cublas\": " + std::to_string(cublas.version()) + ", \"library\": \"" + build() + "\", \"command\": \"" + escaped +
         "\"";
}

// The options as given, without the paths of this machine.
std::string command_of(int argc, char** argv) {
  std::string command = "ggm_bench";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--output" || word == "--peers") {
      ++i;
    } else {
      command += " " + word;
    }
  }
  return command;
}

int list_cells(const std::vector<Cell>& cells) {
  for (const Cell& cell : cells) std::printf("%s [%s]\n", cell.text().c_str(), name_of(cell.size()));
  std::printf("%zu cells\n", cells.size());
  return 0;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Returns the number of cells without a measurement.
int measure(const std::vector<Cell>& cells, const Options& options, const Machine& machine, RecordWriter& writer) {
  const auto start = std::chrono::steady_clock::now();
  int failed = 0, late = 0;
  run_bandwidth(options, machine, writer);
  print_table_head();
  // What every cell must have fits first; baselines double the time of a cell, roughly, and take what is left.
  Options bare = options;
  bare.contenders = {"ggm", "dense"};
  double behind = 0;
  for (const Cell& cell : cells) behind += expected_seconds(cell);
  for (const Cell& cell : cells) {
    behind -= expected_seconds(cell);
    if (options.budget_seconds > 0 && seconds_since(start) > options.budget_seconds) {
      ++late;
      continue;
    }
    try {
      const double whole = seconds_since(start) + 2 * expected_seconds(cell) + behind;
      const bool all = options.budget_seconds == 0 || whole < options.budget_seconds;
      run_cell(cell, all ? options : bare, machine, writer);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "FAILED %s: %s\n", cell.text().c_str(), e.what());
      ++failed;
      // An error of the device stays with the context: nothing after it could be believed.
      if (cudaDeviceSynchronize() != cudaSuccess) {
        std::fprintf(stderr, "the device is in an error state: stopped\n");
        return static_cast<int>(cells.size());
      }
    }
  }
  std::printf("%zu cells in %.0f s, %d failed, %d not reached within the budget\n", cells.size(), seconds_since(start), failed,
              late);
  return failed + late;
}

int run(const Options& options, const std::string& command) {
  const auto cells = part_of(select_cells(options.peers, options.selections), options.part, options.parts);
  if (options.list) return list_cells(cells);
  if (std::getenv("GGM_KERNELS") && !options.source_id.empty()) {
    throw std::runtime_error("GGM_KERNELS is set: a record is of what the library chooses by itself");
  }
  const std::string device = device_name();
  std::printf("%s, %s\n", device.c_str(), build().c_str());
  Machine machine;
  check(cudaStreamCreateWithFlags(&machine.stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  params.backend = GGM_BACKEND_CUDA;
  params.kernel_family = options.kernel_family;
  check_ggm(ggm_create(&params, &machine.ggm), "ggm_create");
  params.kernel_family = GGM_KERNELS_CUDA_PORTABLE;
  check_ggm(ggm_create(&params, &machine.portable), "ggm_create of the portable family");
  Cublas cublas(machine.stream);
  RecordWriter writer(options.output, options.source_id, device, options.rounds, environment_fields(cublas, command));
  Buffers buffers;
  std::mt19937 random(20);
  machine.cublas = &cublas;
  machine.buffers = &buffers;
  machine.random = &random;
  const int missing = measure(cells, options, machine, writer);
  ggm_destroy(machine.portable);
  ggm_destroy(machine.ggm);
  return missing == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ggm_bench

int main(int argc, char** argv) {
  try {
    bool help = false;
    const ggm_bench::Options options = ggm_bench::parse_options(argc, argv, help);
    if (help) {
      std::fputs(ggm_bench::usage(), stdout);
      return 0;
    }
    return ggm_bench::run(options, ggm_bench::command_of(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ggm_bench: %s\n", e.what());
    return 2;
  }
}
