// SPDX-License-Identifier: Apache-2.0
#include "host/host.h"

#include <new>
#include <utility>

#include "abi.h"
#include "host/cancel.h"
#include "host/container.h"
#include "host/semaphore.h"

namespace backplane {
namespace {

Host& self(const bp_host_t* host) {
  return *static_cast<Host*>(host->self);
}

// No exception crosses the ABI: a slot that has no way to tell of one gives `otherwise`.
template <class F, class R>
R fenced(R otherwise, F call) noexcept {
  try {
    return call();
  } catch (...) {
    return otherwise;
  }
}

template <class F>
bp_status_t fenced_status(F call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return BP_RESOURCE_EXHAUSTED;
  } catch (...) {
    return BP_INTERNAL;
  }
}

void log(const bp_host_t* host, uint32_t level, bp_text_t text) {
  fenced(0, [&] {
    self(host).services().log().write(level, self(host).backend_id(), abi::view(text));
    return 0;
  });
}

uint32_t tracing(const bp_host_t* host) {
  return self(host).services().trace().active();
}

void trace(const bp_host_t* host, const bp_span_t* span) {
  fenced(0, [&] {
    auto known = abi::read(span, "bp_span_t");
    if (!known.ok()) return 0;
    known->device += self(host).first_device();
    self(host).services().trace().add(*known);
    return 0;
  });
}

void* allocate(const bp_host_t* host, uint64_t bytes, uint64_t alignment) {
  return self(host).services().allocate(bytes, alignment);
}

void release(const bp_host_t* host, void* memory, uint64_t bytes, uint64_t alignment) {
  self(host).services().release(memory, bytes, alignment);
}

// Not fenced: what a body throws would be the plugin's own breach, and there is no way to tell that pieces are missing.
void parallel_for(const bp_host_t* host, uint64_t count, uint64_t grain, bp_loop_body_t body, void* context) noexcept {
  self(host).services().parallel_for(count, grain, body, context);
}

uint32_t thread_count(const bp_host_t* host) {
  return self(host).services().thread_count();
}

bp_status_t topology(const bp_host_t* host, bp_topology_t* out_topology) {
  return fenced_status([&] {
    bp_topology_t known{};
    if (Status status = self(host).services().topology(known); !status.ok()) return status.code();
    return abi::write(known, out_topology, "bp_topology_t").code();
  });
}

bp_status_t option(const bp_host_t* host, bp_text_t name, bp_text_t* out_value) {
  return fenced_status([&]() -> bp_status_t {
    if (!out_value) return BP_INVALID_ARGUMENT;
    const Host::Options& options = self(host).options();
    const auto found = options.find(abi::view(name));
    if (found == options.end()) return BP_NOT_FOUND;
    *out_value = abi::text(found->second);
    return BP_OK;
  });
}

uint32_t is_cancelled(const bp_host_t*, const bp_cancel_t* token) {
  return cancelled(token);
}

bp_status_t semaphore_wait(const bp_host_t*, bp_semaphore_t* semaphore, uint64_t value, uint64_t deadline,
                           const bp_cancel_t* cancel, bp_error_t* error) {
  if (!semaphore) return BP_INVALID_ARGUMENT;
  return fenced_status([&] { return semaphore->wait(value, deadline, cancel).write(error); });
}

void semaphore_signal(const bp_host_t*, bp_semaphore_t* semaphore, uint64_t value, const bp_error_t* failure) {
  if (!semaphore) return;
  if (!failure) return semaphore->signal(value);
  const Status reported = fenced(Status(), [&] { return Status::reported(failure->status, failure); });
  semaphore->fail(value, reported);  // without memory for the detail it has failed nevertheless
}

bp_status_t semaphore_query(const bp_host_t*, bp_semaphore_t* semaphore, uint64_t* out_value, bp_error_t* error) {
  if (!semaphore || !out_value) return BP_INVALID_ARGUMENT;
  return fenced_status([&] { return semaphore->query(*out_value).write(error); });
}

bp_status_t container_create(const bp_host_t*, uint32_t kind, bp_container_t** out_container) {
  if (!out_container) return BP_INVALID_ARGUMENT;
  *out_container = nullptr;
  return fenced_status([&] {
    auto container = make_container(kind);
    if (container.ok()) *out_container = container.take().release();
    return container.status().code();
  });
}

void container_destroy(const bp_host_t*, bp_container_t* container) {
  delete container;
}

// This host gives none.
const void* get_extension(const bp_host_t*, bp_text_t, uint32_t) {
  return nullptr;
}

}  // namespace

Host::Host(std::shared_ptr<Services> services, std::string backend_id, Options options, uint32_t version)
    : services_(std::move(services)), backend_id_(std::move(backend_id)), options_(std::move(options)) {
  table_ = {
      .size = sizeof(bp_host_t),
      .version = version,
      .self = this,
      .log = log,
      .tracing = tracing,
      .trace = trace,
      .allocate = allocate,
      .release = release,
      .parallel_for = parallel_for,
      .thread_count = thread_count,
      .topology = topology,
      .option = option,
      .cancelled = is_cancelled,
      .semaphore_wait = semaphore_wait,
      .semaphore_signal = semaphore_signal,
      .semaphore_query = semaphore_query,
      .containers = container_api(),
      .container_create = container_create,
      .container_destroy = container_destroy,
      .get_extension = get_extension,
  };
}

}  // namespace backplane
