// SPDX-License-Identifier: Apache-2.0
#include "engine/device.h"

#include <cstdio>

#include "engine/island.h"
#include "engine/tuner.h"

namespace backplane::gpu {
Device::Device(const sdk::Backend& backend, const DeviceCaps& caps, std::unique_ptr<Driver> driver, const Table& table)
    : sdk::Device(backend),
      caps_(caps),
      driver_(std::move(driver)),
      table_(table),
      memory_kind_(driver_->memory_kind()),
      kernels_(host(), caps_, *driver_),
      captures_(chosen_captures()),
      transfers_(driver_->queue()) {
  choose_libraries();
}

Constant Device::constant(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto at = constants_.find(key);
  return at == constants_.end() ? nullptr : at->second.lock();
}

Constant Device::share(const std::string& key, Buffer buffer) {
  const std::lock_guard lock(mutex_);
  if (constants_.size() >= next_sweep_) {
    std::erase_if(constants_, [](const auto& entry) { return entry.second.expired(); });
    next_sweep_ = 2 * constants_.size() + 16;  // doubled, so that a constant costs the same however many there are
  }
  std::weak_ptr<const DeviceMemory>& known = constants_[key];
  Constant constant = known.lock();  // not null if another thread has stored it meanwhile
  if (constant == nullptr) known = constant = std::move(buffer);
  return constant;
}

void Device::measure() {
  measured_([this] {
    if (caps_.measured) return;
    caps_.throughput = measure_throughput(*this);
    caps_.measured = true;
    char line[100];
    std::snprintf(line, sizeof line, ": measured %.4g GFLOP/s, %.4g GB/s, %.3g us per launch",
                  caps_.throughput.flops * 1e-9, caps_.throughput.bandwidth * 1e-9,
                  caps_.throughput.launch_seconds * 1e6);
    host().log(BP_LOG_INFO, caps_.name + line);
  });
}

void Device::tune() {
  tuned_([this] {
    caps_.tile = chosen_tile();
    caps_.winograd = chosen_winograd();
    char line[120];
    std::snprintf(line, sizeof line, " at %.4g GFLOP/s, Winograd's transforms at %.4g G elements per second",
                  caps_.winograd.flops * 1e-9, caps_.winograd.elements * 1e-9);
    host().log(BP_LOG_INFO, caps_.name + ": computes matrix products in tiles of " + caps_.tile.text() +
                                (caps_.winograd.use == WinogradThroughput::Use::kMeasured ? line : ""));
  });
}

Tile Device::chosen_tile() {
  const std::optional<std::string_view> wanted = host().option("tile");
  if (!wanted) return tuned_tile(*this);
  const std::optional<Tile> tile = tile_named(*wanted);
  if (tile && fits(caps_, *tile)) return *tile;
  std::string known;
  for (const Tile& each : tiles_that_fit(caps_)) known += (known.empty() ? "" : ", ") + each.text();
  throw sdk::Error(BP_INVALID_ARGUMENT, "option tile is \"" + std::string(*wanted) + "\"; " + caps_.name + " runs " +
                                            known + "; without the option, the fastest is found by measuring");
}

WinogradThroughput Device::chosen_winograd() {
  using Use = WinogradThroughput::Use;
  const std::string_view wanted = host().option("winograd").value_or("measured");
  if (wanted == "measured") return winograd_throughput(*this);
  if (wanted == "never") return {Use::kNever};
  if (wanted == "always") return {Use::kAlways};
  throw sdk::Error(BP_INVALID_ARGUMENT,
                   "option winograd is \"" + std::string(wanted) + "\"; it must be measured, never or always");
}

std::optional<LibraryUse> Device::chosen_use(std::string_view option) const {
  const std::string_view wanted = host().option(option).value_or("measured");
  if (wanted == "measured") return LibraryUse::kMeasured;
  if (wanted == "library") return LibraryUse::kLibrary;
  if (wanted == "own") return std::nullopt;
  throw sdk::Error(BP_INVALID_ARGUMENT, "option " + std::string(option) + " is \"" + std::string(wanted) +
                                            "\"; it must be measured, library or own");
}

void Device::choose_libraries() {
  if (const ProductLibrary* library = driver_->products(); library != nullptr) {
    if (const auto use = chosen_use("products")) products_.emplace(*this, *(caps_.products = library), *use);
  }
  if (const ConvolutionLibrary* library = driver_->convolutions(); library != nullptr) {
    if (const auto use = chosen_use("convolutions"))
      convolutions_.emplace(*this, *(caps_.convolutions = library), *use);
  }
}

bool Device::chosen_captures() const {
  if (!driver_->captures()) return false;
  const std::string_view wanted = host().option("graphs").value_or("on");
  if (wanted != "on" && wanted != "off")
    throw sdk::Error(BP_INVALID_ARGUMENT, "option graphs is \"" + std::string(wanted) + "\"; it must be on or off");
  return wanted == "on";
}

void Device::capture_failed(const sdk::Error& failure) {
  std::call_once(capture_failed_,
                 [&] { host().log(BP_LOG_WARNING, caps_.name + ": commands are not captured: " + failure.text); });
}

Kernel Device::kernel(const Launch& launch) {
  if (!launch.call) return kernels_.kernel(launch.source);
  const LibraryAlgorithm& algorithm = launch.call->algorithm;
  if (const auto* product = std::get_if<ProductProblem>(&launch.call->problem))
    return caps_.products->kernel(*product, algorithm);
  return caps_.convolutions->kernel(std::get<ConvolutionProblem>(launch.call->problem), algorithm);
}

void Device::cover(sdk::Coverage& coverage) {
  measure();
  constexpr double kNothing = 1e-9;  // seconds; 0 would mean that the time is unknown
  const sdk::Query<DeviceCaps> query{caps_, coverage.compute_types(), coverage.options()};
  for (uint32_t i = 0; i < coverage.node_count(); ++i) {
    if (i % 256 == 0) coverage.check_cancelled();
    const sdk::Node node = coverage.node(i);
    sdk::Verdict verdict = table_.ask(node, query);
    if (sdk::accepted(verdict) && is_computed_on_host(table_, node.output(0))) verdict.seconds = kNothing;
    coverage.answer(node, verdict);
  }
}

// A node may need integers that another node computes on the host, and that node may have been placed on another
// device: then the node is given back.
void Device::review(const sdk::Compile& what, bp_review_t& out, std::string& why) {
  std::vector<uint32_t> accepted;
  const sdk::Graph& graph = what.graph();
  for (uint32_t i = 0; i < graph.node_count(); ++i) {
    if (i % 256 == 0) what.check_cancelled();
    const sdk::Node node = graph.node(i);
    const sdk::Verdict verdict = table_.ask(node, {caps_, what.compute_types(), what.options()});
    if (sdk::accepted(verdict)) {
      accepted.push_back(i);
      continue;
    }
    why = std::string(node.op_type()) + " '" + std::string(node.name()) + "': " + verdict.detail;
    out.reason = verdict.reason;
  }
  if (accepted.size() == graph.node_count()) return;
  out.answer = BP_REVIEW_SPLIT;
  out.split(out.split_self, accepted.data(), static_cast<uint32_t>(accepted.size()));
}

// If the queue rejects a marker for any reason other than a lack of memory, the device is lost, whichever error code
// the driver returns.
void Device::health() {
  driver_->check_available();
  const auto failure = sdk::caught([this] { transfers_->mark(); });
  if (!failure || failure->status == BP_RESOURCE_EXHAUSTED) return;
  throw sdk::Error::device_lost(caps_.name + ": " + failure->text, failure->vendor_code);
}

std::unique_ptr<sdk::Program> Device::compile(const sdk::Compile& what) {
  what.options().allow({});
  tune();
  return std::make_unique<Island>(*this, what);
}

const Allocation& allocation(const bp_buffer_t& buffer) {
  const Allocation& known = *reinterpret_cast<const Allocation*>(buffer.memory);
  if (buffer.offset > known.bytes || buffer.bytes > known.bytes - buffer.offset)
    throw sdk::Error(BP_INVALID_ARGUMENT, "the buffer has " + std::to_string(buffer.bytes) + " bytes at offset " +
                                              std::to_string(buffer.offset) + ", but its memory has only " +
                                              std::to_string(known.bytes));
  return known;
}

}  // namespace backplane::gpu
