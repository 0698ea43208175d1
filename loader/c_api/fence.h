// SPDX-License-Identifier: Apache-2.0
// The one fence between C callers and C++: nothing that is thrown crosses it, and no handle survives a fork.
#pragma once

#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "base/abi.h"
#include "base/status.h"

namespace backplane::c_api {

// Which process this is: 0 in the one that loaded the loader, one more in each child of a fork.
uint32_t generation();

inline Status forked() {
  return {BP_FORKED,
          "this handle belongs to the parent process: make a new environment after fork, or use posix_spawn"};
}

// Runs `body` (which gives a Status) and turns everything that can go wrong into a code and a detail.
template <class Body>
bp_status_t fenced(bp_error_t* error, Body&& body) noexcept {
  try {
    return Status(body()).write(error);
  } catch (const std::bad_alloc&) {
    return BP_RESOURCE_EXHAUSTED;
  } catch (const std::exception& thrown) {
    try {
      return Status(BP_INTERNAL, std::string("the loader failed: ") + thrown.what()).write(error);
    } catch (...) {
      return BP_INTERNAL;
    }
  } catch (...) {
    return BP_INTERNAL;
  }
}

// Checks a handle and makes an out-handle NULL before anything else can fail.
template <class Handle>
Status usable(const Handle* handle, const char* name) {
  if (!handle) return {BP_INVALID_ARGUMENT, std::string(name) + " is NULL"};
  if (handle->generation != generation()) return forked();
  return {};
}

template <class T>
Status clear(T** out, const char* name) {
  if (!out) return {BP_INVALID_ARGUMENT, std::string(name) + " is NULL"};
  *out = nullptr;
  return {};
}

// Destroys a handle, but only in the process that made it: a child of a fork leaves everything alone.
template <class Handle>
void destroy(Handle* handle) noexcept {
  if (!handle || handle->generation != generation()) return;
  try {
    delete handle;
  } catch (...) {
  }
}

// Sends text to a sink of the caller's.
inline Status send(const std::string& text, bp_text_sink_t sink, void* context) {
  if (!sink) return {BP_INVALID_ARGUMENT, "sink is NULL"};
  sink(context, abi::text(text));
  return {};
}

}  // namespace backplane::c_api
