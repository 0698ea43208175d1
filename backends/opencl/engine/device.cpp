// SPDX-License-Identifier: Apache-2.0
#include "engine/device.h"

#include <algorithm>
#include <cstdio>

#include "engine/island.h"
#include "engine/tuner.h"
#include "ops/table.h"

namespace backplane::opencl {
namespace {

Context make_context(const Facts& facts, const bp_native_t* native) {
  if (native != nullptr) {
    const bp_native_t given = sdk::read(native, "how.native");
    const auto raw = reinterpret_cast<cl_context>(given.handle);
    if (given.kind != BP_NATIVE_CL_CONTEXT || raw == nullptr)
      throw sdk::Error(BP_UNSUPPORTED, facts.name + " cannot be opened on a native of kind " +
                                           std::to_string(given.kind) + "; on a cl_context it can");
    std::vector<cl_device_id> devices;
    size_t bytes = 0;
    check(clGetContextInfo(raw, CL_CONTEXT_DEVICES, 0, nullptr, &bytes), "devices of a context");
    devices.resize(bytes / sizeof(cl_device_id));
    check(clGetContextInfo(raw, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr), "devices of a context");
    if (std::find(devices.begin(), devices.end(), facts.id) == devices.end())
      throw sdk::Error(BP_UNSUPPORTED, "the context has not the device " + facts.name);
    check(clRetainContext(raw), "import of a context");
    return Context(raw);
  }
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(facts.platform), 0};
  cl_int status = CL_SUCCESS;
  Context context(clCreateContext(properties, 1, &facts.id, nullptr, nullptr, &status));
  check(status, "context of " + facts.name);
  return context;
}

}  // namespace

Device::Device(const sdk::Backend& backend, const Facts& facts, const bp_native_t* context)
    : sdk::Device(backend),
      facts_(facts),
      context_(make_context(facts, context)),
      kernels_(host(), facts_, context_.get()),
      transfers_(queue()) {}

Buffer Device::buffer(uint64_t bytes) const {
  if (bytes > facts_.max_buffer_bytes) {
    throw sdk::Error(BP_RESOURCE_EXHAUSTED, "a buffer of " + std::to_string(bytes) + " bytes is more than the " +
                                                std::to_string(facts_.max_buffer_bytes) + " that " + facts_.name +
                                                " allows in one");
  }
  cl_int status = CL_SUCCESS;
  Buffer buffer(clCreateBuffer(context_.get(), CL_MEM_READ_WRITE, std::max<uint64_t>(bytes, 1), nullptr, &status));
  check(status, "buffer of " + std::to_string(bytes) + " bytes");
  return buffer;
}

Buffer Device::part(const Buffer& whole, uint64_t offset, uint64_t bytes) const {
  const cl_buffer_region region{offset, std::max<uint64_t>(bytes, 1)};
  cl_int status = CL_SUCCESS;
  Buffer buffer(clCreateSubBuffer(whole.get(), CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &status));
  check(status, "sub-buffer of " + std::to_string(bytes) + " bytes at " + std::to_string(offset));
  return buffer;
}

Buffer Device::import_host(void* address, uint64_t bytes) const {
  cl_int status = CL_SUCCESS;
  Buffer buffer(clCreateBuffer(context_.get(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, address, &status));
  check(status, "buffer over " + std::to_string(bytes) + " bytes of host memory");
  return buffer;
}

Queue Device::make_queue(cl_command_queue_properties properties) const {
  cl_int status = CL_SUCCESS;
  Queue queue(clCreateCommandQueue(context_.get(), facts_.id, properties | CL_QUEUE_PROFILING_ENABLE, &status));
  check(status, "command queue");
  return queue;
}

Queue Device::queue() const {
  return make_queue(0);
}

// Out of order, kernels say themselves what they wait for (plan.h). What that is worth was measured: decision 0008.
Queue Device::run_queue() const {
  return make_queue(facts_.out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
}

Constant Device::constant(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto at = constants_.find(key);
  return at == constants_.end() ? nullptr : at->second.lock();
}

Constant Device::share(const std::string& key, Buffer buffer) {
  const std::lock_guard lock(mutex_);
  std::erase_if(constants_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<const Buffer>& known = constants_[key];
  Constant constant = known.lock();  // another program was as fast
  if (constant == nullptr) known = constant = std::make_shared<const Buffer>(std::move(buffer));
  return constant;
}

void Device::measure() {
  measured_([this] {
    if (facts_.measured) return;
    facts_.rates = measure_rates(*this);
    facts_.measured = true;
    char line[100];
    std::snprintf(line, sizeof line, ": measured %.4g GFLOP/s, %.4g GB/s, %.3g us a launch", facts_.rates.flops * 1e-9,
                  facts_.rates.bandwidth * 1e-9, facts_.rates.launch_seconds * 1e6);
    host().log(BP_LOG_INFO, facts_.name + line);
  });
}

void Device::tune() {
  tuned_([this] {
    facts_.tile = chosen_tile();
    facts_.winograd = chosen_winograd();
    char line[80];
    std::snprintf(line, sizeof line, " at %.4g GFLOP/s, Winograd's transforms at %.4g G elements a second",
                  facts_.winograd.flops * 1e-9, facts_.winograd.elements * 1e-9);
    host().log(BP_LOG_INFO, facts_.name + ": products in tiles of " + facts_.tile.text() +
                                (facts_.winograd.use == WinogradRates::Use::kMeasured ? line : ""));
  });
}

Tile Device::chosen_tile() {
  const std::optional<std::string_view> wanted = host().option("tile");
  if (!wanted) return tuned_tile(*this);
  const std::optional<Tile> tile = tile_named(*wanted);
  if (tile && fits(facts_, *tile)) return *tile;
  std::string known;
  for (const Tile& each : tiles_that_fit(facts_)) known += (known.empty() ? "" : ", ") + each.text();
  throw sdk::Error(BP_INVALID_ARGUMENT, "option tile is \"" + std::string(*wanted) + "\": " + facts_.name + " has " +
                                            known + ", or leave it out and it is measured");
}

WinogradRates Device::chosen_winograd() {
  using Use = WinogradRates::Use;
  const std::string_view wanted = host().option("winograd").value_or("measured");
  if (wanted == "measured") return winograd_rates(*this);
  if (wanted == "never") return {Use::kNever};
  if (wanted == "always") return {Use::kAlways};
  throw sdk::Error(BP_INVALID_ARGUMENT,
                   "option winograd is \"" + std::string(wanted) + "\"; give measured, never or always");
}

void Device::cover(sdk::Coverage& coverage) {
  measure();
  table().answer(coverage, {facts_, coverage.compute_types(), coverage.options()});
}

std::unique_ptr<sdk::Program> Device::compile(const sdk::Compile& what) {
  what.options().allow({});
  tune();
  return std::make_unique<Island>(*this, what);
}

}  // namespace backplane::opencl
