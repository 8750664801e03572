// One measured contender of one cell: a JSON line and a line of the printed table.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "cell_data.h"
#include "reference.h"
#include "timing.h"

namespace ggm_bench {

// The floor's read rate, bytes a millisecond: the constant of the targets, not this run's.
constexpr double kReadBytesPerMs = 4.4e9;

// max(FLOPs / dense rate, bytes / read rate); without a dense product the bytes alone.
double floor_ms(const Work& work, double dense_ms);

struct Record {
  const Cell* cell = nullptr;
  const Contender* contender = nullptr;
  Work work;
  Times times;
  double dense_ms = 0;  // 0: none
  double floor = 0;
  std::vector<PartError> errors;
};

class RecordWriter {
 public:
  // An empty path writes no file. Throws when the file cannot be opened. `environment` is further JSON fields of the first
  // lines: versions and the command.
  RecordWriter(const std::string& path, const std::string& source_id, const std::string& device, int rounds,
               const std::string& environment);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  void write(const Record& record);
  void write_bandwidth(const std::string& contender, double bytes, const Times& times);

 private:
  std::string tail() const;

  std::FILE* file_ = nullptr;
  std::string source_id_, device_, date_, environment_;
  int rounds_ = 0;
};

void print_table_head();

}  // namespace ggm_bench
