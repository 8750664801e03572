#include "options.h"

#include <cerrno>
#include <cstdlib>
#include <string>

#include "ggm/ggm.h"

namespace demo {
namespace {

std::int64_t parse_number(const std::string& option, const char* text, std::int64_t least, std::int64_t most) {
  errno = 0;
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  if (end == text || *end != '\0' || errno != 0 || value < least || value > most)
    throw UsageError(option + " " + text + ": expected a whole number from " + std::to_string(least) + " to " +
                     std::to_string(most));
  return value;
}

std::int32_t parse_backend(const std::string& text) {
  if (text == "host") return GGM_BACKEND_HOST;
  if (text == "cuda") return GGM_BACKEND_CUDA;
  if (text == "auto") return GGM_BACKEND_AUTO;
  throw UsageError("--backend " + text + ": expected host, cuda or auto");
}

std::int32_t parse_type(const std::string& text) {
  if (text == "float32") return GGM_TYPE_FLOAT32;
  if (text == "bfloat16") return GGM_TYPE_BFLOAT16;
  throw UsageError("--type " + text + ": expected float32 or bfloat16");
}

// Handles the options that take a value; false when `option` is none of them.
bool parse_valued(Options& o, const std::string& option, const char* value) {
  constexpr std::int64_t kFeatures = 1 << 16;
  if (option == "--backend") {
    o.backend = parse_backend(value);
  } else if (option == "--type") {
    o.type = parse_type(value);
  } else if (option == "--tokens") {
    o.tokens = parse_number(option, value, 1, 1 << 20);
  } else if (option == "--hidden") {
    o.hidden = parse_number(option, value, 1, kFeatures);
  } else if (option == "--out-features") {
    o.out_features = parse_number(option, value, 1, kFeatures);
  } else if (option == "--experts") {
    o.experts = parse_number(option, value, 1, 4096);
  } else if (option == "--top-k") {
    o.top_k = parse_number(option, value, 1, 4096);
  } else if (option == "--seed") {
    o.seed = static_cast<std::uint64_t>(parse_number(option, value, 0, INT64_MAX));
  } else {
    return false;
  }
  return true;
}

bool takes_value(const std::string& option) {
  for (const char* known : {"--backend", "--type", "--tokens", "--hidden", "--out-features", "--experts", "--top-k", "--seed"})
    if (option == known) return true;
  return false;
}

}  // namespace

const char* usage() {
  return "Usage: ggm_demo [options] [file]\n"
         "\n"
         "Turns the words of a text file into vectors, sends each to its experts, runs one Mixture-of-Experts layer\n"
         "forward and backward, and checks every result against float64. The file is README.md unless you name one.\n"
         "\n"
         "  --backend host|cuda|auto  where to run (default auto: CUDA when there is a usable GPU)\n"
         "  --tokens N                tokens; a shorter text is repeated (default 512 on the host, 4096 on CUDA)\n"
         "  --seed N                  seed of the router and the weights (default 1)\n"
         "  --type float32|bfloat16   element type (default float32 on the host, bfloat16 on CUDA)\n"
         "  --hidden N                features of a token (default 1024 on the host, 2048 on CUDA)\n"
         "  --out-features N          features of a result (default 1024 on the host, 2048 on CUDA)\n"
         "  --experts N               experts (default 64)\n"
         "  --top-k N                 experts of a token (default 8)\n"
         "  --help                    this text\n"
         "\n"
         "Exit code: 0 all is well, 1 an error bound was exceeded or bits differed, 2 the demo could not run.\n";
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      options.help = true;
      return options;
    }
    if (argument.empty() || argument[0] != '-') {
      if (!options.file.empty()) throw UsageError("two files given, '" + options.file + "' and '" + argument + "': name one");
      options.file = argument;
      continue;
    }
    // --option=value and --option value.
    std::string value;
    const std::size_t equals = argument.find('=');
    const bool joined = equals != std::string::npos;
    if (joined) {
      value = argument.substr(equals + 1);
      argument.resize(equals);
    }
    if (!takes_value(argument)) throw UsageError("unknown option " + argument);
    if (!joined) {
      if (i + 1 >= argc) throw UsageError(argument + " needs a value");
      value = argv[++i];
    }
    parse_valued(options, argument, value.c_str());
  }
  if (options.top_k > options.experts)
    throw UsageError("--top-k " + std::to_string(options.top_k) + ": a token cannot choose more than the " +
                     std::to_string(options.experts) + " experts there are");
  return options;
}

Options with_defaults(Options o, std::int32_t backend) {
  const bool cuda = backend == GGM_BACKEND_CUDA;
  o.backend = backend;
  if (o.file.empty()) o.file = GGM_DEMO_DEFAULT_FILE;
  if (o.type == 0) o.type = cuda ? GGM_TYPE_BFLOAT16 : GGM_TYPE_FLOAT32;
  if (o.tokens == 0) o.tokens = cuda ? 4096 : 512;
  if (o.hidden == 0) o.hidden = cuda ? 2048 : 1024;
  // OLMoE's up product: gate and up projection of an intermediate size of 1024, side by side.
  if (o.out_features == 0) o.out_features = cuda ? 2 * 1024 : 1024;
  return o;
}

}  // namespace demo
