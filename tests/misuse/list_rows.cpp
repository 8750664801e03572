// Prints the table of misuse, one "subject <tab> what <tab> status" a line, for tests/misuse/check_table.py.
#include <cstdio>

#include "misuse.h"

int main() {
  for (const auto& row : misuse::all_rows())
    std::printf("%s\t%s\t%s\n", row.subject.c_str(), row.what.c_str(), ggm_status_string(row.status));
  for (const auto& row : misuse::free_rows())
    std::printf("%s\t%s\t%s\n", row.subject.c_str(), row.what.c_str(), ggm_status_string(row.status));
  for (const auto& row : misuse::exempt()) std::printf("%s\t%s\texempt\n", row.subject.c_str(), row.why.c_str());
  return 0;
}
