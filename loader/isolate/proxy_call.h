// SPDX-License-Identifier: Apache-2.0
// Helpers for the functions of an isolated backend's tables: errors, arguments that cannot be sent to the process, and
// arguments that several calls send.
#pragma once

#include <cstdint>
#include <new>
#include <string_view>

#include "backplane/plugin.h"
#include "base/status.h"
#include "isolate/message.h"

namespace backplane::isolate {

// Calls `body`, which returns a Status, writes that status to `error`, and returns its code. An exception becomes
// BP_RESOURCE_EXHAUSTED (std::bad_alloc) or BP_INTERNAL, and `error` is not written.
template <class F>
bp_status_t fenced(bp_error_t* error, F&& body) noexcept {
  try {
    return Status(body()).write(error);
  } catch (const std::bad_alloc&) {
    return BP_RESOURCE_EXHAUSTED;
  } catch (...) {
    return BP_INTERNAL;
  }
}

// Writes a message into `error` although the call returns BP_OK.
void explain(bp_error_t* error, std::string_view text);
void write_options(const bp_option_t* options, uint32_t count, uint32_t stride, Writer& out);
// BP_UNSUPPORTED if the chain contains a required extension. Extensions are not sent to the process.
Status refuse_chain(const bp_chain_t* chain);
// BP_UNSUPPORTED if `flags` has a bit that must be understood. `flags` are not sent to the process; hints are ignored.
Status refuse_flags(uint32_t flags, std::string_view name);
// Writes a tensor's type, layout, extents and strides, but not its elements.
void write_tensor_form(const bp_tensor_t& tensor, Writer& out);

}  // namespace backplane::isolate
