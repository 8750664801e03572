// Errors beside times: sampled elements of a cell's results in float64, from the same inputs, and the relative Frobenius norm
// of a contender's difference to them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cell_data.h"
#include "contender.h"
#include "gather.h"

namespace ggm_bench {

// Sampled elements of one result of set 0.
struct Expected {
  std::string part;
  std::vector<std::int64_t> row, column;
  std::vector<double> value;
  void add(std::int64_t r, std::int64_t c, double v) {
    row.push_back(r);
    column.push_back(c);
    value.push_back(v);
  }
};

// One entry a result; empty for route, which is compared as integers.
std::vector<Expected> expected_of(const CellData& data, Gather& gather);

struct PartError {
  std::string part;
  double rel_err = 0;
};
// Runs the contender once on poisoned outputs and compares. Empty when it has nothing to check.
std::vector<PartError> measure_error(const Contender& contender, const std::vector<Expected>& expected, const CellData& data,
                                     Gather& gather);

}  // namespace ggm_bench
