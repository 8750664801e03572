// A text file as a list of tokens, and the fixed hash that turns tokens into numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace demo {

struct Text {
  std::vector<std::uint64_t> tokens;  // one hash a word or punctuation mark, in order; not empty
  std::int64_t different = 0;         // how many of them are distinct
};

// Reads and splits the file: runs of letters and digits (ASCII case ignored, bytes above 127 count as letters) and single
// other characters. Throws std::runtime_error when the file cannot be read or holds no token.
Text read_text(const std::string& path);

// Finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): every bit of the
// result depends on every bit of the input.
inline std::uint64_t mix(std::uint64_t h) {
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return mix(a + 0x9e3779b97f4a7c15u * (b + 1)); }

// A number in [-1, 1) from a hash: its upper 24 bits, so that the value is exact in float32.
inline float unit(std::uint64_t hash) {
  return static_cast<float>(static_cast<std::int64_t>(hash >> 40) - (1 << 23)) * 0x1p-23f;
}

}  // namespace demo
