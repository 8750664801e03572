// The golden file, read into memory. README.md has its format.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace golden {

struct Array {
  bool wanted = false;  // an "out" line: what the field must hold after the call. Else what it holds before
  std::string field;    // of the tensors; with ".i" behind it the matrix of group i, whose address the field holds
  std::string type;
  std::vector<std::int64_t> numbers;
};

struct Case {
  std::string title, operation;
  std::vector<std::pair<std::string, std::int64_t>> problem;
  std::vector<Array> arrays;
};

// Throws std::runtime_error with the line when the file is not there or not of the format.
std::vector<Case> read(const std::string& path);

}  // namespace golden
