// SPDX-License-Identifier: Apache-2.0
// Handles the loader's calls about the library, the backend and its devices.
#include "isolate/serve/server.h"

#include <algorithm>

#include "base/abi.h"
#include "discover/call.h"
#include "discover/file.h"
#include "discover/library.h"
#include "discover/process_state.h"
#include "discover/survey.h"
#include "isolate/library.h"
#include "isolate/serve/instance.h"

namespace backplane::isolate {
namespace {

constexpr uint32_t kMostOpsets = 1000;
constexpr uint32_t kMostStride = 4096;
constexpr uint64_t kMostText = 4096;

Status no_such(const char* what) {
  return {BP_DEVICE_LOST, std::string("there is no such ") + what + " in this process"};
}

Status write_opsets(const bp_opset_t* opsets, uint32_t count, uint32_t stride, Writer& out) {
  if (!opsets) count = 0;
  if (count > kMostOpsets || (count && (stride < abi::Size<bp_opset_t>::k10 || stride > kMostStride)))
    return {BP_INTERNAL, "its plugin reports " + std::to_string(count) + " operator sets of " + std::to_string(stride) +
                             " bytes each; at most " + std::to_string(kMostOpsets) + " of " +
                             std::to_string(abi::Size<bp_opset_t>::k10) + " to " + std::to_string(kMostStride) +
                             " bytes are accepted"};
  out.put<uint64_t>(count);
  for (uint32_t i = 0; i < count; ++i) {
    const bp_opset_t opset = abi::element(opsets, i, stride);
    if (opset.domain.size > kMostText)
      return {BP_INTERNAL, "its plugin reports a domain of " + std::to_string(opset.domain.size) + " bytes; at most " +
                               std::to_string(kMostText) + " are accepted"};
    out.text(opset.domain).put(opset.version);
  }
  return {};
}

void forward_span(const bp_host_t*, const bp_span_t* given) {
  try {
    const auto span = abi::read(given, "bp_span_t");
    if (!span.ok() || !traced_runs().any()) return;
    Writer question;
    question.put(span->kind).put(span->flags).put(span->begin).put(span->end).put(span->trace_id).put(span->bytes);
    question.put(span->device).array(span->nodes, span->nodes ? span->node_count : 0);
    question.text(abi::view(span->name).substr(0, kMostText));
    static_cast<void>(traced_runs().ask(Operation::kSpan, question.bytes()));
  } catch (const std::bad_alloc&) {  // out of memory: the span is lost
  }
}

uint32_t offered_by(const bp_plugin_t& plugin) {
  uint32_t offered = 0;
  const auto offer = [&](bool is, Offered what) { offered |= is ? static_cast<uint32_t>(what) : 0; };
  offer(plugin.device->health, kHealth);
  offer(plugin.coverage->review, kReview);
  offer(plugin.coverage->infer, kInfer);
  offer(plugin.coverage->opsets, kOpsets);
  offer(plugin.program->output_extents, kOutputExtents);
  offer(plugin.instance->extents, kExtents);
  offer(plugin.cache, kCache);
  offer(plugin.cache && plugin.cache->serialize, kSerialize);
  offer(plugin.cache && plugin.cache->validate, kValidate);
  offer(plugin.cache && plugin.cache->deserialize, kDeserialize);
  offer(plugin.weights, kWeights);
  offer(plugin.weights && plugin.weights->refit, kRefit);
  offer(plugin.weights && plugin.weights->read, kReadWeight);
  return offered;
}

}  // namespace

OptionTexts read_options(Reader& in) {
  OptionTexts options(in.count(16));
  for (auto& [name, value] : options) {
    name = in.text();
    value = in.text();
  }
  return options;
}

std::vector<bp_option_t> abi_options(const OptionTexts& options) {
  std::vector<bp_option_t> out;
  for (const auto& [name, value] : options) out.push_back({abi::text(name), abi::text(value)});
  return out;
}

Server::Server(std::string path, int library) : path_(std::move(path)), library_(library) {}
Server::~Server() = default;

ServedDevice::~ServedDevice() {
  if (handle) call_plugin([&] { tables.plugin.device->close(handle); });
}

Result<std::shared_ptr<ServedDevice>> Server::device(Reader& in) const {
  auto found = devices_.find(in.get<uint64_t>());
  if (!found) return no_such("device");
  return found;
}

Result<std::shared_ptr<ServedProgram>> Server::program(Reader& in) const {
  auto found = programs_.find(in.get<uint64_t>());
  if (!found) return no_such("program");
  return found;
}

Result<std::shared_ptr<ServedInstance>> Server::instance(Reader& in) const {
  auto found = instances_.find(in.get<uint64_t>());
  if (!found) return no_such("instance");
  return found;
}

Status Server::serve(Lane& lane, Message& request, Writer& out) {
  if (request.operation == Operation::kLoad) return load(out);
  if (!tables_) return {BP_BAD_STATE, "the library has not been loaded"};
  Reader in(request.bytes);
  if (request.operation == Operation::kCreate) return create(in);
  if (!backend_) return {BP_BAD_STATE, "the backend has not been created"};
  switch (request.operation) {
    case Operation::kDestroy:
      return destroy();
    case Operation::kCountDevices:
      return count_devices(out);
    case Operation::kDeviceInfo:
      return device_info(in, out);
    case Operation::kOpen:
      return open(in, out);
    case Operation::kClose:
      return close(in);
    case Operation::kHealth:
      return health(in);
    case Operation::kOpsets:
      return opsets(in, out);
    case Operation::kCoverage:
      return coverage(lane, request, out);
    case Operation::kReview:
      return review(lane, request, out);
    case Operation::kInfer:
      return infer(lane, request, out);
    case Operation::kCompile:
      return make_program(lane, request, out, false);
    case Operation::kDeserialize:
      return make_program(lane, request, out, true);
    case Operation::kValidate:
      return validate(in, out);
    case Operation::kDestroyProgram:
      return destroy_program(in);
    case Operation::kOutputExtents:
      return output_extents(lane, in, out);
    case Operation::kSerialize:
      return serialize(lane, in, out);
    case Operation::kRefit:
      return refit(lane, in);
    case Operation::kReadWeight:
      return read_weight(lane, in, out);
    case Operation::kCreateInstance:
      return create_instance(lane, in, out);
    case Operation::kDestroyInstance:
      return destroy_instance(in);
    case Operation::kBind:
      return bind(lane, request);
    case Operation::kExtents:
      return extents(lane, in);
    case Operation::kRun:
      return run_with_containers(lane, in, out);
    default:
      return {BP_UNSUPPORTED, "operation " + std::to_string(static_cast<uint32_t>(request.operation)) + " is unknown"};
  }
}

// Loads the library. Writes a refusal, or BP_REFUSED_NONE and the plugin's descriptor.
Status Server::load(Writer& out) {
  if (std::exchange(asked_, true)) return {BP_BAD_STATE, "the library has already been loaded"};
  const auto refused = [&](const Refusal& refusal) {
    out.put(refusal.code).text(refusal.text);
    return Status();
  };
  File file;
  if (const Refusal refusal = file.open("/proc/self/fd/" + std::to_string(library_))) return refused(refusal);
  ::close(library_);
  bp_plugin_query_t query = nullptr;
  if (const Refusal refusal = load_library(path_, file, {}, query)) return refused(refusal);
  auto tables = std::make_unique<PluginTables>();
  if (const Refusal refusal = negotiate(query, path_, {}, *tables)) return refused(refusal);
  const bp_plugin_t& plugin = tables->plugin;
  out.put<uint32_t>(BP_REFUSED_NONE);
  out.put(plugin.version).put(plugin.version_min).put(plugin.version_max).put(plugin.sanitizer);
  for (const bp_text_t* text : {&plugin.id, &plugin.name, &plugin.vendor, &plugin.release, &plugin.build_id})
    out.text(abi::view(*text).substr(0, kMostText));
  out.put(offered_by(plugin));
  const bp_coverage_api_t& coverage = *plugin.coverage;
  BP_TRY(write_opsets(coverage.newest_opsets, coverage.newest_opset_count, coverage.newest_opset_stride, out));
  tables_ = std::move(tables);
  return {};
}

Status Server::create(Reader& in) {
  if (backend_) return {BP_BAD_STATE, "the backend has already been created"};
  const std::string directory(in.text());
  const auto version = in.get<uint32_t>(), threads = in.get<uint32_t>();
  Host::Options options;
  for (auto& [name, value] : read_options(in)) options.emplace(std::move(name), std::move(value));
  if (!in.complete()) return {BP_CORRUPT, "the request cannot be read"};
  static LogLine log = nullptr;
  log = log_;
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  desc.threads = threads;
  desc.log_level = BP_LOG_DEBUG;  // the loader filters the lines
  desc.log = [](void*, uint32_t level, bp_text_t text) {
    if (log) log(level, abi::view(text));
  };
  services_ = std::make_shared<Services>(desc);
  host_ = std::make_shared<Host>(services_, std::string(), std::move(options), version);
  bp_backend_create_t how{};
  how.size = sizeof how;
  table_ = *host_->table();
  table_.tracing = [](const bp_host_t*) -> uint32_t { return traced_runs().any(); };
  table_.trace = forward_span;
  how.host = &table_;
  how.directory = abi::text(directory);
  PluginError error;
  const bp_status_t code = [&] {
    const KeptProcessState kept(KeptParts::kAll);
    return call_plugin(error, [&] { return tables_->plugin.create(&how, &backend_, error.get()); });
  }();
  if (code != BP_OK) {
    backend_ = nullptr;
    return Status::reported(code, error.get());
  }
  if (!backend_) return {BP_INTERNAL, "its plugin's `create` returned BP_OK without a backend"};
  return {};
}

Status Server::destroy() {
  host_->finish();
  call_plugin([&] { tables_->plugin.destroy(backend_); });
  backend_ = nullptr;
  return {};
}

Status Server::count_devices(Writer& out) const {
  uint32_t count = 0;
  PluginError error;
  const bp_status_t code =
      call_plugin(error, [&] { return tables_->plugin.device->count(backend_, &count, error.get()); });
  if (code != BP_OK) return Status::reported(code, error.get());
  out.put(count).text(error.text());
  return {};
}

Status Server::device_info(Reader& in, Writer& out) const {
  const auto index = in.get<uint32_t>();
  if (!in.complete()) return {BP_CORRUPT, "the request cannot be read"};
  bp_device_info_t info{};
  info.size = sizeof info;
  PluginError error;
  const bp_status_t code =
      call_plugin(error, [&] { return tables_->plugin.device->info(backend_, index, &info, error.get()); });
  if (code != BP_OK) return Status::reported(code, error.get());
  if (const std::string wrong = wrong_size(info); !wrong.empty()) return {BP_INTERNAL, wrong};
  out.put(DeviceNumbers::of(info));
  for (const bp_text_t* text : {&info.name, &info.vendor, &info.driver, &info.arch, &info.pci}) out.text(*text);
  const uint32_t properties = info.properties ? info.property_count : 0;
  out.put<uint64_t>(properties);
  for (uint32_t i = 0; i < properties; ++i) {
    const bp_option_t property = abi::element(info.properties, i, info.property_stride);
    out.text(property.name).text(property.value);
  }
  return {};
}

Status Server::open(Reader& in, Writer& out) {
  const auto index = in.get<uint32_t>();
  const auto id = in.get<uint64_t>();
  const OptionTexts texts = read_options(in);
  if (!in.complete()) return {BP_CORRUPT, "the request cannot be read"};
  const std::vector<bp_option_t> options = abi_options(texts);
  if (index == 0) host_->set_first_device(id);
  bp_device_open_t how{};
  how.size = sizeof how;
  how.id = id;
  how.options = options.data();
  how.option_count = static_cast<uint32_t>(options.size());
  how.option_stride = sizeof(bp_option_t);
  bp_device_t* handle = nullptr;
  PluginError error;
  const bp_device_api_t& api = *tables_->plugin.device;
  const bp_status_t code = [&] {
    const KeptProcessState kept(KeptParts::kAll);
    return call_plugin(error, [&] { return api.open(backend_, index, &how, &handle, error.get()); });
  }();
  if (code != BP_OK) return Status::reported(code, error.get());
  if (!handle) return {BP_INTERNAL, "its plugin's `open` returned BP_OK but opened nothing"};
  std::shared_ptr<ServedDevice> device(new ServedDevice{*tables_, handle, id, false, {}});
  bp_device_info_t info{};
  info.size = sizeof info;
  PluginError info_error;
  const bp_status_t described =
      call_plugin(info_error, [&] { return api.info(backend_, index, &info, info_error.get()); });
  if (described != BP_OK) return Status::reported(described, info_error.get());
  device->synchronous = info.flags & BP_DEVICE_SYNCHRONOUS;
  BP_ASSIGN(device->memory, DeviceMemory::of(tables_->plugin, info, handle, id));
  out.put(devices_.add(std::move(device)));
  return {};
}

Status Server::close(Reader& in) {
  devices_.take(in.get<uint64_t>());
  return {};
}

Status Server::health(Reader& in) const {
  BP_ASSIGN(const auto device, this->device(in));
  const bp_device_api_t& api = *tables_->plugin.device;
  if (!api.health) return {};
  PluginError error;
  const bp_status_t code = call_plugin(error, [&] { return api.health(device->handle, error.get()); });
  return code == BP_OK ? Status() : Status::reported(code, error.get());
}

Status Server::opsets(Reader& in, Writer& out) const {
  BP_ASSIGN(const auto device, this->device(in));
  const bp_coverage_api_t& api = *tables_->plugin.coverage;
  if (!api.opsets) return {BP_UNSUPPORTED, "its plugin has no `opsets`"};
  bp_opsets_t known{};
  known.size = sizeof known;
  PluginError error;
  const bp_status_t code = call_plugin(error, [&] { return api.opsets(device->handle, &known, error.get()); });
  if (code != BP_OK) return Status::reported(code, error.get());
  out.put(known.ir_version);
  return write_opsets(known.opsets, known.opset_count, known.opset_stride, out);
}

}  // namespace backplane::isolate
