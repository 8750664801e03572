// The command line of the bench.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cells.h"

namespace ggm_bench {

struct Options {
  std::vector<Selection> selections{Selection{}};  // their union
  std::vector<std::string> contenders;             // empty: all but rows; ggm and dense always run
  int rounds = 20;                                 // timed rounds, after two that are not
  double budget_seconds = 0;                       // no further cell starts after that long, baselines go first; 0: no limit
  double contender_seconds = 2;                    // a baseline that would take longer in a cell is left out of it
  bool graph = true;                               // replay CUDA graphs; false: plain launches
  int part = 1, parts = 1;                         // measure this part of the cells
  bool list = false;                               // print the cells and stop; needs no GPU
  std::int32_t kernel_family = GGM_KERNELS_AUTO;
  std::string output;     // file of JSON lines; empty: none
  std::string source_id;  // stamp of the sources, from record_bench.py
  std::string peers = GGM_BENCH_PEERS;

  bool wants(const std::string& contender) const;
};

// Throws std::runtime_error with a text for the user; sets `help` when only that was asked.
Options parse_options(int argc, char** argv, bool& help);
const char* usage();

}  // namespace ggm_bench
