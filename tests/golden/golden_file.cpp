#include "golden/golden_file.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace golden {
namespace {

Array array_of(const std::string& direction, std::istringstream& words) {
  Array array;
  array.wanted = direction == "out";
  std::string dims;
  if (!(words >> array.field >> array.type >> dims)) throw std::runtime_error("a field, a type and a shape are needed");
  for (std::int64_t number; words >> number;) array.numbers.push_back(number);
  if (!words.eof()) throw std::runtime_error("a number is needed");
  std::size_t count = 1;
  std::istringstream lengths(dims);
  for (std::string length; std::getline(lengths, length, 'x');) count *= std::stoul(length);
  if (array.numbers.size() != count)
    throw std::runtime_error(std::to_string(array.numbers.size()) + " numbers for the shape " + dims);
  return array;
}

}  // namespace

std::vector<Case> read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be opened");
  std::vector<Case> cases;
  bool open = false;
  std::size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    std::istringstream words(line);
    std::string first;
    if (!(words >> first) || first[0] == '#') continue;
    try {
      if (first == "case" && !open) {
        cases.push_back({line.substr(5), "", {}, {}});
        open = true;
      } else if (!open) {
        throw std::runtime_error("outside of a case");
      } else if (first == "operation") {
        words >> cases.back().operation;
      } else if (first == "set") {
        std::pair<std::string, std::int64_t> field;
        if (!(words >> field.first >> field.second)) throw std::runtime_error("a field and a number are needed");
        cases.back().problem.push_back(field);
      } else if (first == "in" || first == "out") {
        cases.back().arrays.push_back(array_of(first, words));
      } else if (first == "end") {
        open = false;
      } else {
        throw std::runtime_error("unknown word");
      }
    } catch (const std::exception& error) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  if (open) throw std::runtime_error(path + " ends inside of a case");
  return cases;
}

}  // namespace golden
