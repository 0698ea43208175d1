// SPDX-License-Identifier: Apache-2.0
#include "backplane/loader.h"
#include "c_api/handles.h"
#include "run/framework_stream.h"

using namespace backplane;
using c_api::fenced;

namespace {

StreamHandle* handle_of(bp_stream_t* stream) {
  return reinterpret_cast<StreamHandle*>(stream);
}

SemaphoreHandle* handle_of(bp_native_semaphore_t* semaphore) {
  return reinterpret_cast<SemaphoreHandle*>(semaphore);
}

FrameworkSemaphore& of(bp_native_semaphore_t* semaphore) {
  return *handle_of(semaphore)->object;
}

Status check(const bp_native_t* native) {
  if (!native) return {};
  BP_ASSIGN(const bp_native_t known, abi::read(native, "how.native"));
  return abi::check_chain(known.chain);
}

Status has_plugin_handles(const Device& device) {
  if (device.given_up()) return device.lost();
  return c_api::has_plugin_handles(device);
}

}  // namespace

bp_status_t bp_stream_create(bp_env_t* env, uint64_t device, const bp_stream_create_t* how, bp_stream_t** out_stream,
                             bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_stream, "out_stream"));
    BP_TRY(c_api::usable(env, "env"));
    BP_ASSIGN(const bp_stream_create_t known, abi::read(how, "how"));
    BP_TRY(abi::check_chain(known.chain));
    BP_TRY(check(known.native));
    BP_ASSIGN(Device * found, env->environment->device_of(device));
    BP_ASSIGN(auto stream, FrameworkStream::create(env->environment, *found, known));
    *out_stream = reinterpret_cast<bp_stream_t*>(new StreamHandle{std::move(stream), c_api::generation()});
    return {};
  });
}

void bp_stream_destroy(bp_stream_t* stream) {
  if (!stream || handle_of(stream)->generation != c_api::generation()) return;
  stream_of(stream)->close();
  c_api::destroy(handle_of(stream));
}

bp_status_t bp_stream_wait(bp_stream_t* stream, uint64_t deadline, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(handle_of(stream), "stream"));
    return stream_of(stream)->wait(deadline);
  });
}

bp_status_t bp_stream_export(bp_stream_t* stream, bp_native_t* out_native, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(handle_of(stream), "stream"));
    BP_ASSIGN(bp_native_t native, abi::read(out_native, "out_native"));
    BP_TRY(stream_of(stream)->export_native(native));
    return abi::write(native, out_native, "out_native");
  });
}

bp_status_t bp_stream_plugin_stream(bp_stream_t* stream, bp_stream_t** out_stream, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_stream, "out_stream"));
    BP_TRY(c_api::usable(handle_of(stream), "stream"));
    BP_TRY(has_plugin_handles(stream_of(stream)->device()));
    *out_stream = stream_of(stream)->plugin_stream();
    return {};
  });
}

bp_status_t bp_native_semaphore_create(bp_env_t* env, uint64_t device, const bp_semaphore_create_t* how,
                                       bp_native_semaphore_t** out_semaphore, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_semaphore, "out_semaphore"));
    BP_TRY(c_api::usable(env, "env"));
    BP_ASSIGN(const bp_semaphore_create_t known, abi::read(how, "how"));
    BP_TRY(abi::check_chain(known.chain));
    BP_TRY(abi::check_flags(known.flags, 0, "how.flags"));
    BP_TRY(check(known.native));
    BP_ASSIGN(Device * found, env->environment->device_of(device));
    BP_ASSIGN(auto semaphore, FrameworkSemaphore::create(env->environment, *found, known));
    *out_semaphore =
        reinterpret_cast<bp_native_semaphore_t*>(new SemaphoreHandle{std::move(semaphore), c_api::generation()});
    return {};
  });
}

void bp_native_semaphore_destroy(bp_native_semaphore_t* semaphore) {
  c_api::destroy(handle_of(semaphore));
}

bp_status_t bp_native_semaphore_wait(bp_native_semaphore_t* semaphore, uint64_t value, uint64_t deadline,
                                     bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(handle_of(semaphore), "semaphore"));
    return of(semaphore).wait(value, deadline);
  });
}

bp_status_t bp_native_semaphore_signal(bp_native_semaphore_t* semaphore, uint64_t value, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(handle_of(semaphore), "semaphore"));
    return of(semaphore).signal(value);
  });
}

bp_status_t bp_native_semaphore_query(bp_native_semaphore_t* semaphore, uint64_t* out_value, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(handle_of(semaphore), "semaphore"));
    if (!out_value) return {BP_INVALID_ARGUMENT, "out_value is NULL"};
    return of(semaphore).query(*out_value);
  });
}

bp_status_t bp_native_semaphore_export(bp_native_semaphore_t* semaphore, const bp_semaphore_export_t* what,
                                       bp_native_t* out_native, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(handle_of(semaphore), "semaphore"));
    BP_ASSIGN(const bp_semaphore_export_t known, abi::read(what, "what"));
    BP_TRY(abi::check_chain(known.chain));
    BP_ASSIGN(bp_native_t native, abi::read(out_native, "out_native"));
    BP_TRY(of(semaphore).export_native(known, native));
    return abi::write(native, out_native, "out_native");
  });
}

bp_status_t bp_native_semaphore_plugin_semaphore(bp_native_semaphore_t* semaphore,
                                                 bp_native_semaphore_t** out_semaphore, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_semaphore, "out_semaphore"));
    BP_TRY(c_api::usable(handle_of(semaphore), "semaphore"));
    BP_TRY(has_plugin_handles(of(semaphore).device()));
    *out_semaphore = of(semaphore).plugin_semaphore();
    return {};
  });
}
