// SPDX-License-Identifier: Apache-2.0
#include "backplane/loader.h"
#include "c_api/handles.h"
#include "session/report.h"

using namespace backplane;
using c_api::fenced;

bp_status_t bp_env_create(const bp_env_desc_t* desc, bp_env_t** out_env, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_env, "out_env"));
    bp_env_desc_t known{};
    known.size = sizeof known;
    if (desc) {
      BP_ASSIGN(known, abi::read(desc, "desc"));
    }
    if (known.parallel_for && !known.threads)
      return {BP_INVALID_ARGUMENT,
              "desc.threads is 0: with `parallel_for`, set it to the number of threads of the framework's pool"};
    BP_ASSIGN(auto environment, Environment::create(known));
    *out_env = new bp_env_t{std::move(environment)};
    return {};
  });
}

void bp_env_destroy(bp_env_t* env) {
  c_api::destroy(env);
}

uint32_t bp_env_candidate_count(const bp_env_t* env) {
  return env ? static_cast<uint32_t>(env->environment->candidates().size()) : 0;
}

bp_status_t bp_env_candidate(const bp_env_t* env, uint32_t i, bp_candidate_t* out_candidate, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(env, "env"));
    const auto candidates = env->environment->candidates();
    if (i >= candidates.size())
      return {BP_NOT_FOUND, "there are " + std::to_string(candidates.size()) +
                                " candidates; there is none with index " + std::to_string(i)};
    const Candidate& candidate = candidates[i];
    bp_candidate_t out{};
    out.size = sizeof out;
    out.refusal = candidate.refusal;
    out.text = abi::text(candidate.text);
    out.id = abi::text(candidate.id);
    out.manifest = abi::text(candidate.manifest);
    out.library = abi::text(candidate.library);
    out.found_by = abi::text(candidate.found_by);
    out.version = candidate.version;
    out.device_count = candidate.device_count;
    return abi::write(out, out_candidate, "out_candidate");
  });
}

uint32_t bp_env_device_count(const bp_env_t* env) {
  return env ? static_cast<uint32_t>(env->environment->devices().size()) : 0;
}

bp_status_t bp_env_device(const bp_env_t* env, uint32_t index, bp_device_info_t* out_info, bp_text_t* out_name,
                          bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(env, "env"));
    BP_ASSIGN(const Device* device, env->environment->device(index));
    bp_device_info_t info = device->info();
    info.index = index;
    BP_TRY(abi::write(info, out_info, "out_info"));
    if (out_name) *out_name = abi::text(device->name());
    return {};
  });
}

bp_status_t bp_env_open_device(bp_env_t* env, uint64_t device, const bp_device_open_t* how, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(env, "env"));
    BP_ASSIGN(const bp_device_open_t known, abi::read(how, "how"));
    BP_TRY(abi::check_chain(known.chain));
    BP_TRY(abi::check_array(known.options, known.option_count, known.option_stride, "how.options"));
    BP_ASSIGN(Device * found, env->environment->device_of(device));
    return found->open_as(known);
  });
}

bp_status_t bp_env_abandon_device(bp_env_t* env, uint64_t device, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(env, "env"));
    BP_ASSIGN(Device * found, env->environment->device_of(device));
    found->give_up("was reported to hang");
    return {};
  });
}

bp_status_t bp_env_report(const bp_env_t* env, bp_text_sink_t sink, void* context, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(env, "env"));
    return c_api::send(report(*env->environment), sink, context);
  });
}

const void* bp_env_get_extension(const bp_env_t* env, bp_text_t name, uint32_t version) {
  const void* found = nullptr;
  fenced(nullptr, [&]() -> Status {
    BP_TRY(c_api::usable(env, "env"));
    const std::string_view whole = abi::view(name);
    const size_t slash = whole.find('/');
    if (slash == std::string_view::npos) return {};  // the loader itself has no extensions
    for (const auto& device : env->environment->devices()) {
      Backend& backend = device->backend();
      if (backend.id != whole.substr(0, slash)) continue;
      BP_TRY(backend.ensure_loaded());
      if (!backend.plugin->get_extension) continue;
      found = backend.plugin->get_extension(backend.handle, abi::text(whole.substr(slash + 1)), version);
      break;
    }
    return {};
  });
  return found;
}

Status c_api::has_plugin_handles(const Device& device) {
  if (!device.backend().isolated) return {};
  return {BP_UNSUPPORTED, "backend '" + device.backend().id +
                              "' runs in a process of its own: its handles cannot be used in this process"};
}

bp_status_t bp_env_plugin_device(bp_env_t* env, uint64_t device, bp_device_t** out_device, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_device, "out_device"));
    BP_TRY(c_api::usable(env, "env"));
    BP_ASSIGN(Device * found, env->environment->device_of(device));
    BP_ASSIGN(bp_device_t * handle, found->open());
    BP_TRY(c_api::has_plugin_handles(*found));
    *out_device = handle;
    return {};
  });
}

bp_status_t bp_trace_start(bp_env_t* env, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(env, "env"));
    env->environment->services().trace().start();
    return {};
  });
}

bp_status_t bp_trace_stop(bp_env_t* env, bp_text_sink_t sink, void* context, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(env, "env"));
    if (!sink) return {BP_INVALID_ARGUMENT, "sink is NULL"};
    return env->environment->services().trace().stop(sink, context);
  });
}
