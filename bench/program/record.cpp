#include "record.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <stdexcept>

namespace ggm_bench {

namespace {

// %.6g keeps times well below their noise; counts need all their digits.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}
std::string count(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.0f", value);
  return text;
}
std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

// The worst part; not a number wins, so that it cannot hide. -1: nothing was checked.
double worst(const std::vector<PartError>& errors) {
  double worst = -1;
  for (const PartError& e : errors) {
    if (std::isnan(e.rel_err)) return e.rel_err;
    worst = std::max(worst, e.rel_err);
  }
  return worst;
}

// What the errors say: null for nothing checked, and a text for a result that is not a number.
std::string error_text(double error) {
  if (error < 0) return "null";
  return std::isfinite(error) ? number(error) : quoted("not finite");
}

std::string short_text(double error) {
  char text[24];
  std::snprintf(text, sizeof text, "%.2e", error);
  return error < 0 ? "-" : text;
}

}  // namespace

double floor_ms(const Work& work, double dense_ms) {
  const double memory = work.bytes / kReadBytesPerMs;
  if (dense_ms == 0 || work.dense_flops == 0) return memory;
  return std::max(work.flops / work.dense_flops * dense_ms, memory);
}

RecordWriter::RecordWriter(const std::string& path, const std::string& source_id, const std::string& device, int rounds,
                           const std::string& environment)
    : source_id_(source_id), device_(device), date_(today()), environment_(environment), rounds_(rounds) {
  if (path.empty()) return;
  file_ = std::fopen(path.c_str(), "w");
  if (!file_) throw std::runtime_error("--output = " + path + ": cannot be written");
}

RecordWriter::~RecordWriter() {
  if (file_) std::fclose(file_);
}

std::string RecordWriter::tail() const {
  return ", \"rounds\": " + std::to_string(rounds_) + ", \"source_id\": " + quoted(source_id_) +
         ", \"date\": " + quoted(date_) + ", \"device\": " + quoted(device_) + "}\n";
}

void RecordWriter::write(const Record& r) {
  const Cell& cell = *r.cell;
  const double ms = r.times.median_ms, error = worst(r.errors);
  std::string line = "{\"operation\": " + quoted(cell.operation) + ", \"workload\": " + quoted(cell.workload->name) +
                     ", \"product\": " + quoted(cell.product) + ", \"tokens\": " + std::to_string(cell.tokens) +
                     ", \"routing\": " + quoted(cell.routing) + ", \"dtype\": " + quoted(name_of(cell.dtype)) +
                     ", \"combine\": " + quoted(r.contender->combine) + ", \"variant\": " + quoted(cell.variant) +
                     ", \"size_class\": " + quoted(name_of(cell.size())) + ", \"contender\": " + quoted(r.contender->name) +
                     ", \"ms\": " + number(ms) + ", \"ms_min\": " + number(r.times.min_ms) +
                     ", \"ms_max\": " + number(r.times.max_ms) + ", \"flops\": " + count(r.work.flops) +
                     ", \"bytes\": " + count(r.work.bytes);
  line += ", \"dense_ms\": " + (r.dense_ms > 0 ? number(r.dense_ms) : "null") +
          ", \"dense_flops\": " + count(r.work.dense_flops) + ", \"floor_ms\": " + number(r.floor) +
          ", \"fraction\": " + number(r.floor / ms) + ", \"rel_err\": " + error_text(error) + ", \"rel_err_parts\": {";
  for (std::size_t i = 0; i < r.errors.size(); ++i) {
    line += (i ? ", " : "") + quoted(r.errors[i].part) + ": " + error_text(r.errors[i].rel_err);
  }
  line += "}, \"workspace_bytes\": " + std::to_string(r.contender->workspace_bytes) +
          ", \"rows\": " + std::to_string(cell.rows()) + ", \"experts_touched\": " + number(r.work.experts_touched) +
          ", \"launch\": " + quoted(r.times.graph ? "graph" : "direct") + ", \"calls\": " + std::to_string(r.times.calls) +
          tail();
  if (file_) {
    std::fputs(line.c_str(), file_);
    std::fflush(file_);
  }
  const std::string name = r.contender->combine.empty() ? r.contender->name : r.contender->name + " " + r.contender->combine;
  std::printf("%-58s %-32s %10.5f %10.5f %7.3f %8s %8.1f %9.1f %s\n", cell.text().c_str(), name.c_str(), ms, r.floor,
              r.floor / ms, short_text(error).c_str(), static_cast<double>(r.contender->workspace_bytes) / 1048576.0,
              r.work.experts_touched, r.times.graph ? "" : "direct");
  std::fflush(stdout);
}

void RecordWriter::write_bandwidth(const std::string& contender, double bytes, const Times& times) {
  const std::string line = "{\"operation\": \"bandwidth\", \"contender\": " + quoted(contender) +
                           ", \"ms\": " + number(times.median_ms) + ", \"bytes\": " + count(bytes) + environment_ + tail();
  if (file_) std::fputs(line.c_str(), file_);
  std::printf("bandwidth of a %s: %.3f TB/s\n", contender.c_str(), bytes / times.median_ms * 1e-9);
}

void print_table_head() {
  std::printf("%-58s %-32s %10s %10s %7s %8s %8s %9s\n", "cell", "contender", "ms", "floor ms", "floor/t", "rel err",
              "MiB work", "experts");
}

}  // namespace ggm_bench
