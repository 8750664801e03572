#include "cells.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>

namespace ggm_bench {

namespace {

struct Row {
  std::string operation, dtype, workload, product, routing;
  std::int64_t tokens = 0;
  double experts_touched = 0;
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
    const auto& touched = f[column.at("experts_touched")];
    rows.push_back({f[column.at("operation")], f[column.at("dtype")], f[column.at("workload")], f[column.at("product")],
                    f[column.at("routing")], std::stoll(f[column.at("tokens")]), touched.empty() ? 0 : std::stod(touched)});
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

std::vector<Cell> select_cells(const std::string& peers_csv, const Selection& selection) {
  for (const auto& operation : selection.operations) {
    if (!relatives().count(operation)) throw std::runtime_error("operation " + operation + " is not known");
  }
  const std::vector<std::string> variants = selection.variants.empty() ? std::vector<std::string>{"plain"} : selection.variants;
  const std::vector<std::string> dtypes = selection.dtypes.empty() ? std::vector<std::string>{"bf16"} : selection.dtypes;
  const auto rows = read_rows(peers_csv);
  std::vector<Cell> cells;
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
  std::stable_sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) {
    return std::tie(a.dtype, a.workload, a.product, a.variant) < std::tie(b.dtype, b.workload, b.product, b.variant);
  });
  return cells;
}

}  // namespace ggm_bench
