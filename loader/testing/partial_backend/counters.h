// SPDX-License-Identifier: Apache-2.0
// Counts the actions of a partial device. Tests reach the counters of all devices (an array, by the plugin's own index)
// with bp_env_get_extension("partial/counters", 1).
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
  std::atomic<uint64_t> copies_during_runs{0};  // copies while a device ran
  std::atomic<uint64_t> flushes{0};
  std::atomic<uint64_t> compiles{0};
  std::atomic<uint64_t> deserializations{0};
  std::atomic<uint64_t> shape_queries{0};  // output_extents
  std::atomic<uint64_t> binds{0};
  std::atomic<uint64_t> runs{0};
  std::atomic<uint64_t> reports{0};      // runs and copies with `done`
  std::atomic<uint64_t> stream_runs{0};  // runs that were put into a stream
  std::atomic<uint64_t> stream_copies{0};
  std::atomic<uint64_t> stream_waits{0};
  std::atomic<uint64_t> in_streams{0};           // runs and copies that are in a stream and whose work has not ended
  std::atomic<uint64_t> marks{0};                // native points that runs and copies waited for
  std::atomic<uint64_t> abandoned{0};            // devices that the host abandoned
  std::atomic<uint64_t> calls_after_abandon{0};  // which the host must not make
  std::atomic<uint64_t> busy_ns{0};              // the total time of runs on the device
  std::atomic<uint64_t> at_once{
      0};  // the most runs active on all devices when a run of this one began, itself included
  std::atomic<uint64_t> programs{0};   // that exist now
  std::atomic<uint64_t> instances{0};  // that exist now
};

// Counts work of a stream as ended when it is destroyed.
struct EndInStream {
  std::atomic<uint64_t>& in_streams;
  ~EndInStream() { --in_streams; }
};

}  // namespace backplane::partial
