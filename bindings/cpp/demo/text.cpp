#include "text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>

namespace demo {
namespace {

bool is_letter(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c >= 128;
}
bool is_space(unsigned char c) { return c <= ' '; }
unsigned char lower(unsigned char c) { return c >= 'A' && c <= 'Z' ? static_cast<unsigned char>(c - 'A' + 'a') : c; }

std::string read_file(const std::string& path) {
  // A directory opens like a file and only fails later.
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) throw std::runtime_error("'" + path + "' is a folder: name a text file");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open '" + path + "': " + std::strerror(errno != 0 ? errno : ENOENT));
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) throw std::runtime_error("cannot read '" + path + "'");
  return bytes;
}

}  // namespace

Text read_text(const std::string& path) {
  const std::string bytes = read_file(path);
  Text text;
  for (std::size_t i = 0; i < bytes.size();) {
    const auto first = static_cast<unsigned char>(bytes[i]);
    if (is_space(first)) {
      ++i;
      continue;
    }
    std::uint64_t hash = mix(lower(first));
    ++i;
    if (is_letter(first))
      for (; i < bytes.size() && is_letter(static_cast<unsigned char>(bytes[i])); ++i)
        hash = mix(hash, lower(static_cast<unsigned char>(bytes[i])));
    text.tokens.push_back(hash);
  }
  if (text.tokens.empty()) throw std::runtime_error("'" + path + "' has no words: name a text file");
  std::vector<std::uint64_t> sorted = text.tokens;
  std::sort(sorted.begin(), sorted.end());
  text.different = std::unique(sorted.begin(), sorted.end()) - sorted.begin();
  return text;
}

}  // namespace demo
