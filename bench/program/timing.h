// Times contenders against each other: all of them once a round, in a new random order every round, each by events on the
// device. Neighbours share the card's power limit, so a fixed order would favour whoever follows an idle one.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "contender.h"

namespace ggm_bench {

struct Times {
  double median_ms = 0, min_ms = 0, max_ms = 0;  // of one call
  bool graph = false;
  int calls = 0;  // in one timed piece
};

// One contender made ready: warmed up, and captured as a graph of all sets (several times over when that is short).
class Timed {
 public:
  // Throws when the contender fails. With `graph` false, or when it cannot be captured, it is launched plainly.
  Timed(const Contender& contender, int sets, bool graph, cudaStream_t stream);
  ~Timed();
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  void run_once();                             // between two events
  double last_ms() const;                      // of one call, when the stream is done with it
  double warm_ms() const { return warm_ms_; }  // one timed piece, measured while warming up
  void collect(int skip);
  const Times& times() const { return times_; }
  const Contender& contender() const { return contender_; }

 private:
  void launch_all();
  bool capture();
  double piece_ms();

  const Contender& contender_;
  int sets_, cycles_ = 1;
  cudaStream_t stream_;
  cudaGraphExec_t graph_ = nullptr;
  double warm_ms_ = 0;
  std::vector<std::pair<cudaEvent_t, cudaEvent_t>> events_;
  Times times_;
};

// Whether the card is idle for a while after each round. Products of about a millisecond, one after the other without an end,
// run on a card at its power limit, and after long rests on one that has no limit yet. Neither is the card of the peers' table:
// after each round the rest becomes longer or shorter, between none and one round's time, as its fastest dense product took
// more or less than dense_ms. That brings the product near dense_ms; a card that is faster without any rest stays faster.
struct Rests {
  bool wanted = false;
  double dense_ms = 0;  // 0: not known, so the rests stay as they begin
};

// `rounds` timed rounds after some that are not.
void run_rounds(std::vector<std::unique_ptr<Timed>>& timed, int rounds, const Rests& rests, std::mt19937& random,
                cudaStream_t stream);

}  // namespace ggm_bench
