// SPDX-License-Identifier: Apache-2.0
#include "profiling/measure.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/keep.h"
#include "host/cancel.h"
#include "place/cost.h"
#include "profiling/single_node.h"
#include "run/exec.h"
#include "run/lane.h"
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

// A device that has not ended a copy after this long is abandoned. At 1 MB/s, kLargeCopy takes 4.2 s.
constexpr uint64_t kCopyLimitNs = 5'000'000'000;
// If the creation of the session is cancelled during a copy, the copy has this much longer to end, but no more than
// kCopyLimitNs in all.
constexpr uint64_t kCancelledCopyLimitNs = 1'000'000'000;

// Makes a copy of `bytes` bytes in the lane and waits for it. Gives the device up if the copy does not end in time.
template <class Start>
Status copy_in(const Lane& lane, uint64_t bytes, const bp_cancel_t* cancel, const Start& start) {
  const uint64_t deadline = monotonic_now() + kCopyLimitNs;
  StreamEnd end = lane.complete(start, deadline, cancel);
  std::string_view limit = "in 5 s";
  if (!end.ended && end.status.code() == BP_CANCELLED) {
    const uint64_t soon = std::min(deadline, monotonic_now() + kCancelledCopyLimitNs);
    if (wait_for_work(lane.device(), lane.stream(), soon).ended) return std::move(end.status);
    if (soon < deadline) limit = "within 1 s after a cancellation";
  }
  if (end.ended || lane.device().given_up()) return std::move(end.status);
  lane.device().give_up("did not end a copy of " + std::to_string(bytes) + " bytes " + std::string(limit));
  return lane.device().lost();
}

// The two memories between which a copy is measured, and the block of each.
struct Buffers {
  Memory here, there;
  Block source, target;
};

Status measure_copy(const Environment& environment, const DeviceCoverage* from, const DeviceCoverage* to,
                    const bp_cancel_t* cancel, Profile& profile) {
  const auto memory_of = [&](const DeviceCoverage* one) -> Result<Memory> {
    if (!one) return Memory(environment.services());
    return Memory::of(*one->device, environment.services());
  };
  BP_ASSIGN(Memory here, memory_of(from));
  BP_ASSIGN(Memory there, memory_of(to));
  if (!direct(here, there)) return {};
  const auto buffers = std::make_shared<Buffers>(Buffers{here, there, {}, {}});
  const Block &source = buffers->source, &target = buffers->target;
  BP_TRY(buffers->source.reserve(buffers->here, kLargeCopy));
  BP_TRY(buffers->target.reserve(buffers->there, kLargeCopy));
  if (!from) std::memset(host_address(source.buffer()), 1, kLargeCopy);
  Device* const device = copier(buffers->here, buffers->there);
  std::optional<Lane> lane;
  if (device && Lane::possible(*device)) {
    BP_ASSIGN(lane, Lane::make(*device));
  }
  const auto measure = [&](uint64_t bytes) -> Result<double> {
    const auto start = [&](const bp_run_t* run) {
      return copy(buffers->here, source.buffer(), buffers->there, target.buffer(), bytes, run);
    };
    return time([&]() -> Status {
      if (cancelled(cancel)) return {BP_CANCELLED, "cancelled while copies were being measured"};
      return lane ? copy_in(*lane, bytes, cancel, start) : start(nullptr);
    });
  };
  for (uint64_t bytes : {kSmallCopy, kLargeCopy}) {
    Result<double> seconds = measure(bytes);
    if (device && device->given_up()) keep_for_good(buffers);  // the copy may still be under way
    if (!seconds.ok()) return seconds.take_status();
    profile.set(profile_key_of_copy(from ? from->device->name() : "host", to ? to->device->name() : "host", bytes),
                *seconds);
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

Status measure_copies(const Environment& environment, std::vector<DeviceCoverage>& coverage,
                      const bp_cancel_t* cancel) {
  const auto name = [](const DeviceCoverage* one) -> std::string {
    return one ? one->device->name() : std::string("host");
  };
  for (DeviceCoverage& device : coverage) {
    if (in_host_memory(*device.device)) continue;
    bool fresh = false;
    const auto know = [&](const DeviceCoverage* from, const DeviceCoverage* to) -> Status {
      if (device.profile->find(profile_key_of_copy(name(from), name(to), kLargeCopy))) return {};
      const Status status = measure_copy(environment, from, to, cancel, *device.profile);
      if (cancelled(cancel)) return {BP_CANCELLED, "cancelled while copies were being measured"};
      for (const DeviceCoverage* one : {from, to})
        if (one && one->device->given_up()) return one->device->lost();
      if (!status.ok())
        environment.services().log().debug("copies from " + name(from) + " to " + name(to) +
                                           " are not measured: " + std::string(status.text()));
      else
        fresh = true;
      return {};
    };
    BP_TRY(know(nullptr, &device));
    BP_TRY(know(&device, nullptr));
    for (const DeviceCoverage& other : coverage)
      if (&other != &device && can_copy_directly(*device.device, *other.device)) BP_TRY(know(&device, &other));
    if (fresh) device.profile->save();
  }
  return {};
}

}  // namespace backplane
