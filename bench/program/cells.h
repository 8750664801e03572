// What is measured: a cell is one operation on one workload, product, number of tokens, routing and element type. The cells are
// the rows of peers-h200.csv; operations that the file does not have borrow the rows of their nearest relative.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "types.h"
#include "workloads.h"

namespace ggm_bench {

struct Cell {
  std::string operation;
  const Workload* workload = nullptr;
  std::string product;  // up, down
  std::int64_t tokens = 0;
  std::string routing;  // uniform, zipf, equal
  Dtype dtype = Dtype::bf16;
  std::string variant = "plain";  // plain, kn, float32-output, unaligned
  double experts_touched = 0;     // of peers-h200.csv; 0: not given there
  double dense_tflops = 0;        // of a 16-bit dense product beside the peers; 0: not given there

  std::int64_t rows() const { return tokens * workload->top_k; }
  const Product& shape() const { return product == "up" ? workload->up : workload->down; }
  SizeClass size() const { return size_class(*workload, tokens); }
  // Eight inputs and routings take turns at decode sizes, so that weights come from memory and not from the cache.
  int sets() const { return tokens <= 256 ? 8 : 1; }
  bool kn() const { return variant == "kn"; }
  Dtype output_dtype() const { return variant == "float32-output" ? Dtype::float32 : dtype; }
  // Elements between rows of `length`: packed, or one more where rows must not be multiples of 16 bytes.
  std::int64_t pitch(std::int64_t length) const { return variant == "unaligned" ? length + 1 : length; }
  std::string text() const;
};

// What of the cells is wanted; an empty list means all.
struct Selection {
  std::vector<std::string> operations, workloads, products, classes, routings, dtypes, variants;
  bool seeded = false;  // the shapes of shapes12.json instead of the rows of the peers
};

// The cells of all selections, each once, in an order that makes each weights tensor once: by dtype, workload, product,
// variant.
std::vector<Cell> select_cells(const std::string& peers_csv, const std::vector<Selection>& selections);

// What the library and the dense products of a cell take with the making of data and reference, roughly.
double expected_seconds(const Cell& cell);

// Part `part` (1 .. parts) of the cells, for GPUs that work beside each other: cells of one weights tensor stay together, and
// the parts are expected to take equally long.
std::vector<Cell> part_of(const std::vector<Cell>& cells, int part, int parts);

const std::vector<std::string>& all_operations();

}  // namespace ggm_bench
