// SPDX-License-Identifier: Apache-2.0
#include "backplane/loader.h"
#include "c_api/handles.h"
#include "host/cancel.h"
#include "host/container.h"

using namespace backplane;
using c_api::fenced;

bp_status_t bp_exec_create(bp_session_t* session, const bp_exec_desc_t* desc, bp_exec_t** out_exec, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_exec, "out_exec"));
    BP_TRY(c_api::usable(session, "session"));
    if (desc) {
      BP_ASSIGN(const bp_exec_desc_t known, abi::read(desc, "desc"));
      BP_TRY(abi::check_chain(known.chain));
      BP_TRY(abi::check_flags(known.flags, 0, "desc.flags"));
    }
    BP_ASSIGN(auto exec, Exec::create(session->line->latest()));
    *out_exec = new bp_exec_t{std::move(exec)};
    return {};
  });
}

void bp_exec_destroy(bp_exec_t* exec) {
  c_api::destroy(exec);
}

bp_status_t bp_exec_bind(bp_exec_t* exec, uint32_t slot, const bp_tensor_t* tensor, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(exec, "exec"));
    BP_ASSIGN(const bp_tensor_t known, abi::read(tensor, "tensor"));
    return exec->exec->bind(slot, known);
  });
}

bp_status_t bp_exec_bind_container(bp_exec_t* exec, uint32_t slot, bp_container_t* container, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(exec, "exec"));
    return exec->exec->bind_container(slot, container);
  });
}

bp_status_t bp_exec_unbind(bp_exec_t* exec, uint32_t slot, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(exec, "exec"));
    return exec->exec->unbind(slot);
  });
}

bp_status_t bp_exec_extents(bp_exec_t* exec, const bp_slot_extents_t* slots, uint32_t count, uint32_t stride,
                            bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(exec, "exec"));
    BP_TRY(abi::check_array(slots, count, stride, "slots"));
    return exec->exec->extents(slots, count, stride);
  });
}

bp_status_t bp_exec_symbol(bp_exec_t* exec, uint32_t symbol, int64_t extent, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(exec, "exec"));
    const bp_symbol_extent_t one{symbol, 0, extent};
    return exec->exec->symbols(&one, 1, sizeof one);
  });
}

bp_status_t bp_exec_symbols(bp_exec_t* exec, const bp_symbol_extent_t* symbols, uint32_t count, uint32_t stride,
                            bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(exec, "exec"));
    BP_TRY(abi::check_array(symbols, count, stride, "symbols"));
    return exec->exec->symbols(symbols, count, stride);
  });
}

bp_status_t bp_exec_run(bp_exec_t* exec, const bp_run_t* run, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(exec, "exec"));
    return exec->exec->run(run);
  });
}

bp_status_t bp_exec_submit(bp_exec_t* exec, const bp_run_t* run, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(exec, "exec"));
    return exec->exec->submit(run);
  });
}

bp_status_t bp_exec_output(bp_exec_t* exec, uint32_t output, bp_tensor_t* out_tensor, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(exec, "exec"));
    if (!out_tensor) return {BP_INVALID_ARGUMENT, "out_tensor is NULL"};
    return exec->exec->output(output, *out_tensor);
  });
}

bp_status_t bp_exec_output_container(bp_exec_t* exec, uint32_t output, bp_container_t** out_container,
                                     bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_container, "out_container"));
    BP_TRY(c_api::usable(exec, "exec"));
    return exec->exec->output_container(output, *out_container);
  });
}

bp_status_t bp_semaphore_create(uint64_t value, bp_semaphore_t** out_semaphore, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_semaphore, "out_semaphore"));
    *out_semaphore = new c_api::HostSemaphore(value);
    return {};
  });
}

void bp_semaphore_destroy(bp_semaphore_t* semaphore) {
  c_api::destroy(c_api::handle_of(semaphore));
}

bp_status_t bp_semaphore_signal(bp_semaphore_t* semaphore, uint64_t value, const bp_error_t* failure,
                                bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(c_api::handle_of(semaphore), "semaphore"));
    if (!failure) {
      semaphore->signal(value);
      return {};
    }
    BP_ASSIGN(const bp_error_t known, abi::read(failure, "failure"));
    if (known.status == BP_OK) return {BP_INVALID_ARGUMENT, "failure.status is BP_OK: pass NULL for success"};
    semaphore->fail(value, Status::reported(known.status, &known));
    return {};
  });
}

bp_status_t bp_semaphore_reset(bp_semaphore_t* semaphore, uint64_t value, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(c_api::handle_of(semaphore), "semaphore"));
    semaphore->reset(value);
    return {};
  });
}

bp_status_t bp_semaphore_wait(bp_semaphore_t* semaphore, uint64_t value, uint64_t deadline, const bp_cancel_t* cancel,
                              bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(c_api::handle_of(semaphore), "semaphore"));
    return semaphore->wait(value, deadline, cancel);
  });
}

bp_status_t bp_semaphore_query(bp_semaphore_t* semaphore, uint64_t* out_value, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::usable(c_api::handle_of(semaphore), "semaphore"));
    if (!out_value) return {BP_INVALID_ARGUMENT, "out_value is NULL"};
    return semaphore->query(*out_value);
  });
}

bp_status_t bp_cancel_create(bp_cancel_t** out_cancel, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_cancel, "out_cancel"));
    *out_cancel = new bp_cancel_t;
    return {};
  });
}

void bp_cancel_destroy(bp_cancel_t* cancel) {
  delete cancel;
}

void bp_cancel_set(bp_cancel_t* cancel) {
  if (cancel) cancel->set();
}

bp_status_t bp_container_create(uint32_t kind, bp_container_t** out_container, bp_error_t* error) {
  return fenced(error, [&]() -> Status {
    BP_TRY(c_api::clear(out_container, "out_container"));
    BP_ASSIGN(auto container, make_container(kind));
    *out_container = container.release();
    return {};
  });
}

void bp_container_destroy(bp_container_t* container) {
  delete container;
}

const bp_container_api_t* bp_container_api() {
  return container_api();
}
