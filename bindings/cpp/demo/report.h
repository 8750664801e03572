// What the demo prints. Everything goes to stdout; progress lines go to stderr.
#pragma once

#include <string>
#include <vector>

#include "ggm/ggm.h"
#include "layer.h"
#include "options.h"
#include "reference.h"
#include "run.h"

namespace demo {

void print_setting(const Options& options, const Text& text, const ggm_info_t& info, const char* device_name);
void print_routing(const Layer& layer);
// What a layer made of gather, products and scatter as separate steps would have stored, and what this one did.
void print_memory(const Layer& layer, const RunResult& run);
void print_times(const Layer& layer, const RunResult& run);

// Both return whether all is well.
bool print_bits(const RunResult& run);
bool print_errors(const std::vector<Check>& checks);

}  // namespace demo
