// SPDX-License-Identifier: Apache-2.0
// Trace Event Format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. In the timeline,
// each device is a process. Its threads are the host threads that reported spans, and one for the device's own clock.
#include "host/trace.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/abi.h"
#include "cli/printable.h"

namespace backplane {
namespace {

constexpr uint32_t kDeviceClockRow = 0;  // thread number in the timeline; host threads have numbers from 1

const char* category(uint32_t kind) {
  switch (kind) {
    case BP_SPAN_COMPUTE:
      return "compute";
    case BP_SPAN_COPY:
      return "copy";
    case BP_SPAN_COMPILE:
      return "compile";
    case BP_SPAN_WAIT:
      return "wait";
    default:
      return "other";
  }
}

uint32_t this_thread() {
  static std::atomic<uint32_t> count{0};
  thread_local const uint32_t kNumber = ++count;
  return kNumber;
}

// Quotes a name, which a plugin or a model may have chosen: without control characters and in valid UTF-8.
std::string as_json(std::string_view text) {
  std::string out = "\"";
  for (const char c : cli::printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out += '"';
}

// Returns a metadata event. Quotes and escapes `name`.
std::string metadata(const char* what, uint32_t process, uint32_t thread, std::string_view name) {
  return fmt::format("{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}", what, process,
                     thread, as_json(name));
}

// With three decimals, so that nanoseconds are preserved.
std::string microseconds(uint64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

}  // namespace

void Trace::start() {
  std::lock_guard lock(mutex_);
  events_.clear();
  held_ = dropped_ = 0;
  active_ = true;
}

void Trace::add(const bp_span_t& span) {
  if (!active()) return;
  const uint32_t thread = span.flags & BP_SPAN_DEVICE_CLOCK ? kDeviceClockRow : this_thread();
  Event event{span.begin,
              span.end,
              span.trace_id,
              span.bytes,
              span.device,
              span.kind,
              span.flags,
              thread,
              {span.nodes, span.nodes + (span.nodes ? span.node_count : 0)},
              abi::string(span.name)};
  std::lock_guard lock(mutex_);
  if (!active()) return;
  const uint64_t bytes = sizeof event + event.nodes.size() * sizeof(uint64_t) + event.name.size();
  if (bytes > most_ - held_) {
    ++dropped_;
    return;
  }
  held_ += bytes;
  events_.push_back(std::move(event));
}

void Trace::name_device(uint64_t device, std::string name) {
  std::lock_guard lock(mutex_);
  devices_[device] = std::move(name);
}

Status Trace::stop(bp_text_sink_t sink, void* context) {
  std::vector<Event> events;
  std::map<uint64_t, std::string> devices;
  uint64_t dropped;
  {
    std::lock_guard lock(mutex_);
    if (!active_.exchange(false)) return {BP_BAD_STATE, "the trace was not started: call bp_trace_start first"};
    events.swap(events_);
    devices = devices_;
    dropped = dropped_;
  }
  devices.try_emplace(0, "host");

  std::string piece =
      fmt::format("{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"dropped\":{}}},\"traceEvents\":[\n", dropped);
  const char* comma = "";
  auto put = [&](std::string_view text) {
    piece.append(std::exchange(comma, ",\n")).append(text);
    if (piece.size() < 64 * 1024) return;
    sink(context, abi::text(piece));
    piece.clear();
  };

  std::map<uint64_t, uint32_t> numbers;  // device ids are large; the timeline's processes get small numbers
  for (const auto& [device, name] : devices) numbers.try_emplace(device, static_cast<uint32_t>(numbers.size()));
  for (const Event& e : events) numbers.try_emplace(e.device, static_cast<uint32_t>(numbers.size()));
  std::set<std::pair<uint32_t, uint32_t>> rows;
  for (const Event& e : events) rows.emplace(numbers[e.device], e.thread);
  for (const auto& [device, name] : devices) put(metadata("process_name", numbers[device], 0, name));
  for (const auto& [device, thread] : rows)
    put(metadata("thread_name", device, thread,
                 thread == kDeviceClockRow ? "device" : fmt::format("thread {}", thread)));

  for (const Event& e : events) {
    std::string args;
    if (e.trace_id) args += fmt::format(",\"trace_id\":{}", e.trace_id);
    if (e.nodes.size() == 1) args += fmt::format(",\"node\":{}", e.nodes[0]);
    if (e.nodes.size() > 1) args += fmt::format(",\"nodes\":[{}]", fmt::join(e.nodes, ","));
    if (e.bytes) args += fmt::format(",\"bytes\":{}", e.bytes);
    if (!args.empty()) args.erase(0, 1);
    put(fmt::format(
        "{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"args\":{{{}}}}}",
        as_json(e.name), category(e.kind), numbers[e.device], e.thread, microseconds(e.begin),
        microseconds(e.end > e.begin ? e.end - e.begin : 0), args));
  }
  piece += "\n]}\n";
  sink(context, abi::text(piece));
  return {};
}

}  // namespace backplane
