#include "options.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace ggm_bench {

namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  std::stringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

void require(const std::string& option, const std::vector<std::string>& words, const std::vector<std::string>& known) {
  for (const auto& word : words) {
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    std::string list;
    for (const auto& k : known) list += " " + k;
    throw std::runtime_error(option + " = " + word + ": known are" + list);
  }
}

// Small enough for a first look; too few rounds for a record.
void make_quick(Options& options) {
  options.rounds = 5;
  options.selections.back().workloads = {"qwen3-30b"};
  options.contender_seconds = 1;
}

void set_list(Options& options, const std::string& name, const std::vector<std::string>& words) {
  Selection& s = options.selections.back();
  if (name == "--operations") {
    require(name, words, all_operations());
    s.operations = words;
  } else if (name == "--workloads") {
    for (const auto& word : words) find_workload(word);
    s.workloads = words;
  } else if (name == "--products") {
    require(name, words, {"up", "down"});
    s.products = words;
  } else if (name == "--classes") {
    require(name, words, {"one", "decode", "prefill", "train"});
    s.classes = words;
  } else if (name == "--routings") {
    require(name, words, {"uniform", "zipf", "equal"});
    s.routings = words;
  } else if (name == "--dtypes") {
    require(name, words, {"float32", "bf16", "fp16"});
    s.dtypes = words;
  } else if (name == "--variants") {
    require(name, words, {"plain", "kn", "float32-output", "unaligned"});
    s.variants = words;
  } else if (name == "--contenders") {
    require(name, words, {"ggm", "dense", "portable", "rows", "loop", "grouped", "padded", "unfused"});
    options.contenders = words;
  } else {
    throw std::runtime_error("unknown option " + name);
  }
}

void set_part(Options& options, const std::string& value) {
  const std::size_t slash = value.find('/');
  if (slash != std::string::npos) {
    options.part = std::stoi(value.substr(0, slash));
    options.parts = std::stoi(value.substr(slash + 1));
  }
  if (slash == std::string::npos || options.part < 1 || options.part > options.parts) {
    throw std::runtime_error("--part = " + value + ": two numbers I/N, 1 <= I <= N");
  }
}

void set_value(Options& options, const std::string& name, const std::string& value) {
  if (name == "--rounds") {
    options.rounds = std::stoi(value);
    if (options.rounds < 1) throw std::runtime_error("--rounds = " + value + ": at least 1");
  } else if (name == "--budget") {
    options.budget_seconds = std::stod(value);
  } else if (name == "--part") {
    set_part(options, value);
  } else if (name == "--shapes") {
    require(name, {value}, {"peers", "seeded"});
    options.selections.back().seeded = value == "seeded";
  } else if (name == "--contender-seconds") {
    options.contender_seconds = std::stod(value);
  } else if (name == "--launch") {
    require(name, {value}, {"graph", "direct"});
    options.graph = value == "graph";
  } else if (name == "--family") {
    require(name, {value}, {"auto", "portable"});
    options.kernel_family = value == "auto" ? GGM_KERNELS_AUTO : GGM_KERNELS_CUDA_PORTABLE;
  } else if (name == "--output") {
    options.output = value;
  } else if (name == "--source-id") {
    options.source_id = value;
  } else if (name == "--peers") {
    options.peers = value;
  } else {
    set_list(options, name, split(value));
  }
}

}  // namespace

bool Options::wants(const std::string& contender) const {
  if (contenders.empty()) return contender != "rows";
  return std::find(contenders.begin(), contenders.end(), contender) != contenders.end();
}

Options parse_options(int argc, char** argv, bool& help) {
  Options options;
  help = false;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      help = true;
    } else if (name == "--list") {
      options.list = true;
    } else if (name == "--and") {
      options.selections.emplace_back();
    } else if (name == "--quick") {
      make_quick(options);
    } else if (i + 1 < argc) {
      set_value(options, name, argv[++i]);
    } else {
      throw std::runtime_error("option " + name + " is unknown or lacks its value");
    }
  }
  return options;
}

const char* usage() {
  return "ggm_bench [options]; lists are separated by commas\n"
         "  --operations  grouped grouped_masked grouped_general grouped_k moe_forward moe_backward route permute unpermute\n"
         "  --workloads   names of workloads.json            --products  up down\n"
         "  --classes     one decode prefill train           --routings  uniform zipf equal\n"
         "  --dtypes      float32 bf16 fp16 (bf16)           --variants  plain kn float32-output unaligned (plain; grouped "
         "only)\n"
         "  --shapes      peers: the cells of the file; seeded: the shapes of shapes12.json\n"
         "  --and         the options above begin another selection; measured is what any of them selects\n"
         "  --contenders  ggm dense portable rows loop grouped padded unfused; ggm and dense always run, rows only if named\n"
         "  --rounds N    timed rounds (20)                  --budget S  no further cell starts after S seconds, and a cell\n"
         "                has ggm and dense alone when the cells behind it would not fit otherwise\n"
         "  --part I/N    of the cells, for GPUs beside each other\n"
         "  --contender-seconds S  a baseline that would take longer in a cell is left out of it (2)\n"
         "  --launch graph|direct  (graph)                   --family auto|portable  (auto)\n"
         "  --quick       5 rounds of qwen3-30b; give it first, later options change it\n"
         "  --output FILE JSON lines                         --source-id HEX  stamp written into them\n"
         "  --peers FILE  the cells                          --list  print the cells and stop; needs no GPU\n";
}

}  // namespace ggm_bench
