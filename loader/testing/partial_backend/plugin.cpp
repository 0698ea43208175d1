// SPDX-License-Identifier: Apache-2.0
// A backend with several devices that follow a test's script (script.h) and compute with the CPU backend. CPU_PLUGIN is
// the file of the CPU backend.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "backplane/sdk/async.hpp"
#include "partial_backend/device.h"
#include "partial_backend/handles.h"

namespace backplane::partial {

namespace {

using sdk::Error;

bp_status_t BP_CALL device_count(bp_backend_t* handle, uint32_t* out_count, bp_error_t*) {
  *out_count = static_cast<uint32_t>(of(handle).scripts.size());
  return BP_OK;
}

bp_status_t BP_CALL device_info(bp_backend_t* handle, uint32_t index, bp_device_info_t* out, bp_error_t* error) {
  return fence(error, [&] {
    const Backend& backend = of(handle);
    if (index >= backend.scripts.size()) throw Error(BP_NOT_FOUND, "there is no device " + std::to_string(index));
    const Script& script = backend.scripts[index];
    bp_device_info_t info{};
    info.size = sizeof info;
    pass(cpu->device->info(backend.inner, 0, &info, error));
    info.index = index;
    info.kind = script.kind;
    info.flags = BP_DEVICE_DETERMINISTIC;
    if (!script.async) info.flags |= BP_DEVICE_SYNCHRONOUS;
    if (script.memory != Memory::kOwn) info.flags |= BP_DEVICE_UNIFIED_MEMORY;
    info.name = {"a partial device", 16};
    info.vendor = {"Backplane tests", 15};
    info.memory_bytes = script.bytes.value_or(info.memory_bytes);
    info.space_count = 1;
    static constexpr bp_option_t kProperties[] = {{{"arithmetic", 10}, {"the CPU backend's", 17}},
                                                  {{"size", 4}, {"0", 1}}};
    info.properties = kProperties;
    info.property_count = 2;
    info.property_stride = sizeof *kProperties;
    static constexpr uint32_t kAll[] = {8, 0, 1, 2, 3, 4, 5, 6, 7};
    std::copy(script.uuid.begin(), script.uuid.end(), info.uuid);
    info.peers = kAll;
    info.peer_count = script.peers ? static_cast<uint32_t>(std::min(backend.scripts.size() + 1, std::size(kAll))) : 0;
    write(out, info);
  });
}

// Throws if another object with the same count exists.
struct Only {
  std::atomic<int>& count;
  explicit Only(std::atomic<int>& counted, const char* what) : count(counted) {
    if (++count == 1) return;
    --count;
    throw Error(BP_INTERNAL, std::string(what) + " is called while it is running");
  }
  ~Only() { --count; }
};

// Takes memory from the framework's allocator, and writes to all of it.
void take_pool(const bp_device_open_t& how, bp_external_t& out_pool) {
  const bp_allocate_t what = {.size = sizeof what, .bytes = 4000};
  out_pool.size = sizeof out_pool;
  if (const bp_status_t status = how.allocate(how.self, &what, &out_pool); status != BP_OK)
    throw Error(status, "the framework's allocator returned no memory");
  if (out_pool.kind == BP_EXTERNAL_HOST_POINTER && out_pool.bytes >= what.bytes)
    std::memset(reinterpret_cast<char*>(out_pool.handle) + out_pool.offset, 0, out_pool.bytes);
}

bp_status_t BP_CALL device_open(bp_backend_t* handle, uint32_t index, const bp_device_open_t* how, bp_device_t** out,
                                bp_error_t* error) {
  *out = nullptr;
  return fence(error, [&] {
    const Only only(of(handle).opening, "open");
    take_time(of(handle).scripts.at(index).open_us);
    auto device = std::make_unique<Device>();
    device->backend = &of(handle);
    device->index = index;
    device->id = how->id;
    if (device->script().pool && BP_HAS(how, how->size, allocate) && how->allocate != nullptr)
      take_pool(*how, device->pool);
    pass(cpu->device->open(device->backend->inner, 0, how, &device->inner, error));
    *out = reinterpret_cast<bp_device_t*>(device.release());
  });
}

void BP_CALL device_close(bp_device_t* handle) {
  if (handle == nullptr) return;
  of(handle).called();
  cpu->device->close(of(handle).inner);
  delete &of(handle);
}

bp_status_t BP_CALL health(bp_device_t* handle, bp_error_t* error) {
  return fence(error, [&] {
    of(handle).called();
    of(handle).check();
  });
}

void BP_CALL device_abandon(bp_device_t* handle) {
  ++of(handle).counters().abandoned;
  of(handle).abandoned = true;
}

const bp_device_api_t kDeviceApi = {
    .size = sizeof(bp_device_api_t),
    .count = device_count,
    .info = device_info,
    .open = device_open,
    .close = device_close,
    .health = health,
    .abandon = device_abandon,
};

bp_status_t BP_CALL create(const bp_backend_create_t* how, bp_backend_t** out, bp_error_t* error) {
  return fence(error, [&] {
    static std::atomic<int> creating{0};
    const Only only(creating, "create");
    auto backend = std::make_unique<Backend>();
    backend->host = how->host;
    backend->sdk_host.emplace(how->host);
    const uint64_t devices = read_devices(how->host);
    for (uint32_t i = 0; i < devices; ++i) backend->scripts.push_back(read_script(how->host, i));
    if (devices != 0) take_time(backend->scripts[0].open_us);
    if (backend->sdk_host->extension("org.backplane.test.unknown", 1) != nullptr)
      throw Error(BP_INTERNAL, "the host returns an extension that does not exist");
    backend->counters = std::make_unique<Counters[]>(devices);
    // The CPU backend gets no settings, because it would reject those of the script.
    backend->cpu_host = sdk::read(how->host, "how.host");
    backend->cpu_host.option = [](const bp_host_t*, bp_text_t, bp_text_t*) -> bp_status_t { return BP_NOT_FOUND; };
    backend->cpu_host.option_at = nullptr;
    bp_backend_create_t cpu_how = sdk::read(how, "how");
    cpu_how.host = &backend->cpu_host;
    pass(cpu->create(&cpu_how, &backend->inner, error));
    *out = reinterpret_cast<bp_backend_t*>(backend.release());
  });
}

void BP_CALL destroy(bp_backend_t* handle) {
  if (handle == nullptr) return;
  cpu->destroy(of(handle).inner);
  delete &of(handle);
}

const HandlesApi kHandlesApi = {
    .device_index = [](const bp_device_t* device) { return reinterpret_cast<const Device*>(device)->index; },
    .program_nodes = [](const bp_program_t* program) { return of(program).nodes; },
    .stream_wait =
        [](bp_stream_t* stream) { return fence(nullptr, [&] { sdk::stream_of(stream)->wait(BP_FOREVER); }); },
    .semaphore_value = [](bp_native_semaphore_t* semaphore) { return sdk::semaphore_of(semaphore)->value(); },
};

const void* BP_CALL get_extension(bp_backend_t* handle, bp_text_t name, uint32_t version) {
  const std::string_view wanted(name.data, name.size);
  if (version != 1) return nullptr;
  if (wanted == "handles") return &kHandlesApi;
  return wanted == "counters" ? of(handle).counters.get() : nullptr;
}

// Keeps the library loaded, so that all queries have the same result.
const bp_plugin_t* ask_cpu(const bp_host_offer_t* offer) {
  static void* const kLibrary = dlopen(CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  static const auto kQuery =
      kLibrary == nullptr ? nullptr : reinterpret_cast<bp_plugin_query_t>(dlsym(kLibrary, BP_PLUGIN_SYMBOL));
  return kQuery == nullptr ? nullptr : kQuery(offer);
}

}  // namespace
}  // namespace backplane::partial

extern "C" BP_EXPORT const bp_plugin_t* BP_CALL bp_plugin_query(const bp_host_offer_t* offer) {
  using namespace backplane::partial;
  const bp_plugin_t* answer = ask_cpu(offer);
  if (answer == nullptr || answer->version == 0) return answer;
  static const bp_plugin_t kPlugin = [answer] {
    cpu = answer;
    bp_plugin_t plugin = backplane::sdk::read(answer, "bp_plugin_query");
    plugin.id = {"partial", 7};
    plugin.name = {"partial devices for tests", 25};
    plugin.create = create;
    plugin.destroy = destroy;
    plugin.get_extension = get_extension;
    plugin.device = &kDeviceApi;
    plugin.coverage = &kCoverageApi;
    plugin.program = &kProgramApi;
    plugin.instance = &kInstanceApi;
    plugin.memory = &kMemoryApi;
    plugin.sync = &kSyncApi;
    plugin.cache = &kCacheApi;
    return plugin;
  }();
  return &kPlugin;
}
