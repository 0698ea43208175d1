// SPDX-License-Identifier: Apache-2.0
#include "isolate/proxy_device.h"

#include <algorithm>
#include <chrono>

#include "base/abi.h"
#include "isolate/device_limits.h"
#include "isolate/proxy_call.h"

namespace backplane::isolate {
namespace {

// The additional launch cost of an isolated device in ns, for placement.
constexpr uint64_t kLaunchNs = 15'000;

ProxyBackend& backend_of(bp_backend_t* backend) {
  return *reinterpret_cast<ProxyBackend*>(backend);
}

struct DeviceCount {
  uint32_t devices;
  std::string text;  // why there are none
};

Result<DeviceCount> count_in(const ProxyBackend& backend, Process& process) {
  BP_ASSIGN(const std::string answer, process.call(Operation::kCountDevices, {}, {}, backend.short_patience()));
  Reader in(answer);
  DeviceCount result{in.get<uint32_t>(), {}};
  result.text = in.text();
  if (!in.complete()) return process.unreadable(Operation::kCountDevices);
  return result;
}

struct Description {
  DeviceNumbers numbers;
  std::string name, vendor, driver, arch, pci;
  Options properties;

  // The parts that identify the device among the backend's devices, in each of its processes.
  std::string identity() const {
    Writer out;
    out.put(numbers.kind).put(numbers.uuid);
    for (const std::string* text : {&name, &vendor, &driver, &arch, &pci}) out.text(*text);
    for (const auto& [property, value] : properties) out.text(property).text(value);
    return out.take();
  }
};

Result<Description> describe_in(const ProxyBackend& backend, Process& process, uint32_t index) {
  Writer request;
  request.put(index);
  // All descriptions together may take as long as one call, because there may be hundreds of devices.
  Patience patience = backend.short_patience();
  patience.limit_ns -= std::min(process.describing_ns.load(), patience.limit_ns - 1);
  const auto begin = std::chrono::steady_clock::now();
  const auto described = process.call(Operation::kDeviceInfo, request.bytes(), {}, patience);
  process.describing_ns +=
      static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  BP_ASSIGN(const std::string answer, described);
  Reader in(answer);
  Description result;
  result.numbers = in.get<DeviceNumbers>();
  for (std::string* text : {&result.name, &result.vendor, &result.driver, &result.arch, &result.pci})
    *text = in.text().substr(0, kMaxDeviceText);
  const uint64_t properties = in.count(16);
  in.require(properties <= kMaxDeviceElements);
  result.properties.resize(in.ok() ? properties : 0);
  for (auto& [name, value] : result.properties) {
    name = in.text().substr(0, kMaxDeviceText);
    value = in.text().substr(0, kMaxDeviceText);
  }
  if (!in.complete()) return process.unreadable(Operation::kDeviceInfo);
  return result;
}

// Returns the index in `process` of the device that was `index` when the backend's devices were first described. A
// backend that was started again may find its devices in another order, or miss some.
Result<uint32_t> index_in(ProxyBackend& backend, Process& process, uint32_t index) {
  const std::string wanted = backend.identity_of(index);
  if (wanted.empty()) return index;  // never described
  BP_ASSIGN(const DeviceCount count, count_in(backend, process));
  if (count.devices > kMaxDevices) return process.unreadable(Operation::kCountDevices, "too many devices");
  for (uint32_t i = 0; i < count.devices; ++i) {
    const uint32_t candidate = (index + i) % count.devices;  // most likely the index has not changed
    BP_ASSIGN(const Description description, describe_in(backend, process, candidate));
    if (description.identity() == wanted) return candidate;
  }
  return Status(BP_DEVICE_LOST, backend.library().name() + " was started again and does not have this device any more");
}

bp_status_t count(bp_backend_t* handle, uint32_t* out_count, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    ProxyBackend& backend = backend_of(handle);
    BP_ASSIGN(const auto process, backend.running());
    BP_ASSIGN(const DeviceCount count, count_in(backend, *process));
    *out_count = count.devices;
    explain(error, count.text);
    return {};
  });
}

