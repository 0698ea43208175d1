// SPDX-License-Identifier: Apache-2.0
// Cases of the group abi: the descriptor, versions, loading, extensions and the rules for every call.
#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstring>

#include "backplane/sizes.h"
#include "checks/group.h"

namespace backplane::conform {
namespace {

std::string_view view_of(bp_text_t text) {
  return {text.data, text.size};
}

Result layout(Bench& bench) {
  const bp_plugin_t& plugin = *bench.library().query();
  const struct {
    const char* name;
    const void* table;
    size_t frozen;
  } tables[] = {{"bp_plugin_t", &plugin, BP_SIZE_1_0(bp_plugin_t)},
                {"device", plugin.device, BP_SIZE_1_0(bp_device_api_t)},
                {"coverage", plugin.coverage, BP_SIZE_1_0(bp_coverage_api_t)},
                {"program", plugin.program, BP_SIZE_1_0(bp_program_api_t)},
                {"instance", plugin.instance, BP_SIZE_1_0(bp_instance_api_t)},
                {"memory", plugin.memory, BP_SIZE_1_0(bp_memory_api_t)},
                {"sync", plugin.sync, BP_SIZE_1_0(bp_sync_api_t)},
                {"cache", plugin.cache, BP_SIZE_1_0(bp_cache_api_t)},
                {"weights", plugin.weights, BP_SIZE_1_0(bp_weights_api_t)}};
  for (const auto& [name, table, frozen] : tables) {
    uint32_t size = 0;
    if (table == nullptr) continue;
    std::memcpy(&size, table, sizeof size);
    if (size < frozen) return failed(fmt::format("table {} has size {}, ABI 1.0 has {}", name, size, frozen));
  }
  const auto& c = *plugin.coverage;
  const auto& d = *plugin.device;
  const auto& p = *plugin.program;
  const auto& i = *plugin.instance;
  const struct {
    const char* name;
    bool is_set;
  } slots[] = {{"device.count", d.count != nullptr},      {"device.info", d.info != nullptr},
               {"device.open", d.open != nullptr},        {"device.close", d.close != nullptr},
               {"coverage.query", c.query != nullptr},    {"program.compile", p.compile != nullptr},
               {"program.destroy", p.destroy != nullptr}, {"program.info", p.info != nullptr},
               {"instance.create", i.create != nullptr},  {"instance.destroy", i.destroy != nullptr},
               {"instance.bind", i.bind != nullptr},      {"instance.run", i.run != nullptr}};
  for (const auto& slot : slots) {
    if (!slot.is_set) return failed(fmt::format("the slot {}, which has no default, is NULL", slot.name));
  }
  if (c.newest_opset_count != 0 && c.newest_opsets == nullptr)
    return failed(fmt::format("newest_opset_count is {}, but newest_opsets is NULL", c.newest_opset_count));
  if (c.newest_opset_count != 0 && c.newest_opset_stride < BP_SIZE_1_0(bp_opset_t))
    return failed(fmt::format("newest_opset_stride is {}, below the {} of ABI 1.0", c.newest_opset_stride,
                              BP_SIZE_1_0(bp_opset_t)));
  return passed();
}

Result identity(Bench& bench) {
  const bp_plugin_t& plugin = *bench.library().query();
  const std::string id(view_of(plugin.id));
  const bool sound = !id.empty() && std::all_of(id.begin(), id.end(), [](char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') || ch == '_';
  });
  if (!sound) return failed(fmt::format("the id '{}' must consist of lower-case letters, digits and '_'", id));
  const std::string stem = bench.plugin().stem().string();
  if (stem != "libbackplane_" + id)
    return failed(fmt::format("the file is named {}, not libbackplane_<id>; the id is '{}'", stem, id));
  if (plugin.name.size == 0) return failed("its descriptor has no name: set bp_plugin_t.name");
  if (plugin.release.size == 0) return failed("its descriptor has no release: set bp_plugin_t.release");
  return passed();
}

size_t thread_count() {
  size_t count = 0;
  DIR* dir = opendir("/proc/self/task");
  while (dir != nullptr && readdir(dir) != nullptr) ++count;
  if (dir != nullptr) closedir(dir);
  return count;
}

Result scan(Bench& bench) {
  const size_t threads = thread_count();
  const uint64_t start = now_ns();
  const Library library(bench.plugin());
  const bp_plugin_t* first = library.query();
  const double seconds = static_cast<double>(now_ns() - start) / 1e9;
  const std::string before(view_of(first->id));
  if (const bp_plugin_t* again = library.query(); again->version != first->version || view_of(again->id) != before) {
    return failed("a second query returns a different descriptor");
  }
  if (thread_count() > threads) return failed("the query starts a thread");
  if (seconds > 0.1) return failed(fmt::format("loading and the query take {:.0f} ms; 100 are allowed", seconds * 1e3));
  return passed();
}

Result versions(Bench& bench) {
  const Library& library = bench.library();
  const bp_plugin_t* plugin = library.query(BP_ABI_VERSION_MIN, BP_MAKE_VERSION(1, 99));
  if (plugin->version == 0) return failed("a host that also supports newer minor versions is refused");
  if (plugin->version < plugin->version_min || plugin->version > plugin->version_max) {
    return failed(fmt::format("version {:#x} is outside the plugin's range", plugin->version));
  }
  for (const uint32_t other : {BP_MAKE_VERSION(99, 0), BP_ABI_VERSION_MIN - 1}) {
    plugin = library.query(other, other);
    if (plugin->version != 0) return failed(fmt::format("a host that supports only {:#x} is not refused", other));
    if (BP_STATUS_CLASS(plugin->refusal) == BP_CLASS_OK) return failed("the refusal has no code");
    if (plugin->refusal_text.size == 0) return failed("the refusal has no text");
  }
  if (library.query()->version == 0) return failed("after refusing one host, the plugin refuses a supported host too");
  return passed();
}

// A plugin must accept an offer longer than ABI 1.0's, which a newer host may make, and refuse a shorter one.
Result longer_offer(Bench& bench) {
  struct {
    bp_host_offer_t offer;
    uint64_t newer[4];
  } later = {{.size = sizeof later, .version_min = BP_ABI_VERSION_MIN, .version_max = BP_MAKE_VERSION(1, 7)},
             {~0u, ~0u, ~0u, ~0u}};
  later.offer.sanitizer = kOwnSanitizer;
  const bp_plugin_t* plugin = bench.library().query(&later.offer);
  if (plugin == nullptr || plugin->version == 0) return failed("an offer longer than that of ABI 1.0 is refused");
  later.offer.size = 4;
  plugin = bench.library().query(&later.offer);
  if (plugin == nullptr) return failed("bp_plugin_query returns NULL");
  return plugin->version == 0 ? passed() : failed("an offer of 4 bytes, shorter than that of ABI 1.0, is accepted");
}

Result load_unload(Bench& bench) {
  for (int i = 0; i < 10; ++i) {
    Host host;
    const Library library(bench.plugin());
    const Backend backend(library, host);
    const Device device(backend, bench.device_index());
  }
  return passed();
}

Result unknown_extension(Bench& bench) {
  const Device& device = bench.device();
  const std::string name = "org.example.unknown";
  const auto get = device.plugin().get_extension;
  if (get == nullptr) return passed();
  if (get(device.backend().raw(), {name.data(), name.size()}, 1) != nullptr)
    return failed("an extension that does not exist is returned");
  return get(device.backend().raw(), {nullptr, 0}, 0) == nullptr ? passed()
                                                                 : failed("an extension without a name is returned");
}

// A plugin must skip an unknown chained struct, or refuse it if it is marked as required.
Result unknown_chain(Bench& bench) {
  const Library& library = bench.library();
  const bp_plugin_t& plugin = *library.query();
  const std::string name = "org.example.unknown", directory = library.directory();
  for (const uint32_t required : {0u, 1u}) {
    const bp_chain_t chain = {sizeof chain, required, {name.data(), name.size()}, 1, 0, nullptr};
    Host host;
    const bp_backend_create_t how = {
        .size = sizeof how, .host = host.table(), .directory = {directory.data(), directory.size()}, .chain = &chain};
    bp_backend_t* backend = nullptr;
    Detail detail;
    const bp_status_t status = plugin.create(&how, &backend, detail.error());
    if (status == BP_OK) plugin.destroy(backend);
    if (required == 0 && status != BP_OK)
      return failed(fmt::format("an optional unknown struct is refused: {}", detail.text()));
    if (required == 1 && status != BP_UNSUPPORTED) {
      return failed(
          fmt::format("with a required unknown struct, create returns {}, not BP_UNSUPPORTED", status_name(status)));
    }
  }
  return passed();
}

// Unknown flags in the low 16 bits are hints and must be ignored. Unknown flags in the high 16 bits must be refused.
Result unknown_flags(Bench& bench) {
  constexpr uint32_t kHint = 0x8000, kRequired = 0x80000000;
  const Device& device = bench.device();
  const bp_plugin_t& plugin = device.plugin();
  Result result;
  const auto subject = make_subject(device, problem_of("Add/float/same", bench.seed(), "flags"), result);
  if (subject == nullptr) return result;
  Answer answer;
  if (Program::compile(device, *subject->graph, answer, nullptr, kRequired) != nullptr ||
      answer.status != BP_UNSUPPORTED)
    return failed(fmt::format("compile with an unknown required flag returns {}, not BP_UNSUPPORTED",
                              status_name(answer.status)));
  const auto program = Program::compile(device, *subject->graph, answer, nullptr, kHint);
  if (program == nullptr) return failed(fmt::format("compile with an unknown hint fails: {}", answer.describe()));
  for (const uint32_t flag : {kHint, kRequired}) {
    const bp_instance_create_t how = {.size = sizeof how, .flags = flag};
    bp_instance_t* instance = nullptr;
    Detail detail;
    const bp_status_t status = plugin.instance->create(program->raw(), &how, &instance, detail.error());
    if (status == BP_OK) plugin.instance->destroy(instance);
    if (const bp_status_t right = flag == kHint ? BP_OK : BP_UNSUPPORTED; status != right)
      return failed(fmt::format("instance create with the unknown flag {:#x} returns {}, not {}", flag,
                                status_name(status), status_name(right)));
  }
  const auto instance = Instance::create(*program, answer);
  if (instance == nullptr) return failed(answer.describe());
  if (answer = instance->bind_all(subject->inputs); !answer.ok()) return failed(answer.describe());
  bp_semaphore_t ended;
  bp_run_t run = {.size = sizeof run, .flags = kRequired, .self = &ended};
  run.done = [](void* self, bp_status_t, const bp_error_t*) { static_cast<bp_semaphore_t*>(self)->signal(1, false); };
  if (answer = instance->start(run); answer.status != BP_UNSUPPORTED)
    return failed(
        fmt::format("run with an unknown required flag returns {}, not BP_UNSUPPORTED", status_name(answer.status)));
  run.flags = kHint;
  if (answer = instance->start(run); !answer.ok()) return failed(answer.describe());
  if (ended.wait(1, now_ns() + 10'000'000'000, nullptr) != BP_OK) return failed("the run does not end");
  return passed(1);
}

// A failing call must accept NULL as its error argument, and must not write more text than fits.
Result error_room(Bench& bench) {
  const Device& device = bench.device();
  const bp_device_api_t& api = *device.plugin().device;
  bp_backend_t* backend = device.backend().raw();
  bp_device_info_t info = {.size = sizeof info};
  if (const bp_status_t status = api.info(backend, 9999, &info, nullptr); status != BP_NOT_FOUND)
    return failed(
        fmt::format("info of device 9999, which does not exist, returns {}, not BP_NOT_FOUND", status_name(status)));
  const bp_device_open_t how = {.size = sizeof how, .option_stride = sizeof(bp_option_t)};
  auto* opened = reinterpret_cast<bp_device_t*>(1);
  if (api.open(backend, 9999, &how, &opened, nullptr) == BP_OK) return failed("device 9999 does not exist, but opens");
  if (opened != nullptr) return failed("a failed open does not set its out-argument to NULL");
  for (const uint64_t room : {uint64_t{0}, uint64_t{1}, uint64_t{7}}) {
    char text[64];
    std::memset(text, 0x55, sizeof text);
    bp_error_t error = {.size = sizeof error, .text = text, .text_capacity = room};
    const bp_status_t status = api.info(backend, 9999, &info, &error);
    if (error.status != status)
      return failed(fmt::format("the error has status {}, but the call returned {}", status_name(error.status),
                                status_name(status)));
    if (error.text_size == 0) return failed("the error of info for device 9999 has no text");
    if (std::any_of(text + room, text + sizeof text, [](char c) { return c != 0x55; })) {
      return failed(fmt::format("the error text exceeds the caller's {} bytes", room));
    }
  }
  return passed();
}

Result destroy_nothing(Bench& bench) {
  const bp_plugin_t& plugin = bench.device().plugin();
  plugin.instance->destroy(nullptr);
  plugin.program->destroy(nullptr);
  plugin.device->close(nullptr);
  plugin.destroy(nullptr);
  return passed();
}

Result device_info(Bench& bench) {
  const Device& device = bench.device();
  const bp_device_info_t& info = device.info();
  if (info.index != bench.device_index())
    return failed(fmt::format("device {} reports the index {}", bench.device_index(), info.index));
  if (info.kind < BP_DEVICE_CPU || info.kind > BP_DEVICE_OTHER)
    return failed(fmt::format("the device has the undefined kind {}", info.kind));
  if (info.name.size == 0) return failed("the device has no name");
  if (info.dtypes == 0) return failed("the device has no data types");
  if (info.size > sizeof info) return failed("the plugin raised the size of the device info, which the caller sets");
  if (info.space_count == 0 && device.plugin().memory != nullptr)
    return failed("the plugin has a memory table, but the device has no memory space");
  return passed();
}

// A plugin must work with a host that offers only the mandatory slots.
Result bare_host(Bench& bench) {
  Host host;
  host.remove_optional_slots();
  const Backend backend(bench.library(), host);
  const Device device(backend, bench.device_index());
  Result result;
  uint32_t computed = 0;
  for (const char* op_case : {"Add/float/same_long", "MatMul/float/block_positive", "Softmax/float/long"}) {
    const auto subject = make_subject(device, problem_of(op_case, bench.seed(), "bare"), result);
    if (subject == nullptr) continue;
    std::vector<onnx::Tensor> outputs;
    const Answer answer = compute(device, *subject->graph, subject->inputs, outputs);
    if (!answer.ok()) return failed(fmt::format("{}: {}", op_case, answer.describe()));
    if (const std::string fault = subject->fault(outputs); !fault.empty())
      return failed(fmt::format("{}: {}", op_case, fault));
    ++computed;
  }
  return computed == 0 ? result : passed(computed);
}

// The host offers no extension. A plugin must name each extension that it requests, and must work without it.
Result host_extensions(Bench& bench) {
  Host host;
  const Backend backend(bench.library(), host);
  const Device device(backend, bench.device_index());
  Result result;
  const auto subject = make_subject(device, problem_of("Add/float/same", bench.seed(), "extensions"), result);
  std::vector<onnx::Tensor> outputs;
  if (subject != nullptr) {
    const Answer answer = compute(device, *subject->graph, subject->inputs, outputs);
    if (!answer.ok()) return failed(answer.describe());
    if (const std::string fault = subject->fault(outputs); !fault.empty()) return failed(fault);
  }
  if (const std::string misuse = host.misuse(); !misuse.empty()) return failed("the plugin " + misuse);
  return subject != nullptr ? passed(1) : result;
}

struct Row {
  const char* name;
  Result (*run)(Bench& bench);
};
constexpr Row kRows[] = {{"abi/layout", layout},
                         {"abi/identity", identity},
                         {"abi/scan", scan},
                         {"abi/versions", versions},
                         {"abi/longer_offer", longer_offer},
                         {"abi/load_unload", load_unload},
                         {"abi/unknown_extension", unknown_extension},
                         {"abi/unknown_chain", unknown_chain},
                         {"abi/unknown_flags", unknown_flags},
                         {"abi/error_room", error_room},
                         {"abi/destroy_nothing", destroy_nothing},
                         {"abi/device_info", device_info},
                         {"abi/bare_host", bare_host},
                         {"abi/host_extensions", host_extensions}};

}  // namespace

void add_abi(const Selection&, std::vector<Case>& out_cases) {
  for (const Row& row : kRows) out_cases.push_back({row.name, row.run});
}

}  // namespace backplane::conform
