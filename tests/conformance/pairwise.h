// All-pairs selection of a table with many axes: every pair of values of every two axes appears in some row. A full product of
// the axes of one product would be billions of calls; faults nearly always hang on one value or on two together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/inputs.h"

namespace ggm_test {

// levels[i]: values of axis i. Each row of the result has one value of 0 .. levels[i]-1 for each axis. Deterministic.
inline std::vector<std::vector<int>> all_pairs(const std::vector<int>& levels, std::uint32_t seed) {
  const std::size_t axes = levels.size();
  std::vector<std::size_t> first(axes + 1, 0);  // index of an axis' value 0 among all values
  for (std::size_t i = 0; i < axes; ++i) first[i + 1] = first[i] + static_cast<std::size_t>(levels[i]);
  const std::size_t values = first[axes];
  std::vector<char> open(values * values, 0);  // pairs not yet in a row
  for (std::size_t i = 0; i < axes; ++i)
    for (std::size_t j = 0; j < axes; ++j)
      for (std::size_t u = first[i]; i != j && u < first[i + 1]; ++u)
        for (std::size_t v = first[j]; v < first[j + 1]; ++v) open[u * values + v] = 1;

  std::vector<std::vector<int>> rows;
  std::size_t cursor = 0;
  for (;;) {
    while (cursor < open.size() && !open[cursor]) ++cursor;
    if (cursor == open.size()) return rows;
    std::vector<int> row(axes, -1);
    const auto place = [&](std::size_t value) {
      const std::size_t axis =
          static_cast<std::size_t>(std::upper_bound(first.begin(), first.end(), value) - first.begin()) - 1;
      row[axis] = static_cast<int>(value - first[axis]);
    };
    place(cursor / values);
    place(cursor % values);
    for (std::size_t i = 0; i < axes; ++i) {
      if (row[i] >= 0) continue;
      int best = -1, best_gain = -1;
      const std::uint32_t turn = mix(seed, static_cast<std::uint32_t>(rows.size()), static_cast<std::uint32_t>(i));
      for (int step = 0; step < levels[i]; ++step) {
        const int value = static_cast<int>((turn + static_cast<std::uint32_t>(step)) % static_cast<std::uint32_t>(levels[i]));
        int gain = 0;
        for (std::size_t j = 0; j < axes; ++j)
          if (row[j] >= 0)
            gain += open[(first[i] + static_cast<std::size_t>(value)) * values + first[j] + static_cast<std::size_t>(row[j])];
        if (gain > best_gain) best = value, best_gain = gain;
      }
      row[i] = best;
    }
    for (std::size_t i = 0; i < axes; ++i)
      for (std::size_t j = 0; j < axes; ++j)
        if (i != j)
          open[(first[i] + static_cast<std::size_t>(row[i])) * values + first[j] + static_cast<std::size_t>(row[j])] = 0;
    rows.push_back(row);
  }
}

}  // namespace ggm_test