bp_status_t info(bp_backend_t* handle, uint32_t index, bp_device_info_t* out_info, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    ProxyBackend& backend = backend_of(handle);
    BP_ASSIGN(const auto process, backend.running());
    BP_ASSIGN(const Description description, describe_in(backend, *process, index));
    backend.identify(index, description.identity());
    bp_device_info_t known{};
    known.size = sizeof known;
    known.index = index;
    description.numbers.to(known);
    known.flags |= BP_DEVICE_SYNCHRONOUS;
    known.launch_ns += kLaunchNs;
    known.name = backend.keep(description.name);
    known.vendor = backend.keep(description.vendor);
    known.driver = backend.keep(description.driver);
    known.arch = backend.keep(description.arch);
    known.pci = backend.keep(description.pci);
    std::vector<bp_option_t> kept;
    for (const auto& [name, value] : description.properties) kept.push_back({backend.keep(name), backend.keep(value)});
    known.property_count = static_cast<uint32_t>(kept.size());
    known.property_stride = sizeof(bp_option_t);
    known.properties = backend.keep(std::move(kept));
    return abi::write(known, out_info, "out_info");
  });
}

bp_status_t open(bp_backend_t* handle, uint32_t index, const bp_device_open_t* how, bp_device_t** out_device,
                 bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    *out_device = nullptr;
    bp_device_open_t known{};
    if (how) {
      BP_ASSIGN(known, abi::read(how, "bp_device_open_t"));
    }
    BP_TRY(refuse_chain(known.chain));
    if (known.native)
      return {BP_UNSUPPORTED,
              "a native context cannot be passed to an isolated backend: leave bp_device_open_t.native NULL"};
    if (known.allocate)
      return {BP_UNSUPPORTED,
              "an allocator of device memory cannot be passed to an isolated backend: leave bp_device_open_t.allocate "
              "NULL"};
    Writer options;
    write_options(known.options, known.option_count, known.option_stride, options);
    std::unique_ptr<ProxyDevice> device(
        new ProxyDevice{backend_of(handle), index, known.id, options.take(), {}, {}, {}, {}});
    BP_TRY(device->live().take_status());
    *out_device = reinterpret_cast<bp_device_t*>(device.release());
    return {};
  });
}

void close(bp_device_t* handle) {
  if (!handle) return;
  const std::unique_ptr<ProxyDevice> device(&device_of(handle));
  fenced(nullptr, [&]() -> Status {
    if (!device->remote.process || !device->remote.process->alive()) return {};
    Writer request;
    request.put(device->remote.handle);
    return device->remote.process->call(Operation::kClose, request.bytes(), {}, device->backend.short_patience())
        .take_status();
  });
}

bp_status_t health(bp_device_t* handle, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    ProxyDevice& device = device_of(handle);
    Remote remote;
    {
      const std::lock_guard lock(device.mutex);
      remote = device.remote;
    }
    Writer request;
    request.put(remote.handle);
    return remote.process->call(Operation::kHealth, request.bytes(), {}, device.backend.short_patience()).take_status();
  });
}

// Kills the process in which the device hangs, so that calls waiting for it return.
void abandon(bp_device_t* handle) {
  if (!handle) return;
  fenced(nullptr, [&]() -> Status {
    ProxyDevice& device = device_of(handle);
    std::shared_ptr<Process> process;
    {
      const std::lock_guard lock(device.mutex);
      process = device.remote.process;
    }
    if (process) process->kill("its device was abandoned");
    return {};
  });
}

}  // namespace

Result<Remote> ProxyDevice::live() {
  const std::lock_guard lock(mutex);
  BP_ASSIGN(const auto process, backend.running());
  if (process == remote.process) return remote;
  BP_ASSIGN(const uint32_t there, index_in(backend, *process, index));
  Writer request;
  request.put(there).put(id);
  BP_ASSIGN(const std::string answer,
            process->call(Operation::kOpen, request.bytes() + options, {}, backend.short_patience()));
  Reader in(answer);
  const auto handle = in.get<uint64_t>();
  if (!in.complete()) return process->unreadable(Operation::kOpen);
  remote = {process, handle};
  return remote;
}

Result<std::string> ProxyDevice::call(Operation operation, const std::string& rest, const Patience& patience,
                                      Answers* answers, Remote& out_remote) {
  for (bool again = false;; again = true) {
    BP_ASSIGN(out_remote, live());
    Process& process = *out_remote.process;
    Writer request;
    request.put(out_remote.handle).append(rest);
    auto answer = process.call(operation, request.bytes(), {}, patience, answers);
    if (answer.ok() || again || answer.status().code() != BP_DEVICE_LOST || !process.killed_by_others()) return answer;
  }
}

void fill_device_table(uint32_t, bp_device_api_t& out) {
  out.size = sizeof out;
  out.count = count;
  out.info = info;
  out.open = open;
  out.close = close;
  out.abandon = abandon;
  out.health = health;  // even if the plugin has none, because it also checks that the process works
}

}  // namespace backplane::isolate
