// SPDX-License-Identifier: Apache-2.0
// The boundary between C callers and C++. No exception crosses it, and a forked child's calls with handles of its
// parent are refused.
#pragma once

#include <new>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/abi.h"
#include "base/status.h"
#include "c_api/fork.h"

namespace backplane::c_api {

inline Status forked() {
  return {BP_FORKED,
          "this handle belongs to the parent process: create a new environment or semaphore after the fork, or use "
          "posix_spawn"};
}

// Calls `body`, which returns a Status. Converts errors and exceptions to a status code and a bp_error_t.
template <class Body>
bp_status_t fenced(bp_error_t* error, Body&& body) noexcept {
  try {
    return Status(body()).write(error);
  } catch (const std::bad_alloc&) {
    return write_code(BP_RESOURCE_EXHAUSTED, error);
  } catch (const std::exception& thrown) {
    try {
      const auto* const system = dynamic_cast<const std::system_error*>(&thrown);
      if (system != nullptr && system->code() == std::errc::resource_unavailable_try_again)
        return Status(BP_RESOURCE_EXHAUSTED,
                      "the system starts no further thread for this process: raise its limit (ulimit -u, pids.max)")
            .write(error);
      return Status(BP_INTERNAL, std::string("the loader failed: ") + thrown.what()).write(error);
    } catch (...) {
      return write_code(BP_INTERNAL, error);
    }
  } catch (...) {
    return write_code(BP_INTERNAL, error);
  }
}

// Checks a handle. BP_INVALID_ARGUMENT if it is NULL, BP_FORKED if a parent process created it.
template <class Handle>
Status usable(const Handle* handle, const char* name) {
  if (!handle) return {BP_INVALID_ARGUMENT, std::string(name) + " is NULL"};
  if (handle->generation != generation()) return forked();
  return {};
}

// Sets an out-handle to NULL. Called first, so that it is NULL after any later error.
template <class T>
Status clear(T** out, const char* name) {
  if (!out) return {BP_INVALID_ARGUMENT, std::string(name) + " is NULL"};
  *out = nullptr;
  return {};
}

// Destroys a handle in the process that created it. Does nothing in a forked child.
template <class Handle>
void destroy(Handle* handle) noexcept {
  if (!handle || handle->generation != generation()) return;
  try {
    delete handle;
  } catch (...) {
  }
}

inline Status send(const std::string& text, bp_text_sink_t sink, void* context) {
  if (!sink) return {BP_INVALID_ARGUMENT, "sink is NULL"};
  sink(context, abi::text(text));
  return {};
}

}  // namespace backplane::c_api
