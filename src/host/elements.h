// Runs of elements of any type to and from the accumulator type T (float; double for float64 problems). Rounding to nearest
// even. Used by everything in this folder that touches a tensor.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/types.h"
#include "host/family.h"

namespace ggm::host {

// Longest run that the callers of this folder hold in a buffer on their stack.
inline constexpr int kRun = 256;

inline const char* element(const void* base, Type type, std::int64_t index) {
  return static_cast<const char*>(base) + index * bytes_of(type);
}
inline char* element(void* base, Type type, std::int64_t index) { return static_cast<char*>(base) + index * bytes_of(type); }

template <typename T>
inline constexpr Type kTypeOf = sizeof(T) == 8 ? Type::float64 : Type::float32;

// out[i] = T(base[index + i]), i < n.
template <typename T>
void load(const Family& family, Type type, const void* base, std::int64_t index, std::int64_t n, T* out) {
  const char* from = element(base, type, index);
  if (type == kTypeOf<T>) {
    std::memcpy(out, from, n * sizeof(T));
    return;
  }
  if constexpr (sizeof(T) == sizeof(float)) {
    // float64 never meets float accumulators (the problem refuses it).
    const auto* bits = reinterpret_cast<const std::uint16_t*>(from);
    if (type == Type::bfloat16)
      family.float_from_bfloat16(bits, n, out);
    else
      family.float_from_float16(bits, n, out);
  } else {
    float run[kRun];
    for (std::int64_t done = 0; done < n; done += kRun) {
      const std::int64_t count = n - done < kRun ? n - done : kRun;
      load(family, type, base, index + done, count, run);
      for (std::int64_t i = 0; i < count; ++i) out[done + i] = run[i];
    }
  }
}

// The same without a copy where none is needed: returns the elements themselves or `buffer`, filled.
template <typename T>
const T* view(const Family& family, Type type, const void* base, std::int64_t index, std::int64_t n, T* buffer) {
  if (type == kTypeOf<T>) return reinterpret_cast<const T*>(element(base, type, index));
  load(family, type, base, index, n, buffer);
  return buffer;
}

// base[index + i] = round(in[i]), i < n.
template <typename T>
void store(const Family& family, Type type, void* base, std::int64_t index, std::int64_t n, const T* in) {
  char* to = element(base, type, index);
  if (type == kTypeOf<T>) {
    std::memmove(to, in, n * sizeof(T));
    return;
  }
  if constexpr (sizeof(T) == sizeof(float)) {
    auto* bits = reinterpret_cast<std::uint16_t*>(to);
    if (type == Type::bfloat16)
      family.bfloat16_from_float(in, n, bits);
    else
      family.float16_from_float(in, n, bits);
  } else {
    float run[kRun];
    for (std::int64_t done = 0; done < n; done += kRun) {
      const std::int64_t count = n - done < kRun ? n - done : kRun;
      for (std::int64_t i = 0; i < count; ++i) run[i] = static_cast<float>(in[done + i]);
      store(family, type, base, index + done, count, run);
    }
  }
}

// values[i] = T(round(values[i])), n <= kRun; Type::none and T's own type leave them.
template <typename T>
void round_to(const Family& family, Type type, std::int64_t n, T* values) {
  if (type == Type::none || type == kTypeOf<T>) return;
  alignas(8) char rounded[kRun * sizeof(float)];
  store(family, type, rounded, 0, n, values);
  load(family, type, rounded, 0, n, values);
}

inline void store_zeros(Type type, void* base, std::int64_t index, std::int64_t n) {
  if (n > 0) std::memset(element(base, type, index), 0, n * bytes_of(type));  // base may be null when there is nothing
}

}  // namespace ggm::host
