// Sweeps over token counts: BR-086.
#include "cases/moe_case.h"

namespace ggm_test::cases {
namespace {

// Token t has the same ids, weights and values whatever the number of tokens, so one reference of the largest call serves all.
class Sweep {
 public:
  Sweep(std::int64_t max_tokens, std::int64_t top_k, std::int64_t experts, std::int64_t features)
      : largest_(integer_moe(F32, max_tokens, top_k, experts, features, features,
                             [=](auto t, auto j) { return (5 * t + 7 * j + t / 64) % experts; })),
        y_(expected_forward(largest_)) {
    largest_.gradients = GGM_GRADIENT_X | GGM_GRADIENT_ROUTING_WEIGHTS;
    gradients_ = expected_backward(largest_);
    without_tokens_ = largest_;
    for (Values* values : {&without_tokens_.w, &without_tokens_.x, &without_tokens_.dy}) values->clear();
    without_tokens_.ids.clear();
  }

  void forward(const Handle& handle, std::int64_t tokens) const {
    INFO(tokens << " tokens, top_k " << largest_.top_k << ", " << largest_.experts << " experts");
    const MoeCase moe = first(tokens);
    require_same(moe_forward(handle, moe), head(y_, tokens * moe.out), "y", moe.out);
  }
  void backward(const Handle& handle, std::int64_t tokens) const {
    INFO(tokens << " tokens, top_k " << largest_.top_k << ", " << largest_.experts << " experts");
    const MoeCase moe = first(tokens);
    const MoeGradients got = moe_backward(handle, moe);
    require_same(got.dx, head(gradients_.dx, tokens * moe.in), "dx", moe.in);
    require_same(got.d_routing_weights, head(gradients_.d_routing_weights, tokens * moe.top_k), "d_routing_weights", moe.top_k);
  }
  // d_weight depends on the whole batch: compared for the small counts.
  void gradient(const Handle& handle, std::int64_t tokens) const {
    MoeCase moe = first(tokens);
    moe.gradients = GGM_GRADIENT_WEIGHT;
    require_backward(handle, moe);
  }

 private:
  static Values head(const Values& values, std::int64_t count) { return Values(values.begin(), values.begin() + count); }
  MoeCase first(std::int64_t tokens) const {
    MoeCase moe = without_tokens_;
    moe.tokens = tokens;
    moe.ids.assign(largest_.ids.begin(), largest_.ids.begin() + tokens * moe.top_k);
    moe.w = head(largest_.w, tokens * moe.top_k);
    moe.x = head(largest_.x, tokens * moe.in);
    moe.dy = head(largest_.dy, tokens * moe.out);
    return moe;
  }

  MoeCase largest_, without_tokens_;
  Values y_;
  MoeGradients gradients_;
};

void token_counts(const Handle& handle) {
  const bool cuda = handle.backend().cuda;
  const std::int64_t limit = cuda ? 16384 : 1024, features = cuda ? 64 : 24;
  for (std::int64_t top_k : {1, 2, 6, 8})
    for (std::int64_t experts : {8, 128}) {
      const Sweep sweep(limit + 1, top_k, experts, features);
      for (std::int64_t tokens = 1; tokens <= 70; ++tokens) {
        sweep.forward(handle, tokens);
        sweep.backward(handle, tokens);
        if (cuda ? tokens % 8 < 2 : tokens % 32 == 7) sweep.gradient(handle, tokens);
      }
      for (std::int64_t power = 128; power <= limit; power *= 2) {
        const bool whole = cuda ? top_k == 2 || power <= 1024 : power <= 256;
        for (std::int64_t tokens : {power - 1, power, power + 1}) {
          sweep.forward(handle, tokens);
          if (whole) sweep.backward(handle, tokens);
        }
      }
      sweep.forward(handle, 519);  // 512 + 7, as reported
      sweep.backward(handle, 519);
    }
}
GGM_CASE_HOST_AND_GPU("BR-086 every token count gives each token the same result", token_counts)

}  // namespace
}  // namespace ggm_test::cases
