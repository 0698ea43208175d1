// SPDX-License-Identifier: Apache-2.0
#include "host/host.h"

#include <unistd.h>

#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "base/abi.h"
#include "host/cancel.h"
#include "host/container.h"
#include "host/semaphore.h"
#include "host/shared_memory.h"

namespace backplane {
namespace {

Host& self(const bp_host_t* host) {
  return *static_cast<Host*>(host->self);
}

// Keeps exceptions from crossing the ABI. Returns `otherwise` if `call` throws.
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
  } catch (const std::system_error&) {  // a thread or descriptor cannot be created
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
    if (known->device == 0) known->device = self(host).first_device();
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

// A body that throws violates the contract and ends the process: the caller could not learn that chunks did not run.
void parallel_for(const bp_host_t* host, const bp_loop_t* loop) noexcept {
  if (const auto known = abi::read(loop, "bp_loop_t"); known.ok() && known->body)
    self(host).services().parallel_for(*known);
}

bp_status_t submit_task(const bp_host_t* host, const bp_task_t* task) {
  return fenced_status([&]() -> bp_status_t {
    const auto known = abi::read(task, "bp_task_t");
    if (!known.ok() || !known->run) return BP_INVALID_ARGUMENT;
    if (known->flags & BP_FLAGS_REQUIRED) return BP_UNSUPPORTED;
    return self(host).submit(*known).code();
  });
}

// The object to which a bp_cancel_link_t points.
struct Link {
  Link(const bp_cancel_t& token, const bp_on_cancel_t& what) : link(token, what.cancelled, what.self) {}
  CancelLink link;
};

bp_status_t on_cancel(const bp_host_t*, const bp_cancel_t* token, const bp_on_cancel_t* what,
                      bp_cancel_link_t** out_link) {
  if (!token || !out_link) return BP_INVALID_ARGUMENT;
  *out_link = nullptr;
  return fenced_status([&]() -> bp_status_t {
    const auto known = abi::read(what, "bp_on_cancel_t");
    if (!known.ok() || !known->cancelled) return BP_INVALID_ARGUMENT;
    *out_link = reinterpret_cast<bp_cancel_link_t*>(new Link(*token, *known));
    return BP_OK;
  });
}

void off_cancel(const bp_host_t*, bp_cancel_link_t* link) {
  delete reinterpret_cast<Link*>(link);
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

bp_status_t option_at(const bp_host_t* host, uint32_t index, bp_option_t* out_option) {
  if (!out_option) return BP_INVALID_ARGUMENT;
  const Host::Options& options = self(host).options();
  if (index >= options.size()) return BP_NOT_FOUND;
  const auto& [name, value] = *std::next(options.begin(), index);
  *out_option = {abi::text(name), abi::text(value)};
  return BP_OK;
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
  semaphore->fail(value, reported);  // the value fails even if memory for the details is exhausted
}

bp_status_t semaphore_query(const bp_host_t*, bp_semaphore_t* semaphore, uint64_t* out_value, bp_error_t* error) {
  if (!semaphore || !out_value) return BP_INVALID_ARGUMENT;
  return fenced_status([&] { return semaphore->query(*out_value).write(error); });
}

const void* get_extension(const bp_host_t*, bp_text_t name, uint32_t version) {
  const bool is_shared = abi::view(name) == BP_DRAFT_SHARED_MEMORY && version == BP_DRAFT_SHARED_MEMORY_VERSION;
  return is_shared ? shared_memory_api() : nullptr;
}

}  // namespace

Host::Host(std::shared_ptr<Services> services, std::string backend_id, Options options, uint32_t version)
    : services_(std::move(services)),
      backend_id_(std::move(backend_id)),
      options_(std::move(options)),
      owner_(getpid()) {
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
      .get_extension = get_extension,
      .submit = submit_task,
      .on_cancel = on_cancel,
      .off_cancel = off_cancel,
      .option_at = option_at,
  };
}

// Makes `finish` wait until this object is destroyed: after the task has run, or when it is refused or cannot be
// queued.
struct Host::Task {
  Task(Host& its_host, const bp_task_t& its_task) : host(its_host), task(its_task) {
    const std::lock_guard lock(host.mutex_);
    ++host.tasks_;
  }
  ~Task() {
    const std::lock_guard lock(host.mutex_);
    if (--host.tasks_ == 0) host.changed_.notify_all();
  }
  Task(const Task&) = delete;

  Host& host;
  bp_task_t task;
};

Status Host::submit(const bp_task_t& task) {
  auto held = std::make_unique<Task>(*this, task);
  bp_task_t counted{};
  counted.size = sizeof counted;
  counted.self = held.get();
  counted.run = [](void* self) {
    const std::unique_ptr<Task> mine(static_cast<Task*>(self));
    mine->task.run(mine->task.self);
  };
  Status status = services_->submit(counted);
  if (status.ok()) static_cast<void>(held.release());
  return status;
}

void Host::finish() {
  if (owner_ != getpid()) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return tasks_ == 0; });
}

}  // namespace backplane
