// SPDX-License-Identifier: Apache-2.0
// Requests that a backend's process sends to the loader while the loader waits for a call to return: about a graph, or
// with a span of a traced run.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "isolate/graph_wire.h"
#include "isolate/message.h"
#include "isolate/serve/lane.h"

namespace backplane::isolate {

// The lanes (channels) on which the loader waits for the reply to a call that concerns one object. Requests about the
// object can be sent on any of them.
class ActiveLanes {
 public:
  // While this exists, the current call of `lane` concerns the object to which `active` belongs.
  class During {
   public:
    During(ActiveLanes& active, Lane& lane);
    ~During();
    During(const During&) = delete;

   private:
    ActiveLanes& active_;
    Lane& lane_;
  };

  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
  // Sends the request on one of the lanes. BP_BAD_STATE if there is none.
  Result<Message> ask(Operation question, const std::string& bytes);

 private:
  std::mutex mutex_;
  std::vector<std::pair<Lane*, uint64_t>> lanes_;  // each with the number of its call
  std::atomic<size_t> count_{0};
};

// The lanes of runs whose spans are collected for the trace.
ActiveLanes& traced_runs();

// Sends the loader requests about a graph. A program's graph outlives a call, and several calls may use it at the same
// time.
class GraphLane : public GraphService, public ActiveLanes {
 public:
  Result<Mapping> weight(uint32_t graph, uint32_t weight, uint64_t bytes) override;
  void weight_consumed(uint32_t graph, uint32_t weight) override;
  Status weight_hash(uint32_t graph, uint32_t weight, uint64_t out_hash[2]) override;
  Status serialize(uint32_t graph, uint64_t external_above, bp_text_sink_t sink, void* context) override;
};

}  // namespace backplane::isolate
