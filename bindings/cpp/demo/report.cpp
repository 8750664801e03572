#include "report.h"

#include <algorithm>
#include <cstdio>

namespace demo {
namespace {

const char* name_of_type(std::int32_t type) { return type == GGM_TYPE_FLOAT32 ? "float32" : "bfloat16"; }

const char* name_of_family(std::int32_t family) {
  switch (family) {
    case GGM_KERNELS_CUDA_PORTABLE: return "portable CUDA kernels";
    case GGM_KERNELS_CUDA_HOPPER: return "Hopper kernels";
    case GGM_KERNELS_HOST_PLAIN: return "plain C++ kernels";
    case GGM_KERNELS_HOST_AVX2: return "AVX2 kernels";
    case GGM_KERNELS_HOST_AVX512: return "AVX-512 kernels";
    default: return "other kernels";
  }
}

long long ll(std::int64_t v) { return static_cast<long long>(v); }

std::string bytes_text(double bytes) {
  char text[32];
  if (bytes >= 1e9)
    std::snprintf(text, sizeof text, "%.2f GB", bytes / 1e9);
  else if (bytes >= 1e6)
    std::snprintf(text, sizeof text, "%.1f MB", bytes / 1e6);
  else
    std::snprintf(text, sizeof text, "%.1f kB", bytes / 1e3);
  return text;
}

// Rows of each cell of the histogram: an expert, or a few neighbours when there are more than 64.
std::vector<std::int64_t> histogram_cells(const Layer& layer, std::int64_t experts_a_cell) {
  std::vector<std::int64_t> cells(static_cast<std::size_t>((layer.experts + experts_a_cell - 1) / experts_a_cell), 0);
  for (std::int32_t id : layer.ids) ++cells[static_cast<std::size_t>(id / experts_a_cell)];
  return cells;
}

void print_size_row(const char* what, double bytes) { std::printf("  %-50s %10s\n", what, bytes_text(bytes).c_str()); }

}  // namespace

void print_setting(const Options& o, const Text& text, const ggm_info_t& info, const char* device_name) {
  const auto count = static_cast<std::int64_t>(text.tokens.size());
  std::printf("%s\n\n", ggm_build_info());
  std::printf("text     %s: %lld tokens, %lld different", o.file.c_str(), ll(count), ll(text.different));
  if (o.tokens <= count)
    std::printf("; the first %lld are used\n", ll(o.tokens));
  else
    std::printf("; repeated to %lld\n", ll(o.tokens));
  std::printf("layer    %lld tokens x top %lld of %lld experts, %lld -> %lld features, %s, seed %llu\n", ll(o.tokens),
              ll(o.top_k), ll(o.experts), ll(o.hidden), ll(o.out_features), name_of_type(o.type),
              static_cast<unsigned long long>(o.seed));
  std::printf("device   %s, %d %s, %s\n\n", device_name, info.multiprocessors,
              info.backend == GGM_BACKEND_CUDA ? "multiprocessors" : "worker threads", name_of_family(info.kernel_family));
  std::fflush(stdout);
}

void print_routing(const Layer& layer) {
  constexpr std::int64_t kMostCells = 64, kColumns = 4;
  const std::int64_t experts_a_cell = (layer.experts + kMostCells - 1) / kMostCells;
  const std::vector<std::int64_t> cells = histogram_cells(layer, experts_a_cell);
  const auto count = static_cast<std::int64_t>(cells.size());
  const std::int64_t most = std::max<std::int64_t>(1, *std::max_element(cells.begin(), cells.end()));
  const std::int64_t columns = count > 16 ? kColumns : 1;
  const std::int64_t lines = (count + columns - 1) / columns;
  const std::int64_t width = columns > 1 ? 16 : 60;

  const std::vector<std::int64_t> by_expert = histogram_cells(layer, 1);
  const auto range = std::minmax_element(by_expert.begin(), by_expert.end());
  std::printf("Rows per expert: %lld rows, mean %.1f, fewest %lld, most %lld", ll(layer.rows()),
              static_cast<double>(layer.rows()) / static_cast<double>(layer.experts), ll(*range.first), ll(*range.second));
  if (experts_a_cell > 1) std::printf(" (a bar stands for %lld experts)", ll(experts_a_cell));
  std::printf("\n");
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t cell = line; cell < count; cell += lines) {
      const std::int64_t rows = cells[static_cast<std::size_t>(cell)];
      // Any row at all gets a mark.
      const auto length = static_cast<std::size_t>((rows * width + most - 1) / most);
      std::string bar = std::string(length, '#') + " " + std::to_string(rows);
      if (cell + lines < count) bar.resize(static_cast<std::size_t>(width + 7), ' ');
      std::printf("%4lld %s", ll(cell * experts_a_cell), bar.c_str());
    }
    std::printf("\n");
  }
  std::printf("\n");
  std::fflush(stdout);
}

