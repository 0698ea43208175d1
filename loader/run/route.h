// SPDX-License-Identifier: Apache-2.0
// The islands of a session and the values between them as tasks: running an island, moving a value from one memory to
// another. Copies stand where memories change, and nowhere else.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "run/edge.h"
#include "run/lane.h"
#include "run/memory.h"
#include "session/session.h"

namespace backplane {

// An edge's replica.
struct Place {
  uint32_t edge = BP_NONE, replica = BP_NONE;  // no replica: a container
};

// A program's place in the run.
struct Step {
  const Program* program = nullptr;
  bp_instance_t* instance = nullptr;
  std::vector<Place> inputs, outputs;
  uint32_t task = BP_NONE;
  uint32_t memory = 0;  // in which its device works
  bool late = false;    // its extents are known only when it is its turn
  // What its slots were bound to, so that only what changes is bound again.
  struct Bound {
    bp_buffer_t buffer{};
    uint64_t serial = 0;
    std::vector<int64_t> extents;
    bool is = false;
  };
  std::vector<Bound> bound;  // inputs, then outputs
  uint64_t scratch = 0;      // the serial of the scratch memory that is bound
};

struct Transfer {
  uint32_t edge, from, to;  // replicas
};

// A graph output that no island writes: it is an input, a weight, or another output once more.
struct Duplicate {
  uint32_t edge;
  uint32_t from_edge;  // BP_NONE: a weight
};

struct Task {
  uint32_t step = BP_NONE, transfer = BP_NONE;  // one of them
  std::vector<uint32_t> after;                  // tasks that come before
  uint32_t lane = BP_NONE;     // into whose stream it can be put; none: the host does it or waits for it
  std::unique_ptr<Mark> mark;  // for tasks of other lanes; null: they wait on the host
};

// Where a buffer of the framework lies: in a device's space, or, without a device, in host memory.
struct Home {
  Device* device = nullptr;
  uint32_t space = 0;
  bool operator==(const Home&) const = default;
};
struct Homes {
  std::vector<Home> inputs, outputs;
};

struct Route {
  static Result<std::unique_ptr<Route>> make(const Session& session, const Homes& homes);
  Route() = default;
  Route(const Route&) = delete;
  ~Route() { stop(); }
  // Ends the instances: when it returns, no plugin calls back any more.
  void stop();

  std::vector<std::unique_ptr<Memory>> memories;  // the host's first; they outlive the blocks in `edges`
  std::vector<Edge> edges;
  std::vector<Step> steps;
  std::vector<Transfer> transfers;
  std::vector<Lane> lanes;
  std::vector<Task> tasks;  // in an order in which they can run
  std::vector<Duplicate> duplicates;
  std::vector<uint32_t> inputs, outputs;  // edges of the graph's
};

}  // namespace backplane
