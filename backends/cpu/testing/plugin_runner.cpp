// SPDX-License-Identifier: Apache-2.0
#include "testing/plugin_runner.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace backplane::cpu::testing {

namespace {

int64_t byte_count(bp_dtype_t dtype, uint32_t rank, const int64_t* extents) {
  int64_t n = 1;
  for (uint32_t d = 0; d < rank; ++d) n *= extents[d];
  switch (dtype) {
    case BP_DTYPE_DOUBLE:
    case BP_DTYPE_INT64:
    case BP_DTYPE_UINT64:
    case BP_DTYPE_COMPLEX64:
      return n * 8;
    case BP_DTYPE_FLOAT:
    case BP_DTYPE_INT32:
    case BP_DTYPE_UINT32:
      return n * 4;
    case BP_DTYPE_FLOAT16:
    case BP_DTYPE_BFLOAT16:
    case BP_DTYPE_INT16:
    case BP_DTYPE_UINT16:
      return n * 2;
    case BP_DTYPE_INT4:
    case BP_DTYPE_UINT4:
      return (n + 1) / 2;
    default:
      return n;
  }
}

struct Outputs {
  const bp_graph_t* graph;
  std::vector<HostTensor>* tensors;

  // Fills the memory with 0xCD, so that tests detect elements that a kernel did not write.
  static bp_status_t provide(void* self, uint32_t slot, uint32_t rank, const int64_t* extents, uint64_t bytes,
                             bp_tensor_t* out_tensor) {
    auto& outputs = *static_cast<Outputs*>(self);
    uint32_t o = slot - BP_SLOT_OUTPUT;
    HostTensor& tensor = (*outputs.tensors)[o];
    tensor.dtype = bp_graph_type(outputs.graph, bp_graph_value(outputs.graph, outputs.graph->outputs[o])->type)->dtype;
    tensor.extents.assign(extents, extents + rank);
    tensor.bytes.assign(bytes != 0 ? bytes : static_cast<size_t>(byte_count(tensor.dtype, rank, extents)), '\xcd');
    *out_tensor = tensor.view();
    return BP_OK;
  }
};

}  // namespace

HostTensor HostTensor::of_texts(std::vector<int64_t> extents, const std::vector<std::string>& texts) {
  std::vector<int64_t> offsets = {0};
  std::string all;
  for (const std::string& text : texts) offsets.push_back(static_cast<int64_t>((all += text).size()));
  HostTensor tensor = of(BP_DTYPE_STRING, std::move(extents), offsets);
  tensor.bytes += all;
  return tensor;
}

std::vector<std::string> HostTensor::texts() const {
  size_t count = 1;
  for (int64_t extent : extents) count *= static_cast<size_t>(extent);
  std::vector<std::string> texts;
  const auto* offsets = reinterpret_cast<const int64_t*>(bytes.data());
  const char* all = bytes.data() + (count + 1) * sizeof(int64_t);
  for (size_t i = 0; i < count; ++i) texts.emplace_back(all + offsets[i], all + offsets[i + 1]);
  return texts;
}

bp_tensor_t HostTensor::view() {
  return {sizeof(bp_tensor_t),
          dtype,
          static_cast<uint32_t>(extents.size()),
          BP_LAYOUT_DENSE,
          extents.data(),
          nullptr,
          {0, 0, 0, nullptr, bytes.data(), 0, bytes.size()}};
}

