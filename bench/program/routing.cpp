#include "routing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

namespace ggm_bench {

namespace {

constexpr int kMaxDraws = 500;
constexpr double kTouchedTolerance = 0.03;

std::uint64_t hash_of(const std::string& text) {
  std::uint64_t h = 14695981039346656037ull;  // FNV-1a
  for (unsigned char c : text) h = (h ^ c) * 1099511628211ull;
  return h;
}

// -ln(rank) of each expert, ranks shuffled in an order fixed per workload.
std::vector<float> zipf_scores(const Workload& workload) {
  std::vector<int> rank(workload.experts);
  std::iota(rank.begin(), rank.end(), 1);
  std::mt19937_64 generator(hash_of(workload.name));
  for (std::size_t i = rank.size(); i > 1; --i) std::swap(rank[i - 1], rank[generator() % i]);
  std::vector<float> scores;
  for (int r : rank) scores.push_back(-std::log(static_cast<float>(r)));
  return scores;
}

template <typename T>
void download(std::vector<T>& to, const T* from, std::int64_t count, cudaStream_t stream) {
  to.resize(count);
  check(cudaMemcpyAsync(to.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost, stream), "copy of the routing");
}

template <typename T>
void upload(T* to, const std::vector<T>& from, cudaStream_t stream) {
  check(cudaMemcpyAsync(to, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice, stream), "copy of the routing");
}

std::int64_t count_touched(const std::vector<std::int32_t>& ids, std::int64_t experts) {
  std::vector<char> seen(experts, 0);
  for (std::int32_t id : ids) seen[id] = 1;
  return std::count(seen.begin(), seen.end(), 1);
}

}  // namespace

std::int64_t Routing::touched() const {
  std::int64_t count = 0;
  for (std::size_t e = 0; e + 1 < host_offsets.size(); ++e) count += size(e) > 0;
  return count;
}

std::int64_t Routing::largest() const {
  std::int64_t largest = 0;
  for (std::size_t e = 0; e + 1 < host_offsets.size(); ++e) largest = std::max(largest, size(e));
  return largest;
}

double RoutingSets::mean_touched() const {
  double sum = 0;
  for (const Routing& set : sets_) sum += static_cast<double>(set.touched());
  return sum / static_cast<double>(sets_.size());
}

std::int64_t RoutingSets::largest() const {
  std::int64_t largest = 0;
  for (const Routing& set : sets_) largest = std::max(largest, set.largest());
  return largest;
}

void RoutingSets::slice(const Cell& cell) {
  const std::int64_t rows = cell.rows(), experts = cell.workload->experts;
  const std::int64_t row_bytes = round_up(4 * rows, 256), expert_bytes = round_up(4 * (experts + 1), 256);
  const std::int64_t set_bytes = 4 * row_bytes + 2 * expert_bytes;
  memory_.reserve(cell.sets() * set_bytes);
  sets_.assign(cell.sets(), Routing{});
  char* at = memory_.data();
  const auto take = [&at](std::int64_t bytes) { return reinterpret_cast<std::int32_t*>(std::exchange(at, at + bytes)); };
  for (Routing& set : sets_) {
    set.ids = take(row_bytes);
    set.weights = reinterpret_cast<float*>(take(row_bytes));
    set.row_assignment = take(row_bytes);
    set.assignment_row = take(row_bytes);
    set.offsets = take(expert_bytes);
    set.sizes = take(expert_bytes);
  }
}

void RoutingSets::draw(const Cell& cell, int attempt, cudaStream_t stream) {
  const Workload& w = *cell.workload;
  const std::uint64_t seed = hash_of(w.name + cell.routing + std::to_string(cell.tokens)) + 1000003ull * attempt;
  for (std::size_t s = 0; s < sets_.size(); ++s) {
    Routing& set = sets_[s];
    draw_ids(set.ids, set.weights, cell.routing == "zipf" ? scores_.as<float>() : nullptr, cell.routing == "equal", cell.tokens,
             w.experts, w.top_k, seed + 7919ull * s, stream);
    download(set.host_ids, set.ids, cell.rows(), stream);
  }
  check(cudaStreamSynchronize(stream), "draw of the routing");
}

// The sorted order by counting, apart from the library under test.
void RoutingSets::sort(const Cell& cell, cudaStream_t stream) {
  const std::int64_t rows = cell.rows(), experts = cell.workload->experts;
  for (Routing& set : sets_) {
    set.host_offsets.assign(experts + 1, 0);
    for (std::int32_t id : set.host_ids) ++set.host_offsets[id + 1];
    for (std::int64_t e = 0; e < experts; ++e) set.host_offsets[e + 1] += set.host_offsets[e];
    std::vector<std::int32_t> next(set.host_offsets.begin(), set.host_offsets.end() - 1), sizes;
    set.host_row_assignment.resize(rows);
    set.host_assignment_row.resize(rows);
    for (std::int64_t a = 0; a < rows; ++a) {
      const std::int32_t row = next[set.host_ids[a]]++;
      set.host_row_assignment[row] = static_cast<std::int32_t>(a);
      set.host_assignment_row[a] = row;
    }
    for (std::int64_t e = 0; e < experts; ++e) sizes.push_back(static_cast<std::int32_t>(set.size(e)));
    upload(set.offsets, set.host_offsets, stream);
    upload(set.row_assignment, set.host_row_assignment, stream);
    upload(set.assignment_row, set.host_assignment_row, stream);
    upload(set.sizes, sizes, stream);
    download(set.host_weights, set.weights, rows, stream);
    check(cudaStreamSynchronize(stream), "copy of the routing");
  }
}

void RoutingSets::prepare(const Cell& cell, cudaStream_t stream) {
  slice(cell);
  if (cell.routing == "zipf") {
    const auto scores = zipf_scores(*cell.workload);
    scores_.reserve(static_cast<std::int64_t>(4 * scores.size()));
    upload(scores_.as<float>(), scores, stream);
    check(cudaStreamSynchronize(stream), "copy of the scores");
  }
  double mean = 0;
  for (int attempt = 0; attempt < kMaxDraws; ++attempt) {
    draw(cell, attempt, stream);
    mean = 0;
    for (const Routing& set : sets_) mean += static_cast<double>(count_touched(set.host_ids, cell.workload->experts));
    mean /= static_cast<double>(sets_.size());
    if (cell.experts_touched == 0 || std::abs(mean / cell.experts_touched - 1) <= kTouchedTolerance) return sort(cell, stream);
  }
  throw std::runtime_error(cell.text() + ": experts touched = " + std::to_string(mean) + ", the peers' " +
                           std::to_string(cell.experts_touched) + " within 3% was not met in " + std::to_string(kMaxDraws) +
                           " draws");
}

}  // namespace ggm_bench
