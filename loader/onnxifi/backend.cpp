// SPDX-License-Identifier: Apache-2.0
#include "onnxifi/backend.h"

#include <dlfcn.h>

#include <optional>

#include "onnxifi/forks.h"
#include "onnxifi/handles.h"

namespace backplane::onnxifi {
namespace {

// Whether this library was opened as a vendor's library, libonnxifi-NAME.so. Backend onnxifi opens libraries of such
// names; this library must then not use backend onnxifi in turn.
bool is_vendor_library() {
  static const char kHere = 0;
  Dl_info info{};
  if (dladdr(&kHere, &info) == 0 || info.dli_fname == nullptr) return false;
  const std::string_view path = info.dli_fname;
  return path.substr(path.rfind('/') + 1).starts_with("libonnxifi-");
}

EnvironmentOptions environment_options() {
  EnvironmentOptions options;
  options.options["loader.contradictions"] = "refused";  // ONNXIFI has a status for them
  if (is_vendor_library()) {
    options.options["loader.disable"] = "onnxifi";
    // The process that opened this library may be in a sandbox that forbids the child process of a probe. Such a
    // process is isolated itself, so a backend that crashes ends only that process.
    options.options["loader.probe"] = "if_possible";
  }
  return options;
}

}  // namespace

// ---- ids -----------------------------------------------------------------------------------------------------------

onnxBitfield BackendId::memory_types() const {
  onnxBitfield types = ONNXIFI_MEMORY_TYPE_CPU;
  for (uint32_t i = 0; i < device_.info.space_count; ++i) {
    bp_space_t space{};
    space.size = sizeof space;
    client::detail::call(api().memory_space, environment_.get(), device_.info.id, i, &space);
    for (uint32_t k = 0; k < space.import_count; ++k) {
      if (space.imports[k] == BP_EXTERNAL_CUDA_POINTER) types |= ONNXIFI_MEMORY_TYPE_CUDA_BUFFER;
      if (space.imports[k] == BP_EXTERNAL_CL_MEM) types |= ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER;
    }
  }
  return types;
}

bool BackendId::release() {
  uint64_t count = acquired_;
  while (count != 0 && !acquired_.compare_exchange_weak(count, count - 1)) {
  }
  return count != 0;
}

const std::vector<std::pair<void*, std::shared_ptr<BackendId>>>& backend_ids() {
  using Ids = std::vector<std::pair<void*, std::shared_ptr<BackendId>>>;
  static std::atomic<const Ids*> made{nullptr};
  if (const Ids* const ids = made) return *ids;
  start_use();
  // A thread of the parent was making the ids at the fork: it does not exist here, but their guard stays locked.
  if (is_forked()) throw Failure{ONNXIFI_STATUS_BACKEND_UNAVAILABLE};
  // Never destroyed, because destructors of the program's static objects may still call this library.
  static const auto* const kIds = [] {
    auto* ids = new Ids;
    const Environment environment(environment_options());
    for (const Device& device : environment.devices())
      ids->emplace_back(next_handle(), std::make_shared<BackendId>(environment, device));
    return ids;
  }();
  made = kIds;
  return *kIds;
}

std::shared_ptr<BackendId> backend_id(void* handle) {
  for (const auto& [each, id] : backend_ids()) {
    if (each == handle) return id->acquired() ? id : nullptr;
  }
  return nullptr;
}

// ---- backends ------------------------------------------------------------------------------------------------------

Backend::Backend(const BackendId& id, const uint64_t* properties)
    : environment_(id.environment()), device_(id.device()) {
  std::optional<uint32_t> log_level;
  std::optional<bp_native_t> context;
  bool is_supported = true;  // an invalid value of a later property is reported before an unknown property
  for (; properties != nullptr && properties[0] != ONNXIFI_BACKEND_PROPERTY_NONE; properties += 2) {
    const uint64_t value = properties[1];
    switch (properties[0]) {
      case ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION:
        if (value > ONNXIFI_OPTIMIZATION_LOW_DELAY) throw Failure{ONNXIFI_STATUS_INVALID_PROPERTY};
        break;  // ignored, because there is only one optimization level
      case ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL:
        if (value < ONNXIFI_LOG_LEVEL_DEBUG || value > ONNXIFI_LOG_LEVEL_ERROR)
          throw Failure{ONNXIFI_STATUS_INVALID_PROPERTY};
        log_level = static_cast<uint32_t>(ONNXIFI_LOG_LEVEL_ERROR - value + BP_LOG_ERROR);
        break;
      case ONNXIFI_BACKEND_OPENCL_CONTEXT:
        if ((id.memory_types() & ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER) == 0) {
          is_supported = false;
          break;
        }
        if (value == 0) throw Failure{ONNXIFI_STATUS_INVALID_PROPERTY};
        context = bp_native_t{sizeof(bp_native_t), BP_NATIVE_CL_CONTEXT, value, nullptr};
        break;
      default:
        is_supported = false;
    }
  }
  if (!is_supported) throw Failure{ONNXIFI_STATUS_UNSUPPORTED_PROPERTY};
  if (!log_level && !context) return;
  // A different log level, or a device opened in another context, needs a separate environment.
  EnvironmentOptions options = environment_options();
  options.log_level = log_level.value_or(0);
  environment_ = Environment(options);
  for (const Device& each : environment_.devices()) {
    if (each.info.id != id.device().info.id) continue;
    device_ = each;
    if (context) environment_.open_device(each.info.id, *context);
    return;
  }
  throw Failure{ONNXIFI_STATUS_BACKEND_UNAVAILABLE};
}

Session Backend::compile(const Model& model) const {
  SessionOptions options;
  options.devices = {device_.name};
  options.fallback = BP_FALLBACK_FORBID;
  try {
    return environment_.compile(model, options);
  } catch (const Error& error) {
    if (error.status() != BP_UNSUPPORTED) throw;
    const onnxStatus why = compatibility(environment_, device_, model);
    throw Failure{why == ONNXIFI_STATUS_SUCCESS ? ONNXIFI_STATUS_UNSUPPORTED_OPERATOR : why};
  }
}

// ---- models --------------------------------------------------------------------------------------------------------

namespace {

// Field numbers of ModelProto and GraphProto.
constexpr uint64_t kGraph = 7, kInitializer = 5, kSparseInitializer = 15;

// Calls `each` with the number and the contents of each length-delimited field. Returns false if the bytes do not
// consist of whole protobuf fields, or if `each` returned false.
template <class Each>
bool each_field(const uint8_t* at, const uint8_t* end, const Each& each) {
  const auto varint = [&]() -> std::optional<uint64_t> {
    uint64_t value = 0;
    for (int shift = 0; at != end && shift < 64; shift += 7) {
      value |= uint64_t{*at & 0x7Fu} << shift;
      if ((*at++ & 0x80u) == 0) return value;
    }
    return std::nullopt;
  };
  while (at != end) {
    const std::optional<uint64_t> key = varint();
    if (!key || *key >> 3 == 0) return false;
    uint64_t bytes = 0;
    switch (*key & 7) {
      case 0:
        if (!varint()) return false;
        break;
      case 1:
        bytes = 8;
        break;
      case 2: {
        const std::optional<uint64_t> size = varint();
        if (!size) return false;
        bytes = *size;
        break;
      }
      case 5:
        bytes = 4;
        break;
      default:
        return false;
    }
    if (bytes > static_cast<uint64_t>(end - at)) return false;
    if ((*key & 7) == 2 && !each(*key >> 3, at, at + bytes)) return false;
    at += bytes;
  }
  return true;
}

// Calls `each` with the number of each length-delimited field of the model's graph. Returns false if the model or its
// graph does not consist of whole protobuf fields.
template <class Each>
bool each_graph_field(size_t bytes, const void* model, const Each& each) {
  const auto* const first = static_cast<const uint8_t*>(model);
  return each_field(first, first + bytes, [&](uint64_t number, const uint8_t* at, const uint8_t* end) {
    return number != kGraph || each_field(at, end, [&](uint64_t inner, const uint8_t*, const uint8_t*) {
             each(inner);
             return true;
           });
  });
}

}  // namespace

bool has_initializers(size_t bytes, const void* model) {
  bool found = false;
  const auto look = [&](uint64_t number) { found = found || number == kInitializer || number == kSparseInitializer; };
  return each_graph_field(bytes, model, look) && found;
}

Model parse(const Environment& environment, size_t bytes, const void* model,
            const std::vector<bp_named_tensor_t>& weights, std::shared_ptr<const void> keep) {
  if (model == nullptr) throw Failure{ONNXIFI_STATUS_INVALID_POINTER};
  if (bytes == 0) throw Failure{ONNXIFI_STATUS_INVALID_SIZE};
  if (!each_graph_field(bytes, model, [](uint64_t) {})) throw Failure{ONNXIFI_STATUS_INVALID_PROTOBUF};
  using Kept = std::pair<std::string, std::shared_ptr<const void>>;
  const auto kept = std::make_shared<const Kept>(std::string(static_cast<const char*>(model), bytes), std::move(keep));
  bp_model_source_t source{};
  source.size = sizeof source;
  source.descriptor = -1;
  source.bytes = bp_bytes_t{kept->first.data(), kept->first.size()};
  source.weights = weights.data();
  source.weight_count = static_cast<uint32_t>(weights.size());
  source.weight_stride = sizeof(bp_named_tensor_t);
  bp_model_t* made = nullptr;
  try {
    client::detail::call(api().model_open, environment.get(), static_cast<const bp_model_source_t*>(&source), &made);
  } catch (const Error& error) {
    if (error.status() == BP_TYPE_MISMATCH) {
      // Without an environment, models whose declared extents contradict the inferred ones are accepted, but not models
      // whose types do.
      bp_error_t ignored{};
      ignored.size = sizeof ignored;
      const bp_status_t status = client::detail::try_call(ignored, api().model_open, static_cast<bp_env_t*>(nullptr),
                                                          static_cast<const bp_model_source_t*>(&source), &made);
      api().model_destroy(made);
      throw Failure{status == BP_OK ? ONNXIFI_STATUS_MISMATCHING_SHAPE : ONNXIFI_STATUS_MISMATCHING_DATATYPE};
    }
    if (error.status() == BP_UNSUPPORTED) throw Failure{ONNXIFI_STATUS_UNSUPPORTED_VERSION};
    // BP_NOT_FOUND means an unknown name in `weights`, or missing external data.
    if (error.status() == BP_NOT_FOUND && weights.empty()) throw Failure{ONNXIFI_STATUS_INVALID_MODEL};
    throw;
  }
  return Model(made, kept);
}

onnxStatus compatibility(const Environment& environment, const Device& device, const Model& model) {
  SessionOptions options;
  options.devices = {device.name};
  options.flags = BP_SESSION_PLACE_ONLY;
  const Session session = environment.compile(model, options);
  const uint32_t nodes = session.model().graph().node_count();
  for (uint32_t i = 0; i < nodes; ++i) {
    const bp_placed_node_t placed = session.node(i);
    if (placed.device != 0 || placed.island != BP_NONE) continue;
    const bp_node_verdict_t verdict = session.verdict(i, device.info.id);
    if (verdict.answer == BP_ANSWER_NO) return status_of_reason(verdict.reason);
  }
  return ONNXIFI_STATUS_SUCCESS;
}

}  // namespace backplane::onnxifi
