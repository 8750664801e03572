// Command line of the demo. Used by main.cpp alone; everything else gets the finished Options.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace demo {

// Zero in a number means: the default of the backend (see with_defaults).
struct Options {
  std::string file;
  std::int32_t backend = 0;  // GGM_BACKEND_*
  std::int32_t type = 0;     // GGM_TYPE_FLOAT32 or GGM_TYPE_BFLOAT16
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;        // in_features
  std::int64_t out_features = 0;  // out_features
  std::int64_t experts = 64;
  std::int64_t top_k = 8;
  std::uint64_t seed = 1;
  bool help = false;
};

// A wrong command line; what() says which option and why.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

const char* usage();

// Throws UsageError.
Options parse_options(int argc, char** argv);

// Fills what the user left open: OLMoE's layer on a GPU, a layer that two cores finish in seconds on the host.
Options with_defaults(Options options, std::int32_t backend);

}  // namespace demo