void print_memory(const Layer& layer, const RunResult& run) {
  const double element = layer.type == GGM_TYPE_FLOAT32 ? 4 : 2;
  const double in_rows = static_cast<double>(layer.rows()) * static_cast<double>(layer.hidden) * element;
  const double out_rows = static_cast<double>(layer.rows()) * static_cast<double>(layer.out_features) * element;
  const double separate = 2 * in_rows + 2 * out_rows;
  const auto larger = [](std::size_t a, std::size_t b) { return static_cast<double>(std::max(a, b)); };
  std::printf("Intermediates\n");
  print_size_row("gathered x, forward and again for d_weight", in_rows);
  print_size_row("expert outputs before they are combined", out_rows);
  print_size_row("gathered dy, weighted", out_rows);
  print_size_row("gradients of the gathered x", in_rows);
  print_size_row("= what separate steps would store", separate);
  print_size_row("  workspace here: forward", static_cast<double>(run.forward_workspace));
  print_size_row("  workspace here: backward, may be the same memory", static_cast<double>(run.backward_workspace));
  print_size_row("= never materialised", separate - larger(run.forward_workspace, run.backward_workspace));
  print_size_row("= never materialised with the ordered combine",
                 separate - larger(run.ordered_forward_workspace, run.ordered_backward_workspace));
  std::printf("\n");
}

void print_times(const Layer& layer, const RunResult& run) {
  const auto rate = [&](double products, double seconds) { return 2e-9 * products * layer.products() / seconds; };
  std::printf("Times (fastest call, routing included)\n");
  std::printf("  forward   %10.3f ms  %10.1f Gflop/s   1 product\n", 1e3 * run.forward_seconds, rate(1, run.forward_seconds));
  std::printf("  backward  %10.3f ms  %10.1f Gflop/s   2 products: dx, d_weight; d_routing_weights rides along\n\n",
              1e3 * run.backward_seconds, rate(2, run.backward_seconds));
}

bool print_bits(const RunResult& run) {
  const auto word = [](bool same) { return same ? "same bits" : "DIFFERENT BITS"; };
  std::printf("Reproducibility\n");
  const std::string alone = "the first " + std::to_string(run.alone_tokens) + " tokens as a batch of their own";
  std::printf("  %-45s  %s\n", "every call again, forward and backward", word(run.repeat_same_bits));
  std::printf("  %-45s  %s\n", "ordered and two-step combine, forward", word(run.combine_same_bits));
  std::printf("  %-45s  %s\n", alone.c_str(), word(run.alone_same_bits));
  if (run.faults != 0) std::printf("  FAULT WORDS NOT ZERO: sum %u\n", run.faults);
  std::printf("\n");
  return run.repeat_same_bits && run.combine_same_bits && run.alone_same_bits && run.faults == 0;
}

bool print_errors(const std::vector<Check>& checks) {
  bool all = true;
  std::printf("Against float64        relative error      limit   elements checked\n");
  for (const Check& c : checks) {
    std::printf("  %-18s %15.2e %12.2e   %lld of %lld  %s\n", c.name.c_str(), c.error, c.limit, ll(c.checked), ll(c.of),
                c.passed() ? "ok" : "EXCEEDED");
    all = all && c.passed();
  }
  std::printf("\n");
  return all;
}

}  // namespace demo
