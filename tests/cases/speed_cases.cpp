// Speed that must not depend on how tokens spread: BR-085. Measured against a dense product of the same rows by the library
// itself (one group), so the ratios hold on any device and at any state of the kernels.
#include <algorithm>
#include <cmath>
#include <map>

#include "cases/device_case.h"
#include "cases/device_problems.h"

namespace ggm_test::cases {
namespace {

// Rows enough that reading the weights of 64 experts, which the dense product need not, is a part of its time that the limits
// leave room for: with 16,384 rows it would be 0.7 of it on an H200, at 4.4 TB/s.
constexpr std::int64_t kTokens = 8192, kTopK = 4, kExperts = 64, kWidth = 2048, kRows = kTokens * kTopK;

struct Speed {
  explicit Speed(const Handle& handle)
      : handle(handle),
        x(kRows * kWidth * 2),
        weight(kExperts * kWidth * kWidth * 2),
        y(kRows * kWidth * 2),
        ids(handle.backend(), "ids", kInt32, {1, kTokens, kTopK}),
        offsets(handle.backend(), "offsets", kInt32, {1, 1, 2}) {
    enqueue_rows(x.data(), BF16, kRows, kWidth, kWidth, 0, nullptr);
    enqueue_weights(weight.data(), BF16, kExperts, kWidth, kWidth, kWidth * kWidth, false, nullptr);
    offsets.fill([](auto, auto, auto i) { return i * kRows; }).upload();
    cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  // One group with all the rows.
  double dense() const {
    const Enqueued call(handle, op::grouped_gemm, product_problem(BF16, 1, kRows, kWidth, kWidth),
                        product_tensors(offsets.data(), x.data(), weight.data(), y.data()));
    return time_of([&] { call(stream); }, 1);
  }

  double forward(std::int64_t tokens, int calls) const {
    const Enqueued call(handle, op::moe_forward, layer_problem(BF16, tokens, kTopK, kExperts, kWidth, kWidth),
                        layer_tensors(ids.data(), nullptr, x.data(), weight.data(), y.data()));
    return time_of([&] { call(stream); }, calls);
  }

  // Seconds of one call: the smallest of 20 measurements of `calls` calls in a graph, so that launching does not count.
  double time_of(const std::function<void()>& enqueue, int calls) const {
    const Graph graph(cudaStreamCaptureModeThreadLocal, stream, [&] {
      for (int i = 0; i < calls; ++i) enqueue();
    });
    graph.launch(stream);
    return seconds_of(stream, 20, [&] { graph.launch(stream); }) / calls;
  }

  const Handle& handle;
  Stream stream;
  Memory x, weight, y;
  Tensor ids, offsets;
};

// Slots to experts by shares that add up to one: slot a goes to the expert at a fixed shuffled place of the whole range.
void by_shares(Tensor& ids, const std::vector<double>& shares) {
  std::vector<std::int64_t> experts;
  double end = 0;
  for (std::size_t e = 0; e < shares.size(); ++e) {
    end += shares[e];
    while (static_cast<double>(experts.size()) < end * static_cast<double>(kRows) - 0.5)
      experts.push_back(static_cast<std::int64_t>(e));
  }
  experts.resize(kRows, static_cast<std::int64_t>(shares.size()) - 1);
  ids.fill([&](auto, auto t, auto j) { return experts[static_cast<std::size_t>((t * kTopK + j) * 6007 % kRows)]; }).upload();
}

std::vector<double> normalised(std::vector<double> shares) {
  double sum = 0;
  for (double share : shares) sum += share;
  for (double& share : shares) share /= sum;
  return shares;
}

void skewed_loads(const Handle& handle) {
  Speed speed(handle);
  const double dense = speed.dense();
  std::map<std::string, std::vector<double>> loads;
  loads["even"] = std::vector<double>(kExperts, 1.0 / kExperts);
  loads["one expert with half"] = std::vector<double>(kExperts, 0.5 / (kExperts - 1));
  loads["one expert with half"][7] = 0.5;
  loads["one expert with all"] = std::vector<double>(kExperts, 0);
  loads["one expert with all"][7] = 1;
  for (int e = 0; e < kExperts; ++e) loads["Zipf"].push_back(1.0 / (e + 1));
  loads["Zipf"] = normalised(loads["Zipf"]);
  loads["one row each and one with the rest"] = std::vector<double>(kExperts, 1.0 / kRows);
  loads["one row each and one with the rest"][31] = 1 - (kExperts - 1.0) / kRows;
  for (const auto& [name, shares] : loads) {
    by_shares(speed.ids, shares);
    const double ratio = speed.forward(kTokens, 1) / dense;
    UNSCOPED_INFO(name << ": " << ratio << " times the dense product (" << dense * 1e3 << " ms)");
    CHECK(ratio <= (name == "even" ? 1.6 : 2.0));
  }
}
GGM_CASE_SPEED("BR-085 skewed loads stay within twice the time of a dense product", skewed_loads)

void small_token_counts(const Handle& handle) {
  Speed speed(handle);
  speed.ids.fill([](auto, auto t, auto j) { return (5 * t + 17 * j) % kExperts; }).upload();
  double before = speed.forward(1, 10);
  for (std::int64_t tokens = 2; tokens <= 64; ++tokens) {
    const double now = speed.forward(tokens, 10);
    INFO(tokens - 1 << " tokens take " << before * 1e6 << " us, " << tokens << " tokens " << now * 1e6 << " us");
    CHECK(now >= 0.85 * before);
    before = now;
  }
}
GGM_CASE_SPEED("BR-085 one token more never makes the call much faster", small_token_counts)

}  // namespace
}  // namespace ggm_test::cases
