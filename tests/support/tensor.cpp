#include "support/tensor.h"

#include <cstring>

namespace ggm_test {
namespace {

Shape resolve(Shape shape) {
  if (shape.ld == 0) shape.ld = shape.columns;
  if (shape.stride == 0) shape.stride = shape.rows * shape.ld;
  return shape;
}

// Elements from the first to one past the last.
std::int64_t span(const Shape& s) {
  if (s.batches == 0 || s.rows == 0 || s.columns == 0) return 0;
  return (s.batches - 1) * s.stride + (s.rows - 1) * s.ld + s.columns;
}

}  // namespace

Tensor::Tensor(const Backend& backend, std::string name, std::int32_t type, Shape shape, std::int64_t misalign)
    : name_(std::move(name)),
      type_(type),
      width_(bytes_of(type)),
      shape_(resolve(shape)),
      buffer_(backend, static_cast<std::size_t>(span(shape_) * width_), static_cast<std::size_t>(misalign * width_)),
      initial_(static_cast<std::size_t>(span(shape_) * width_), kPoison) {
  if (span(shape_) > size()) {
    used_.assign(static_cast<std::size_t>(span(shape_)), false);
    for (std::int64_t b = 0; b < shape_.batches; ++b)
      for (std::int64_t r = 0; r < shape_.rows; ++r)
        for (std::int64_t c = 0; c < shape_.columns; ++c) used_[offset(b, r, c) / static_cast<std::size_t>(width_)] = true;
    for (std::size_t i = 0; i < used_.size(); ++i)
      if (!used_[i]) std::memset(&initial_[i * static_cast<std::size_t>(width_)], kCanary, static_cast<std::size_t>(width_));
  }
  now_ = initial_;
}

Tensor& Tensor::set_bits(std::int64_t b, std::int64_t r, std::int64_t c, std::uint64_t bits) {
  std::memcpy(&initial_[offset(b, r, c)], &bits, static_cast<std::size_t>(width_));
  return *this;
}

Tensor& Tensor::poison() {
  for (std::int64_t b = 0; b < shape_.batches; ++b)
    for (std::int64_t r = 0; r < shape_.rows; ++r)
      if (shape_.columns > 0)
        std::memset(&initial_[offset(b, r, 0)], kPoison, static_cast<std::size_t>(shape_.columns * width_));
  return *this;
}

void Tensor::upload() {
  now_ = initial_;
  buffer_.write(initial_.data());
}

void Tensor::download() { guards_ = buffer_.damage(now_.data()); }

std::uint64_t Tensor::load(const std::vector<unsigned char>& from, std::int64_t b, std::int64_t r, std::int64_t c) const {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &from[offset(b, r, c)], static_cast<std::size_t>(width_));
  return bits;
}

std::int64_t Tensor::integer(std::int64_t b, std::int64_t r, std::int64_t c) const {
  const std::uint64_t raw = bits(b, r, c);
  if (type_ == kInt32) return static_cast<std::int32_t>(raw);
  return static_cast<std::int64_t>(raw);
}

std::int64_t Tensor::integer(std::int64_t i) const {
  const std::int64_t row = i / shape_.columns;
  return integer(row / shape_.rows, row % shape_.rows, i % shape_.columns);
}

std::vector<double> Tensor::initial_values() const {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(size()));
  for (std::int64_t b = 0; b < shape_.batches; ++b)
    for (std::int64_t r = 0; r < shape_.rows; ++r)
      for (std::int64_t c = 0; c < shape_.columns; ++c) out.push_back(decode(type_, initial_bits(b, r, c)));
  return out;
}

std::vector<double> Tensor::values() const {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(size()));
  for (std::uint64_t raw : all_bits()) out.push_back(decode(type_, raw));
  return out;
}

std::vector<std::uint64_t> Tensor::all_bits() const {
  std::vector<std::uint64_t> out;
  out.reserve(static_cast<std::size_t>(size()));
  for (std::int64_t b = 0; b < shape_.batches; ++b)
    for (std::int64_t r = 0; r < shape_.rows; ++r)
      for (std::int64_t c = 0; c < shape_.columns; ++c) out.push_back(bits(b, r, c));
  return out;
}

std::string Tensor::damage() const {
  if (!guards_.empty()) return name_ + ": " + guards_;
  const std::size_t width = static_cast<std::size_t>(width_);
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (used_[i]) continue;
    for (std::size_t j = 0; j < width; ++j)
      if (now_[i * width + j] != kCanary) return name_ + ": wrote into the gap between rows at element " + std::to_string(i);
  }
  return "";
}

}  // namespace ggm_test
