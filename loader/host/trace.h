// SPDX-License-Identifier: Apache-2.0
// A timeline of completed work, written for chrome://tracing and Perfetto.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "backplane/host.h"
#include "base/status.h"

namespace backplane {

// All members are thread-safe.
class Trace {
 public:
  // Holds at most `most` bytes of spans in all: a bound for traces that are never stopped, and for plugins in processes
  // of their own that send spans without end.
  explicit Trace(uint64_t most = uint64_t{512} << 20) : most_(most) {}

  // Costs one relaxed load, so callers can check it before they take time stamps.
  bool active() const { return active_.load(std::memory_order_relaxed); }
  // Starts collecting, and drops all spans collected earlier.
  void start();
  // Copies the span and its nodes. Does nothing if the trace is not active. A span that exceeds the bound is only
  // counted, as "dropped" in the timeline. Fields that the caller's older struct lacks must be zero (see abi::read).
  void add(const bp_span_t& span);
  // Names a device in the timeline. Device 0 is the host.
  void name_device(uint64_t device, std::string name);
  // Stops collecting and writes the timeline in pieces. BP_BAD_STATE if collecting has not been started.
  Status stop(bp_text_sink_t sink, void* context);

 private:
  struct Event {
    uint64_t begin, end, trace_id, bytes, device;
    uint32_t kind, flags, thread;
    std::vector<uint64_t> nodes;
    std::string name;
  };

  std::atomic<bool> active_{false};
  std::mutex mutex_;
  std::map<uint64_t, std::string> devices_;  // by id
  std::vector<Event> events_;
  const uint64_t most_;
  uint64_t held_ = 0, dropped_ = 0;  // held_ is in bytes
};

}  // namespace backplane
