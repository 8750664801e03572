#include "run.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "bandwidth.h"
#include "contender.h"

namespace ggm_bench {

namespace {

void append(std::vector<Contender>& to, std::vector<Contender> from) {
  for (Contender& c : from) to.push_back(std::move(c));
}

std::vector<Contender> make_contenders(const Context& context, const Options& options) {
  std::vector<Contender> contenders;
  append(contenders, ggm_products(context));
  append(contenders, ggm_moe(context));
  append(contenders, ggm_rows(context));
  append(contenders, cublas_dense(context));
  const auto baseline = [&](const char* word, std::vector<Contender> (*make)(const Context&)) {
    if (!options.wants(word)) return;
    try {
      append(contenders, make(context));
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s: no %s: %s\n", context.data.cell->text().c_str(), word, e.what());
    }
  };
  baseline("portable", ggm_portable);
  baseline("rows", ggm_forced_rows);
  baseline("loop", cublas_loop);
  baseline("grouped", cublas_grouped);
  baseline("padded", cublas_padded);
  baseline("unfused", unfused);
  return contenders;
}

struct Entry {
  const Contender* contender = nullptr;
  std::vector<PartError> errors;
};

// Checks the contender and makes it ready for timing; false when a baseline is to be left out.
bool prepare(const Contender& contender, const std::vector<Expected>& expected, const CellData& data, Gather& gather,
             const Options& options, std::vector<std::unique_ptr<Timed>>& timed, std::vector<Entry>& entries) {
  const auto leave_out = [&](const std::string& why) {
    std::fprintf(stderr, "%s: %s left out: %s\n", data.cell->text().c_str(), contender.name.c_str(), why.c_str());
    return false;
  };
  const bool dense = contender.flops > 0;
  try {
    Entry entry{&contender, measure_error(contender, expected, data, gather)};
    auto ready = std::make_unique<Timed>(contender, data.sets(), options.graph, data.stream);
    const double seconds = ready->warm_ms() * (options.rounds + 2) * 1e-3;
    if (contender.baseline && !dense && seconds > options.contender_seconds) {
      return leave_out(std::to_string(seconds) + " s for all rounds");
    }
    timed.push_back(std::move(ready));
    entries.push_back(std::move(entry));
    return true;
  } catch (const std::exception& e) {
    if (!contender.baseline || dense) throw;
    cudaGetLastError();
    return leave_out(e.what());
  }
}

constexpr double kHotIntensity = 80;           // FLOPs a byte: half of what a card at its memory's rate multiplies
constexpr std::int64_t kRestingTokens = 4096;  // the power limit is part of what a training batch takes

}  // namespace

void run_cell(const Cell& cell, const Options& options, const Machine& machine, RecordWriter& writer) {
  const CellData data = prepare_cell(cell, *machine.buffers, machine.stream);
  const Context context{data, machine.ggm, *machine.cublas, machine.portable};
  const std::vector<Contender> contenders = make_contenders(context, options);
  Gather gather(machine.stream);
  const auto expected = expected_of(data, gather);
  std::vector<std::unique_ptr<Timed>> timed;
  std::vector<Entry> entries;
  for (const Contender& c : contenders) prepare(c, expected, data, gather, options, timed, entries);
  Record record;
  record.cell = &cell;
  record.work = count_work(data);
  Rests rests;
  rests.wanted = cell.tokens <= kRestingTokens && record.work.flops > kHotIntensity * record.work.bytes;
  // Where the table has the rate of this type.
  if (cell.dense_tflops > 0 && cell.dtype != Dtype::float32)
    rests.dense_ms = record.work.dense_flops / cell.dense_tflops * 1e-9;
  run_rounds(timed, options.rounds, rests, *machine.random, machine.stream);
  for (const auto& t : timed) {
    if (t->contender().flops == 0) continue;
    const double ms = t->times().median_ms;
    record.dense_ms = record.dense_ms == 0 ? ms : std::min(record.dense_ms, ms);
  }
  record.floor = floor_ms(record.work, record.dense_ms);
  for (std::size_t i = 0; i < timed.size(); ++i) {
    Record one = record;
    one.contender = entries[i].contender;
    one.times = timed[i]->times();
    one.errors = entries[i].errors;
    // A dense product is one product, also beside an operation of two.
    if (one.contender->flops > 0) {
      one.work.flops = one.contender->flops;
      one.floor = floor_ms(one.work, one.dense_ms);
    }
    writer.write(one);
  }
}

void run_bandwidth(const Options& options, const Machine& machine, RecordWriter& writer) {
  const auto list = bandwidth_contenders(*machine.buffers, machine.stream);
  std::vector<std::unique_ptr<Timed>> timed;
  for (const Bandwidth& b : list) timed.push_back(std::make_unique<Timed>(b.contender, 1, options.graph, machine.stream));
  run_rounds(timed, options.rounds, Rests{}, *machine.random, machine.stream);
  for (std::size_t i = 0; i < list.size(); ++i)
    writer.write_bandwidth(list[i].contender.name, list[i].bytes, timed[i]->times());
}

}  // namespace ggm_bench
