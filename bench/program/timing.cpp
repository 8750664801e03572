#include "timing.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

namespace ggm_bench {

namespace {

constexpr int kWarmRounds = 2, kSettlingRounds = 6;  // these where rests have to be found
constexpr double kShortestPieceMs = 2.0;             // the start of a graph costs microseconds: below half a percent of this
constexpr int kMostCycles = 32;
// Rests in rounds. On an H200 dense products of 4096 tokens had 0.95 of the table's rate without any and 1.09 with half a
// round, so a correction of 1.5 times the deviation closes half of the gap.
constexpr double kFirstRest = 0.2, kMostRest = 1.0, kCorrection = 1.5;

double elapsed(cudaEvent_t from, cudaEvent_t to) {
  float ms = 0;
  check(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime");
  return static_cast<double>(ms);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

}  // namespace

Timed::Timed(const Contender& contender, int sets, bool graph, cudaStream_t stream)
    : contender_(contender), sets_(sets), stream_(stream) {
  launch_all();
  check(cudaStreamSynchronize(stream_), contender.name.c_str());
  warm_ms_ = piece_ms();
  cycles_ = std::clamp(static_cast<int>(std::ceil(kShortestPieceMs / std::max(warm_ms_, 1e-3))), 1, kMostCycles);
  times_.graph = graph && contender.capturable && capture();
  times_.calls = sets_ * cycles_;
  warm_ms_ = piece_ms();
}

Timed::~Timed() {
  for (auto& [from, to] : events_) {
    cudaEventDestroy(from);
    cudaEventDestroy(to);
  }
  if (graph_) cudaGraphExecDestroy(graph_);
}

void Timed::launch_all() {
  if (graph_) return check(cudaGraphLaunch(graph_, stream_), "cudaGraphLaunch");
  for (int cycle = 0; cycle < cycles_; ++cycle) {
    for (int set = 0; set < sets_; ++set) contender_.enqueue(set, stream_);
  }
}

bool Timed::capture() {
  if (cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal) != cudaSuccess) return false;
  bool captured = true;
  try {
    launch_all();
  } catch (const std::exception&) {
    captured = false;  // cuBLAS calls that copy from the host refuse a capture
  }
  cudaGraph_t graph = nullptr;
  captured = cudaStreamEndCapture(stream_, &graph) == cudaSuccess && captured && graph != nullptr;
  captured = captured && cudaGraphInstantiate(&graph_, graph, 0) == cudaSuccess;
  if (graph) cudaGraphDestroy(graph);
  if (!captured) {
    graph_ = nullptr;
    cudaGetLastError();  // the refusal is answered by plain launches
  }
  return captured;
}

double Timed::piece_ms() {
  run_once();
  check(cudaStreamSynchronize(stream_), contender_.name.c_str());
  const auto [from, to] = events_.back();
  events_.pop_back();
  const double ms = elapsed(from, to);
  cudaEventDestroy(from);
  cudaEventDestroy(to);
  return ms;
}

void Timed::run_once() {
  cudaEvent_t from, to;
  check(cudaEventCreate(&from), "cudaEventCreate");
  check(cudaEventCreate(&to), "cudaEventCreate");
  events_.emplace_back(from, to);
  check(cudaEventRecord(from, stream_), "cudaEventRecord");
  launch_all();
  check(cudaEventRecord(to, stream_), "cudaEventRecord");
}

void Timed::collect(int skip) {
  std::vector<double> ms;
  for (std::size_t i = skip; i < events_.size(); ++i) ms.push_back(elapsed(events_[i].first, events_[i].second) / times_.calls);
  times_.median_ms = median(ms);
  times_.min_ms = *std::min_element(ms.begin(), ms.end());
  times_.max_ms = *std::max_element(ms.begin(), ms.end());
}

double Timed::last_ms() const { return elapsed(events_.back().first, events_.back().second) / times_.calls; }

namespace {

double fastest_dense_ms(const std::vector<std::unique_ptr<Timed>>& timed) {
  double fastest = 0;
  for (const auto& t : timed)
    if (t->contender().flops > 0 && (fastest == 0 || t->last_ms() < fastest)) fastest = t->last_ms();
  return fastest;
}

}  // namespace

void run_rounds(std::vector<std::unique_ptr<Timed>>& timed, int rounds, const Rests& rests, std::mt19937& random,
                cudaStream_t stream) {
  std::vector<Timed*> order;
  double round_ms = 0;
  for (auto& t : timed) {
    order.push_back(t.get());
    round_ms += t->warm_ms();
  }
  const int warm = rests.wanted ? kSettlingRounds : kWarmRounds;
  double rest = kFirstRest;
  for (int round = 0; round < warm + rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (Timed* t : order) t->run_once();
    if (!rests.wanted) continue;
    check(cudaStreamSynchronize(stream), "a round");
    if (rests.dense_ms > 0) {
      const double late = fastest_dense_ms(timed) / rests.dense_ms - 1;
      rest = std::clamp(rest + kCorrection * late, 0.0, kMostRest);
    }
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(rest * round_ms));
  }
  check(cudaStreamSynchronize(stream), "timed rounds");
  for (auto& t : timed) t->collect(warm);
}

}  // namespace ggm_bench
