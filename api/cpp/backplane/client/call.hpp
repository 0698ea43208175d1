// SPDX-License-Identifier: Apache-2.0
// Opens the loader, calls its functions, and converts failures to exceptions.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#ifndef BACKPLANE_CLIENT_LINKED
#include <dlfcn.h>
#endif

#include "backplane/client/error.hpp"
#include "backplane/graph.hpp"
#include "backplane/loader.h"

#ifndef BACKPLANE_LOADER_FILE
#define BACKPLANE_LOADER_FILE "libbackplane.so.1"
#endif

namespace backplane {
inline namespace client {

namespace detail {

// Returns the loader's functions in a struct of this build's size. Slots that an older loader lacks are NULL.
inline bp_loader_api_t load_api() {
#ifdef BACKPLANE_CLIENT_LINKED
  const bp_get_api_t get = &bp_get_api;
#else
  void* library = dlopen(BACKPLANE_LOADER_FILE, RTLD_NOW | RTLD_LOCAL);  // stays loaded until the process ends
  if (library == nullptr) {
    const char* why = dlerror();
    throw Error(BP_NOT_FOUND, std::string("the loader " BACKPLANE_LOADER_FILE " cannot be opened: ") +
                                  (why ? why : "?") + "; install Backplane or set LD_LIBRARY_PATH");
  }
  const auto get = reinterpret_cast<bp_get_api_t>(dlsym(library, BP_LOADER_SYMBOL));
  if (get == nullptr)
    throw Error(BP_INCOMPATIBLE, BACKPLANE_LOADER_FILE " has no " BP_LOADER_SYMBOL ": it is not a Backplane loader");
#endif
  const bp_loader_api_t* table = get(BP_ABI_VERSION);
  if (table == nullptr) {
    throw Error(BP_INCOMPATIBLE,
                "the loader does not support ABI " + std::to_string(BP_VERSION_MAJOR(BP_ABI_VERSION)) + "." +
                    std::to_string(BP_VERSION_MINOR(BP_ABI_VERSION)) +
                    ": install a loader of that version, or rebuild this program for the one that is installed");
  }
  bp_loader_api_t copy{};
  std::memcpy(&copy, table, std::min<size_t>(table->size, sizeof copy));
  return copy;
}

}  // namespace detail

// The loader's functions. The first call opens the loader, unless it is linked in. Throws Error if that fails.
inline const bp_loader_api_t& api() {
  static const bp_loader_api_t kTable = detail::load_api();
  return kTable;
}

namespace detail {

// Calls a slot whose last parameter is `bp_error_t*`. Returns the status, and writes a failure's details to `error`
// instead of throwing. A NULL slot counts as BP_UNSUPPORTED.
template <class... Parameters, class... Arguments>
bp_status_t try_call(bp_error_t& error, bp_status_t(BP_CALL* slot)(Parameters...), Arguments... arguments) {
  if (slot == nullptr) return BP_UNSUPPORTED;
  return slot(arguments..., &error);
}

// Like try_call, but throws Error if the call fails.
template <class... Parameters, class... Arguments>
void call(bp_status_t(BP_CALL* slot)(Parameters...), Arguments... arguments) {
  char text[2000];
  text[0] = 0;
  bp_error_t error{};
  error.size = sizeof error;
  error.node = BP_NO_NODE;
  error.text = text;
  error.text_capacity = sizeof text;
  const bp_status_t status = try_call(error, slot, arguments...);
  if (status == BP_OK) return;
  std::string what(text, static_cast<size_t>(std::min<uint64_t>(error.text_size, sizeof text)));
  if (what.empty())
    what = slot == nullptr ? "this loader is too old for the call; install a newer one" : api().status_name(status);
  throw Error(status, what, error.node, error.vendor_code, error.flags, error.run);
}

// Calls a slot that writes text to a sink, and returns the text.
template <class Slot, class Handle>
std::string collect(Slot slot, Handle* handle) {
  struct Sink {
    std::string text;
    bool full = false;
    static void BP_CALL append(void* self, bp_text_t piece) noexcept {
      try {
        static_cast<Sink*>(self)->text += view::text(piece);
      } catch (const std::bad_alloc&) {
        static_cast<Sink*>(self)->full = true;
      }
    }
  } sink;
  call(slot, handle, &Sink::append, static_cast<void*>(&sink));
  if (sink.full) throw std::bad_alloc();
  return std::move(sink.text);
}

inline std::vector<bp_text_t> texts(const std::vector<std::string>& strings) {
  std::vector<bp_text_t> result;
  for (const std::string& s : strings) result.push_back(view::text(s));
  return result;
}

inline std::vector<bp_option_t> options(const std::map<std::string, std::string>& map) {
  std::vector<bp_option_t> result;
  for (const auto& [name, value] : map) result.push_back({view::text(name), view::text(value)});
  return result;
}

}  // namespace detail

}  // namespace client
}  // namespace backplane
