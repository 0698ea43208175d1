// SPDX-License-Identifier: Apache-2.0
// The objects that the plugin's handles point to. Each wraps a handle of the CPU backend, which does the work.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backplane/plugin.h"
#include "backplane/sdk/host.hpp"
#include "partial_backend/counters.h"
#include "partial_backend/script.h"

namespace backplane::partial {

// The CPU backend's tables. Set before any object is created.
extern const bp_plugin_t* cpu;

struct Backend {
  bp_backend_t* inner = nullptr;
  const bp_host_t* host = nullptr;
  bp_host_t cpu_host{};               // a copy of `host` without settings, for the CPU backend
  std::optional<sdk::Host> sdk_host;  // wraps `host`
  std::vector<Script> scripts;        // by device
  std::unique_ptr<Counters[]> counters;
  std::atomic<uint64_t> running{0};
  std::atomic<uint64_t> max_running{0};
  std::atomic<int> opening{0};  // calls of `open` that have begun and not ended
};

struct Device {
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device() {
    if (pool.release != nullptr) pool.release(pool.self);
  }

  bp_device_t* inner = nullptr;
  Backend* backend = nullptr;
  uint32_t index = 0;
  uint64_t id = 0;       // the host's id of the device
  bp_external_t pool{};  // memory from the framework's allocator, or none
  std::atomic<bool> lost{false};
  std::atomic<bool> abandoned{false};

  const Script& script() const { return backend->scripts[index]; }
  Counters& counters() const { return backend->counters[index]; }
  // Every slot that takes the device or one of its objects calls this, except `abandon`.
  void called() const {
    if (abandoned) ++counters().calls_after_abandon;
  }
  // Throws if a fault made the device lost.
  void check() const {
    if (lost) throw sdk::Error::device_lost("partial device " + std::to_string(index) + " is lost");
  }
};

// A copy of a graph for the CPU backend, in which Identity replaces calls of org.backplane.test Same. Borrows from the
// original graph.
class Translated {
 public:
  static bool is_same(const bp_node_t& node);

  explicit Translated(const bp_graph_t& original);
  Translated(const Translated&) = delete;
  Translated& operator=(const Translated&) = delete;
  const bp_graph_t* graph() const { return nodes_.empty() ? &original_ : &graph_; }

 private:
  const bp_graph_t& original_;
  bp_graph_t graph_{};
  std::vector<bp_node_t> nodes_;  // empty if the graph does not call Same
};

struct Program {
  std::unique_ptr<const Translated> translated;
  bp_program_t* inner = nullptr;
  Device* device = nullptr;
  uint32_t nodes = 0;
  uint32_t outputs = 0;
  uint64_t fault_node = BP_NO_NODE;  // id of the node named by the scripted fault, if it is in this island
  mutable std::atomic<uint64_t> runs{0};
};

// Handles are pointers to the objects above.
inline Backend& of(bp_backend_t* handle) {
  return *reinterpret_cast<Backend*>(handle);
}
inline Device& of(bp_device_t* handle) {
  return *reinterpret_cast<Device*>(handle);
}
inline const Program& of(const bp_program_t* handle) {
  return *reinterpret_cast<const Program*>(handle);
}

// Thrown when a call of the CPU backend fails. The message is already in `error`.
struct Passed {
  bp_status_t status;
};
template <class Body>
bp_status_t fence(bp_error_t* error, Body&& body) {
  bp_status_t passed = BP_OK;
  const bp_status_t own = sdk::fence(error, [&] {
    try {
      body();
    } catch (const Passed& p) {
      passed = p.status;
    }
  });
  return own != BP_OK ? own : passed;
}
inline void pass(bp_status_t status) {
  if (status != BP_OK) throw Passed{status};
}

// Sleeps for this many microseconds, as set by the script.
void take_time(uint64_t microseconds);
// Returns when the test sets `let_go`, at the latest after a minute.
void wait_for_test(const Counters& counters);

// Reports a span of the trace, from construction to destruction, if the host collects spans.
class Span {
 public:
  Span(const Device& device, uint32_t kind, std::string_view name);
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span();

 private:
  const Device& device_;
  const uint32_t kind_;
  const std::string_view name_;
  const uint64_t begin_;  // 0: the host collects no spans
};

// Writes a sized struct, but no more than `out->size` bytes.
template <class T>
void write(T* out, T value) {
  value.size = out->size;
  std::memcpy(static_cast<void*>(out), &value, std::min<size_t>(out->size, sizeof value));
}

extern const bp_coverage_api_t kCoverageApi;
extern const bp_program_api_t kProgramApi;
extern const bp_instance_api_t kInstanceApi;
extern const bp_memory_api_t kMemoryApi;
extern const bp_sync_api_t kSyncApi;
extern const bp_cache_api_t kCacheApi;

}  // namespace backplane::partial
