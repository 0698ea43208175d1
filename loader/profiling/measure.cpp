// SPDX-License-Identifier: Apache-2.0
#include "profiling/measure.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "host/cancel.h"
#include "place/cost.h"
#include "profiling/single_node.h"
#include "run/exec.h"
#include "run/memory.h"

namespace backplane {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns the median time in seconds of as many runs as fit into 10 ms (at least 3, at most 1000), after one warm-up
// run.
template <class Run>
Result<double> time(const Run& run) {
  BP_TRY(run());
  std::vector<double> times;
  const Clock::time_point start = Clock::now();
  while (times.size() < 3 || (times.size() < 1000 && seconds_since(start) < 0.01)) {
    const Clock::time_point begin = Clock::now();
    BP_TRY(run());
    times.push_back(seconds_since(begin));
  }
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

Result<double> measure_node(const std::shared_ptr<Environment>& environment, const model::Model& model,
                            const model::Node& node, const Device& device, const SessionRequest& request) {
  BP_ASSIGN(SingleNode single, SingleNode::of(model, node));
  SessionRequest alone;
  alone.devices = {device.name()};
  alone.compute_types = request.compute_types;
  alone.options = request.options;
  alone.cancel = request.cancel;
  alone.costs = Costs::kReported;
  BP_ASSIGN(Covered covered, cover(*environment, single.model(), alone));
  BP_ASSIGN(auto session, Session::create(environment, std::move(covered), alone));
  BP_ASSIGN(auto exec, Exec::create(session));
  for (uint32_t i = 0; i < single.inputs().size(); ++i) BP_TRY(exec->bind(i, single.inputs()[i]));
  bp_run_t run{};
  run.size = sizeof run;
  run.cancel = request.cancel;
  BP_ASSIGN(const double seconds, time([&] { return exec->run(&run); }));
  return std::max(seconds - launch_seconds(device), seconds / 10);
}

Status measure_copy(const Environment& environment, const DeviceCoverage* from, const DeviceCoverage* to,
                    Profile& profile) {
  const auto memory_of = [&](const DeviceCoverage* one) -> Result<Memory> {
    if (!one) return Memory(environment.services());
    return Memory::of(*one->device, environment.services());
  };
  BP_ASSIGN(const Memory here, memory_of(from));
  BP_ASSIGN(const Memory there, memory_of(to));
  if (!direct(here, there)) return {};
  Block source, target;
  BP_TRY(source.reserve(here, kLargeCopy));
  BP_TRY(target.reserve(there, kLargeCopy));
  if (!from) std::memset(host_address(source.buffer()), 1, kLargeCopy);
  for (uint64_t bytes : {kSmallCopy, kLargeCopy}) {
    BP_ASSIGN(const double seconds, time([&] { return copy(here, source.buffer(), there, target.buffer(), bytes); }));
    profile.set(profile_key_of_copy(from ? from->device->name() : "host", to ? to->device->name() : "host", bytes),
                seconds);
  }
  return {};
}

}  // namespace

Status measure_nodes(const std::shared_ptr<Environment>& environment, const model::Model& model,
                     const SessionRequest& request, std::vector<DeviceCoverage>& coverage) {
  for (DeviceCoverage& device : coverage) {
    std::set<std::string> tried;
    for (size_t i = 0; i < device.nodes.size(); ++i) {
      if (cancelled(request.cancel)) return {BP_CANCELLED, "cancelled while nodes were being measured"};
      const model::Node& node = model.graph.nodes[i];
      const std::string key = profile_key(model.graph, node, request.compute_types);
      if (!device.nodes[i].usable() || device.nodes[i].call != BP_NO_NODE || key.empty() || !tried.insert(key).second)
        continue;
      if (const auto seconds = measure_node(environment, model, node, *device.device, request); seconds.ok())
        device.profile->set(key, *seconds);
      else
        environment->services().log().debug(node.label() + " is not measured on " + device.device->name() + ": " +
                                            std::string(seconds.status().text()));
    }
    device.profile->save();
    recall(model.graph, request.compute_types, device);
  }
  return {};
}

void measure_copies(const Environment& environment, std::vector<DeviceCoverage>& coverage) {
  const auto name = [](const DeviceCoverage* one) -> std::string {
    return one ? one->device->name() : std::string("host");
  };
  for (DeviceCoverage& device : coverage) {
    if (in_host_memory(*device.device)) continue;
    bool fresh = false;
    const auto know = [&](const DeviceCoverage* from, const DeviceCoverage* to) {
      if (device.profile->find(profile_key_of_copy(name(from), name(to), kLargeCopy))) return;
      if (Status status = measure_copy(environment, from, to, *device.profile); !status.ok())
        environment.services().log().debug("copies from " + name(from) + " to " + name(to) +
                                           " are not measured: " + std::string(status.text()));
      else
        fresh = true;
    };
    know(nullptr, &device);
    know(&device, nullptr);
    for (const DeviceCoverage& other : coverage)
      if (&other != &device && can_copy_directly(*device.device, *other.device)) know(&device, &other);
    if (fresh) device.profile->save();
  }
}

}  // namespace backplane
