#include "cells.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>

namespace ggm_bench {

namespace {

struct Row {
  std::string operation, dtype, workload, product, routing;
  std::int64_t tokens = 0;
  double experts_touched = 0, dense_tflops = 0;
};

std::vector<Row> read_rows(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::string line;
  std::getline(file, line);
  std::map<std::string, std::size_t> column;
  const auto split = [](const std::string& text) {
    std::vector<std::string> fields;
    std::stringstream stream(text);
    for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
    fields.resize(11);  // trailing empty fields
    return fields;
  };
  const auto names = split(line);
  for (std::size_t i = 0; i < names.size(); ++i) column[names[i]] = i;
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const auto f = split(line);
    const auto number = [&](const char* name) { return f[column.at(name)].empty() ? 0 : std::stod(f[column.at(name)]); };
    rows.push_back({f[column.at("operation")], f[column.at("dtype")], f[column.at("workload")], f[column.at("product")],
                    f[column.at("routing")], std::stoll(f[column.at("tokens")]), number("experts_touched"),
                    number("dense_tflops")});
  }
  return rows;
}

bool has(const std::vector<std::string>& list, const std::string& word) {
  return list.empty() || std::find(list.begin(), list.end(), word) != list.end();
}

// Whose rows of the file an operation takes.
const std::map<std::string, std::string>& relatives() {
  static const std::map<std::string, std::string> map = {
      {"grouped", "grouped"},     {"grouped_masked", "grouped"},  {"grouped_general", "grouped"},
      {"grouped_k", "grouped_k"}, {"moe_forward", "moe_forward"}, {"moe_backward", "moe_forward"},
      {"route", "moe_forward"},   {"permute", "moe_forward"},     {"unpermute", "moe_forward"}};
  return map;
}

// The row as a cell of `operation`, or false when the operation has no such cell.
bool as_cell(const std::string& operation, const Row& row, Cell& cell) {
  cell = {operation, &find_workload(row.workload), row.product, row.tokens, row.routing};
  cell.experts_touched = row.experts_touched;
  cell.dense_tflops = row.dense_tflops;
  const bool large = cell.size() == SizeClass::train || cell.size() == SizeClass::prefill;
  if (operation == "moe_backward" && !large) return false;
  if ((operation == "grouped_masked" || operation == "grouped_general") && cell.size() == SizeClass::train) {
    // The targets compare these paths with equal groups.
    if (cell.routing != "uniform") return false;
    cell.routing = "equal";
    cell.experts_touched = 0;
  }
  // Unpermute belongs to the product that writes hidden-wide rows.
  if (operation == "unpermute" && cell.workload->down.n != 0) cell.product = "down";
  return true;
}

}  // namespace

const std::vector<std::string>& all_operations() {
  static const std::vector<std::string> list = {"grouped",      "grouped_masked", "grouped_general", "grouped_k", "moe_forward",
                                                "moe_backward", "route",          "permute",         "unpermute"};
  return list;
}

std::string Cell::text() const {
  std::string text =
      operation + " " + workload->name + " " + product + " T=" + std::to_string(tokens) + " " + routing + " " + name_of(dtype);
  return variant == "plain" ? text : text + " " + variant;
}

namespace {

// Every operation on every seeded shape: rows as the file of the peers would have them.
std::vector<Row> seeded_rows() {
  std::vector<Row> rows;
  for (const Workload& w : seeded_workloads()) {
    for (const char* operation : {"grouped", "grouped_k", "moe_forward"}) {
      rows.push_back({operation, "bf16", w.name, "up", "uniform", w.tokens, 0, 0});
    }
  }
  return rows;
}

void append_cells(const std::vector<Row>& rows, const Selection& selection, std::vector<Cell>& cells) {
  const std::vector<std::string> variants = selection.variants.empty() ? std::vector<std::string>{"plain"} : selection.variants;
  const std::vector<std::string> dtypes = selection.dtypes.empty() ? std::vector<std::string>{"bf16"} : selection.dtypes;
  for (const auto& operation : all_operations()) {
    if (!has(selection.operations, operation)) continue;
    for (const Row& row : rows) {
      Cell cell;
      if (row.operation != relatives().at(operation) || row.dtype != "bf16" || !as_cell(operation, row, cell)) continue;
      if (!has(selection.workloads, row.workload) || !has(selection.products, cell.product) ||
          !has(selection.routings, cell.routing) || !has(selection.classes, name_of(cell.size()))) {
        continue;
      }
      for (const auto& dtype : operation == "route" ? std::vector<std::string>{"int32"} : dtypes) {
        cell.dtype = dtype == "int32" ? Dtype::int32 : dtype_of(dtype);
        for (const auto& variant : variants) {
          if (variant != "plain" && operation != "grouped") continue;  // the other operations have the plain form alone
          cell.variant = variant;
          cells.push_back(cell);
        }
      }
    }
  }
}

auto weights_of(const Cell& cell) { return std::tie(cell.dtype, cell.workload->name, cell.product, cell.variant); }

}  // namespace

std::vector<Cell> select_cells(const std::string& peers_csv, const std::vector<Selection>& selections) {
  std::vector<Cell> cells;
  for (const Selection& selection : selections) {
    for (const auto& operation : selection.operations) {
      if (!relatives().count(operation)) throw std::runtime_error("operation " + operation + " is not known");
    }
    append_cells(selection.seeded ? seeded_rows() : read_rows(peers_csv), selection, cells);
  }
  std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return weights_of(a) < weights_of(b); });
  std::set<std::string> seen;
  std::vector<Cell> once;
  for (const Cell& cell : cells) {
    if (seen.insert(cell.text()).second) once.push_back(cell);
  }
  return once;
}

double expected_seconds(const Cell& cell) {
  const bool products = cell.operation.rfind("grouped", 0) == 0 || cell.operation.rfind("moe", 0) == 0;
  if (!products) return 0.3;
  // 20 timed rounds and some before; of the library one or two products at two thirds of the dense rate, two dense ones.
  const double calls = 26, rate = cell.dtype == Dtype::float32 ? 4.5e13 : 6e14;
  const double weight = cell.operation == "moe_forward" ? 5 : cell.operation == "moe_backward" ? 6 : 3.5;
  const Product& shape = cell.shape();
  return 0.4 + calls * weight * 2 * static_cast<double>(cell.rows()) * static_cast<double>(shape.n * shape.k) / rate;
}

std::vector<Cell> part_of(const std::vector<Cell>& cells, int part, int parts) {
  struct Group {
    std::size_t first = 0, end = 0;
    double seconds = 0;
  };
  std::vector<Group> groups;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i == 0 || weights_of(cells[i - 1]) != weights_of(cells[i])) groups.push_back({i, i, 0});
    groups.back().end = i + 1;
    groups.back().seconds += expected_seconds(cells[i]);
  }
  std::vector<std::size_t> order(groups.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return groups[a].seconds > groups[b].seconds; });
  // The longest group first, each to the part that has least so far.
  std::vector<double> load(parts, 0.0);
  std::vector<int> owner(groups.size());
  for (std::size_t g : order) {
    owner[g] = static_cast<int>(std::min_element(load.begin(), load.end()) - load.begin());
    load[owner[g]] += groups[g].seconds;
  }
  std::vector<Cell> mine;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (owner[g] == part - 1) mine.insert(mine.end(), cells.begin() + groups[g].first, cells.begin() + groups[g].end);
  }
  return mine;
}

}  // namespace ggm_bench
