// The layer that the demo runs: its inputs, made from the text, and the host memory of its outputs.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "options.h"
#include "text.h"

namespace demo {

// The upper half of a float32, rounded to nearest even; finite values only.
struct Bfloat16 {
  std::uint16_t bits;
};
inline Bfloat16 to_bfloat16(float f) {
  std::uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}
inline float to_float(Bfloat16 h) {
  const std::uint32_t bits = std::uint32_t{h.bits} << 16;
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}
inline float to_float(float f) { return f; }

// Elements of float32 or bfloat16 in host memory, row after row. Not initialised.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::int32_t type, std::int64_t count);

  std::int32_t type() const { return type_; }
  std::int64_t count() const { return count_; }
  std::size_t bytes() const;
  void* data() { return memory_.get(); }
  const void* data() const { return memory_.get(); }

  // Rounds to the tensor's type.
  void set(std::int64_t i, float value) {
    if (type_ == kFloat32)
      reinterpret_cast<float*>(memory_.get())[i] = value;
    else
      reinterpret_cast<Bfloat16*>(memory_.get())[i] = to_bfloat16(value);
  }
  // Decodes `count` elements from `first` on.
  void read(std::int64_t first, std::int64_t count, double* out) const;

 private:
  static constexpr std::int32_t kFloat32 = 1;  // GGM_TYPE_FLOAT32

  std::int32_t type_ = kFloat32;
  std::int64_t count_ = 0;
  std::unique_ptr<unsigned char[]> memory_;
};

struct Layer {
  std::int64_t tokens = 0, top_k = 0, experts = 0, hidden = 0, out_features = 0;
  std::int32_t type = 0;

  std::vector<std::int32_t> ids;         // [tokens, top_k], best expert first
  std::vector<float> routing_weights;    // [tokens, top_k]
  Tensor x, weight, dy;                  // [tokens, hidden]  [experts, out_features, hidden]  [tokens, out_features]
  Tensor y, dx, d_weight;                // shaped as dy, x, weight
  std::vector<float> d_routing_weights;  // [tokens, top_k]

  std::int64_t rows() const { return tokens * top_k; }
  // Multiply-adds of one product of the layer.
  double products() const {
    return static_cast<double>(rows()) * static_cast<double>(hidden) * static_cast<double>(out_features);
  }
  // The slots of each expert, ascending: assignment numbers t*top_k + j.
  std::vector<std::vector<std::int64_t>> slots_of_experts() const;
};

// Vectors of the tokens, gradients, weights and the routing. The same options and text give the same bits everywhere.
Layer make_layer(const Options& options, const Text& text);

}  // namespace demo