Plugin::Plugin(std::string threads, std::map<std::string, std::string> options) : options_(std::move(options)) {
  const bool may_fail = !options_.empty();
  options_["threads"] = std::move(threads);
  void* library = dlopen(CPU_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::abort();
  }
  query = reinterpret_cast<bp_plugin_query_t>(dlsym(library, BP_PLUGIN_SYMBOL));
#if defined(__SANITIZE_ADDRESS__)
  constexpr uint32_t kSanitizer = BP_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
  constexpr uint32_t kSanitizer = BP_SANITIZER_THREAD;
#else
  constexpr uint32_t kSanitizer = BP_SANITIZER_NONE;
#endif
  bp_host_offer_t offer{sizeof(offer), BP_ABI_VERSION_MIN, BP_ABI_VERSION, kSanitizer, {}};
  api = query(&offer);
  host_.size = sizeof(host_);
  host_.version = api->version;
  host_.self = this;
  host_.option = [](const bp_host_t* host, bp_text_t name, bp_text_t* out_value) -> bp_status_t {
    auto& self = *static_cast<Plugin*>(host->self);
    const auto found = self.options_.find({name.data, name.size});
    if (found == self.options_.end()) return BP_NOT_FOUND;
    *out_value = {found->second.data(), found->second.size()};
    return BP_OK;
  };
  host_.log = [](const bp_host_t* host, uint32_t, bp_text_t line) {
    static_cast<Plugin*>(host->self)->log.emplace_back(line.data, line.size);
  };
  host_.cancelled = [](const bp_host_t*, const bp_cancel_t* token) -> uint32_t { return token != nullptr; };
  host_.semaphore_signal = [](const bp_host_t*, bp_semaphore_t* semaphore, uint64_t value, const bp_error_t* failure) {
    const bp_status_t status = failure != nullptr ? failure->status : BP_OK;
    auto* numbers = reinterpret_cast<uint64_t*>(semaphore);
    numbers[0] = value;
    numbers[1] = status;
  };
  host_.semaphore_wait = [](const bp_host_t*, bp_semaphore_t*, uint64_t, uint64_t, const bp_cancel_t*,
                            bp_error_t*) -> bp_status_t { return BP_OK; };
  bp_backend_create_t how{sizeof(how), 0, &host_, {}, nullptr};
  ErrorText failure;
  status = api->create == nullptr ? BP_UNSUPPORTED : api->create(&how, &backend, &failure.error);
  error = failure.str();
  if (api->create == nullptr) error.assign(api->refusal_text.data, api->refusal_text.size);
  if (status != BP_OK && may_fail) return;
  if (status == BP_OK && api->device->open(backend, 0, nullptr, &device, &failure.error) == BP_OK) return;
  std::fprintf(stderr, "%s: %s\n", status == BP_OK ? "the device cannot be opened" : "the plugin refuses",
               (status == BP_OK ? failure.str() : error).c_str());
  std::abort();
}

Plugin::~Plugin() {
  if (backend == nullptr) return;
  api->device->close(device);
  api->destroy(backend);
}

Compiled::Compiled(Plugin& plugin, const bp_graph_t* graph, uint32_t compute_types) : plugin(plugin), graph(graph) {
  bp_compile_t what{};
  what.size = sizeof(what);
  what.compute_types = compute_types;
  what.graph = graph;
  ErrorText error;
  status = plugin.api->program->compile(plugin.device, &what, &program, &error.error);
  text = error.str();
}

Compiled::~Compiled() {
  plugin.api->program->destroy(program);
}

uint32_t Compiled::shapes() const {
  bp_program_info_t info{};
  info.size = sizeof(info);
  plugin.api->program->info(program, &info, nullptr);
  return info.shapes;
}

Outcome Compiled::run(std::vector<HostTensor> inputs, uint64_t deadline) {
  Outcome result;
  result.outputs.resize(graph->output_count);
  if (program == nullptr) {
    result.status = status;
    result.text = text;
    return result;
  }
  const bp_instance_api_t& api = *plugin.api->instance;
  bp_instance_t* instance = nullptr;
  ErrorText error;
  result.status = api.create(program, nullptr, &instance, &error.error);
  for (uint32_t i = 0; i < inputs.size() && result.status == BP_OK; ++i) {
    bp_tensor_t tensor = inputs[i].view();
    bp_binding_t binding{sizeof(binding), i, &tensor, nullptr};
    result.status = api.bind(instance, &binding, &error.error);
  }
  Outputs outputs{graph, &result.outputs};
  bp_run_t run{};
  run.size = sizeof(run);
  run.self = &outputs;
  run.output = Outputs::provide;
  run.deadline = deadline;
  if (result.status == BP_OK) result.status = api.run(instance, &run, &error.error);
  api.destroy(instance);
  result.text = error.str();
  result.node = error.error.node;
  return result;
}

double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace backplane::cpu::testing
