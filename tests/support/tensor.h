// A typed array [batches, rows, columns] with a leading dimension and a batch stride, in guarded memory of a backend. What lies
// between rows and between batches holds the canary byte and is checked like the guards.
//
// Two copies of the content live here: `initial`, what set/fill put there (outputs: poison), written to the backend by
// upload(); and what the last download() brought back, which at/bits/integer read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/buffer.h"
#include "support/types.h"

namespace ggm_test {

struct Shape {
  std::int64_t batches = 1, rows = 1, columns = 1;
  std::int64_t ld = 0;      // elements between rows; 0: columns
  std::int64_t stride = 0;  // elements between batches; 0: rows * ld
};

class Tensor {
 public:
  // `type` is GGM_TYPE_* or kInt32, kInt64, kUint32. The first element lies `misalign` elements after a 4096-byte boundary.
  Tensor(const Backend& backend, std::string name, std::int32_t type, Shape shape, std::int64_t misalign = 0);

  const std::string& name() const { return name_; }
  std::int32_t type() const { return type_; }
  const Shape& shape() const { return shape_; }  // with ld and stride resolved
  std::int64_t size() const { return shape_.batches * shape_.rows * shape_.columns; }
  void* data() const { return buffer_.data(); }
  std::size_t bytes() const { return buffer_.bytes(); }  // first to last element, gaps between included

  // Sets the initial content from value(batch, row, column), a double rounded to the type (integers: an int64).
  template <typename F>
  Tensor& fill(F value) {
    for (std::int64_t b = 0; b < shape_.batches; ++b)
      for (std::int64_t r = 0; r < shape_.rows; ++r)
        for (std::int64_t c = 0; c < shape_.columns; ++c) {
          if (is_integer(type_)) {
            set_bits(b, r, c, static_cast<std::uint64_t>(static_cast<std::int64_t>(value(b, r, c))));
          } else {
            set_bits(b, r, c, encode(type_, static_cast<double>(value(b, r, c))));
          }
        }
    return *this;
  }
  // The same from packed values in row order.
  template <typename T>
  Tensor& assign(const std::vector<T>& values) {
    return fill([&](std::int64_t b, std::int64_t r, std::int64_t c) {
      return values[static_cast<std::size_t>((b * shape_.rows + r) * shape_.columns + c)];
    });
  }
  Tensor& set(std::int64_t b, std::int64_t r, std::int64_t c, double value) { return set_bits(b, r, c, encode(type_, value)); }
  Tensor& set_bits(std::int64_t b, std::int64_t r, std::int64_t c, std::uint64_t bits);
  Tensor& poison();  // 0xFF in every element of the initial content

  void upload();
  void download();

  double at(std::int64_t b, std::int64_t r, std::int64_t c) const { return decode(type_, bits(b, r, c)); }
  std::uint64_t bits(std::int64_t b, std::int64_t r, std::int64_t c) const { return load(now_, b, r, c); }
  std::uint64_t initial_bits(std::int64_t b, std::int64_t r, std::int64_t c) const { return load(initial_, b, r, c); }
  std::int64_t integer(std::int64_t b, std::int64_t r, std::int64_t c) const;
  std::int64_t integer(std::int64_t i) const;   // i counts packed elements
  std::vector<double> initial_values() const;   // packed
  std::vector<double> values() const;           // packed
  std::vector<std::uint64_t> all_bits() const;  // packed

  bool unchanged() const { return initial_ == now_; }  // in every byte, gaps included
  // "" when guards and gaps were whole at the last download(), else what was hit.
  std::string damage() const;

 private:
  std::size_t offset(std::int64_t b, std::int64_t r, std::int64_t c) const {
    return static_cast<std::size_t>((b * shape_.stride + r * shape_.ld + c) * width_);
  }
  std::uint64_t load(const std::vector<unsigned char>& from, std::int64_t b, std::int64_t r, std::int64_t c) const;

  std::string name_;
  std::int32_t type_;
  int width_;
  Shape shape_;
  Buffer buffer_;
  std::vector<unsigned char> initial_, now_;
  std::string guards_;      // damage of the guards at the last download()
  std::vector<bool> used_;  // per element: part of the tensor, not of a gap; empty when there is no gap
};

}  // namespace ggm_test
