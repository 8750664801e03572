// A decode loop by CUDA graph: the forward is captured once, for up to 32 tokens, and replayed with other ids, other x and
// another number of tokens in every step. Each replay is compared with a plain call, bit for bit, and with float64 loops.
#include <cstdint>
#include <cstdio>
#include <random>

#include "layer_data.h"

namespace {

constexpr std::int64_t kMaxTokens = 32;

bool decode(const ggm::handle& handle) {
  std::mt19937 random(1);
  const std::vector<float> weight_values = example::random_values(random, example::kExperts * example::kOut * example::kIn);
  const example::DeviceArray<float> weight{std::span<const float>(weight_values)};
  const auto forward = handle.moe_forward(example::problem_of(kMaxTokens));
  const example::DeviceBatch batch(kMaxTokens, forward.workspace_bytes());
  const example::DeviceArray<std::int32_t> num_tokens(1);

  // The graph keeps these pointers, and reads what is behind them anew in each replay.
  ggm_moe_forward_tensors_t tensors = batch.tensors(weight.data());
  tensors.num_tokens = num_tokens.data();
  const example::Stream stream;
  const example::Graph step(
      stream.get(), [&] { return forward.call(tensors, batch.workspace.data(), forward.workspace_bytes(), stream.get()); });

  for (const std::int32_t tokens : {1, 32, 7, 16, 2}) {
    const example::Batch now = example::random_batch(random, kMaxTokens);
    num_tokens.write({&tokens, 1}, stream.get());
    batch.write(now, stream.get());
    step.launch(stream.get());
    const std::vector<float> replayed = batch.y.read(stream.get());

    batch.y.poison(stream.get());
    forward(tensors, batch.workspace.data(), forward.workspace_bytes(), stream.get());
    const bool same = example::same_bits(replayed, batch.y.read(stream.get()));
    std::printf("%2d tokens: %s\n", static_cast<int>(tokens),
                same ? "the bits of a plain call" : "OTHER BITS than a plain call");
    if (!same || !example::close_to_loops(now, weight_values, replayed, tokens)) return false;
    for (std::size_t i = static_cast<std::size_t>(tokens * example::kOut); i < replayed.size(); ++i)
      if (replayed[i] != 0) return std::printf("y of a token behind num_tokens is %g, not 0\n", double{replayed[i]}), false;
  }
  return true;
}

}  // namespace

int main() { return example::run_on_cuda("ggm_example_decode_graph", decode); }
