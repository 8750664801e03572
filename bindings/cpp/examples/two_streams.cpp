// Two batches on two streams at the same time, through one handle: each stream has a workspace and outputs of its own, the
// weights are shared. The bits are those of the same calls one after another on one stream.
#include <cstdint>
#include <cstdio>
#include <random>

#include "layer_data.h"

namespace {

constexpr std::int64_t kTokens = 64;

bool run(const ggm::handle& handle) {
  std::mt19937 random(2);
  const std::vector<float> weight_values = example::random_values(random, example::kExperts * example::kOut * example::kIn);
  const example::DeviceArray<float> weight{std::span<const float>(weight_values)};
  // An operation is a value that holds no memory: one serves both streams.
  const auto forward = handle.moe_forward(example::problem_of(kTokens));
  const std::size_t bytes = forward.workspace_bytes();

  const example::Batch batches[2] = {example::random_batch(random, kTokens), example::random_batch(random, kTokens)};
  const example::DeviceBatch placed[2] = {{kTokens, bytes}, {kTokens, bytes}};
  const example::Stream streams[2];

  std::vector<float> one_by_one[2];
  for (int i = 0; i < 2; ++i) {
    placed[i].write(batches[i], streams[0].get());
    forward(placed[i].tensors(weight.data()), placed[i].workspace.data(), bytes, streams[0].get());
    one_by_one[i] = placed[i].y.read(streams[0].get());
    if (!example::close_to_loops(batches[i], weight_values, one_by_one[i], kTokens)) return false;
  }

  for (int i = 0; i < 2; ++i) placed[i].write(batches[i], streams[i].get());
  // Many calls on both, so that they do run beside each other; all write the same results.
  for (int repeat = 0; repeat < 20; ++repeat)
    for (int i = 0; i < 2; ++i) forward(placed[i].tensors(weight.data()), placed[i].workspace.data(), bytes, streams[i].get());

  bool right = true;
  for (int i = 0; i < 2; ++i) {
    const bool same = example::same_bits(one_by_one[i], placed[i].y.read(streams[i].get()));
    std::printf("stream %d: %s\n", i, same ? "the bits of the calls one by one" : "OTHER BITS than the calls one by one");
    right = right && same;
  }
  return right;
}

}  // namespace

int main() { return example::run_on_cuda("ggm_example_two_streams", run); }
