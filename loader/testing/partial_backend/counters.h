// SPDX-License-Identifier: Apache-2.0
// Counts the actions of a partial device, and releases its held calls. Tests get the counters of all devices with
// bp_env_get_extension("partial/counters", 1), as an array indexed by the plugin's own device index.
#pragma once

#include <atomic>
#include <cstdint>

namespace backplane::partial {

struct Counters {
  std::atomic<uint64_t> allocations{0};  // of the device's own memory
  std::atomic<uint64_t> releases{0};     // of allocations and imports
  std::atomic<uint64_t> imports{0};      // of host memory
  std::atomic<uint64_t> copies_begun{0};
  std::atomic<uint64_t> copies{0};
  std::atomic<uint64_t> copied_bytes{0};
  std::atomic<uint64_t> copies_during_runs{0};  // copies during which a device ran
  std::atomic<uint64_t> flushes{0};
  std::atomic<uint64_t> queries_begun{0};  // of coverage
  std::atomic<uint64_t> compiles_begun{0};
  std::atomic<uint64_t> compiles{0};
  std::atomic<uint64_t> deserializations{0};
  std::atomic<uint64_t> shape_queries{0};  // calls of output_extents
  std::atomic<uint64_t> outputs_asked{0};  // calls of bp_run_t.output
  std::atomic<uint64_t> binds{0};
  std::atomic<uint64_t> runs{0};
  std::atomic<uint64_t> busy{0};            // runs that were refused because their instance ran
  std::atomic<uint64_t> held{0};            // runs that have begun with the fault "held"
  mutable std::atomic<bool> let_go{false};  // set by a test: held runs and calls go on
  std::atomic<uint64_t> reports{0};         // runs and copies with a `done`, which reports their end
  std::atomic<uint64_t> stream_runs{0};     // runs that were put into a stream
  std::atomic<uint64_t> stream_copies{0};
  std::atomic<uint64_t> stream_waits{0};
  std::atomic<uint64_t> in_streams{0};           // runs and copies in a stream whose work has not ended
  std::atomic<uint64_t> marks{0};                // native points that runs and copies waited for
  std::atomic<uint64_t> abandoned{0};            // devices that the host abandoned
  std::atomic<uint64_t> calls_after_abandon{0};  // must stay 0: the host must not make such calls
  std::atomic<uint64_t> busy_ns{0};              // total nanoseconds of runs on the device
  // The maximum number of runs active on all devices when a run of this device began, including that run.
  std::atomic<uint64_t> at_once{0};
  std::atomic<uint64_t> programs{0};   // currently existing
  std::atomic<uint64_t> instances{0};  // currently existing
};

// Counts work in a stream. Destroyed without a call of `keep`, it takes the work off the count again.
class BeginInStream {
 public:
  explicit BeginInStream(std::atomic<uint64_t>& in_streams) : in_streams_(&in_streams) { ++in_streams; }
  BeginInStream(const BeginInStream&) = delete;
  ~BeginInStream() {
    if (in_streams_ != nullptr) --*in_streams_;
  }
  void keep() { in_streams_ = nullptr; }

 private:
  std::atomic<uint64_t>* in_streams_;
};

// Takes work in a stream off the count when this object is destroyed.
struct EndInStream {
  std::atomic<uint64_t>& in_streams;
  ~EndInStream() { --in_streams; }
};

}  // namespace backplane::partial
