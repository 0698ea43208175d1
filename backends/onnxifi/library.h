// SPDX-License-Identifier: Apache-2.0
// A vendor's library: its functions, and how it differs from ONNXIFI 1.0. It may follow a later fork of ONNXIFI, which
// changed descriptors and some functions.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "onnxifi/onnxifi.h"

// Marks functions that pass the fork's additional arguments to any library, which Clang's function sanitizer would
// report.
#if defined(__clang__)
#define PASSES_THE_FORKS_ARGUMENTS __attribute__((no_sanitize("function")))
#else
#define PASSES_THE_FORKS_ARGUMENTS
#endif

namespace onnxifi_backend {

// The functions of ONNXIFI 1.0, by name.
struct Functions {
  decltype(&onnxGetBackendIDs) get_backend_ids;
  decltype(&onnxReleaseBackendID) release_backend_id;
  decltype(&onnxGetBackendInfo) get_backend_info;
  decltype(&onnxGetBackendCompatibility) get_backend_compatibility;
  decltype(&onnxInitBackend) init_backend;
  decltype(&onnxReleaseBackend) release_backend;
  decltype(&onnxInitEvent) init_event;
  decltype(&onnxSignalEvent) signal_event;
  decltype(&onnxGetEventState) get_event_state;
  decltype(&onnxWaitEvent) wait_event;
  decltype(&onnxReleaseEvent) release_event;
  decltype(&onnxSetGraphIO) set_graph_io;
  decltype(&onnxRunGraph) run_graph;
  decltype(&onnxReleaseGraph) release_graph;
  // The fork added the last two arguments. The backend passes 0 and NULL; libraries of ONNXIFI 1.0 do not read them.
  onnxStatus (*init_graph)(onnxBackend, const uint64_t*, size_t, const void*, uint32_t, const onnxTensorDescriptorV1*,
                           onnxGraph*, uint32_t max_sequence_length, void* weight_reader);
};

// A function that only the fork has.
using WaitEventFor = onnxStatus (*)(onnxEvent, uint32_t milliseconds, onnxEventState*, onnxStatus*, char* text,
                                    size_t* text_size);
// The fork added the argument `trace`, for which the backend passes NULL.
using SetIoAndRun = onnxStatus (*)(onnxGraph, uint32_t, const onnxTensorDescriptorV1*, uint32_t,
                                   const onnxTensorDescriptorV1*, onnxMemoryFenceV1*, void* trace);

class Library {
 public:
  // Throws sdk::Error with the reason if the file is not an ONNXIFI library. The library stays loaded until the process
  // exits: its threads may still run.
  explicit Library(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const Functions& functions() const { return functions_; }
  // Whether the library follows the fork: tensor descriptors have 96 bytes, and onnxInitGraph has two more arguments.
  bool is_fork() const { return is_fork_; }
  WaitEventFor wait_event_for() const { return wait_event_for_; }  // NULL if the library has none
  // Returns an extension function of a backend, or NULL. Libraries may name it with or without the suffix "Function",
  // and return it for the backend's id, for no id, or only export it.
  onnxExtensionFunctionPointer extension(onnxBackendID id, const std::string& name) const;

  // The ids of the library's backends; the caller must release each. Throws sdk::Error if the call fails or its result
  // is not usable.
  std::vector<onnxBackendID> backend_ids() const;

  // A lock to hold during calls of `functions()`; empty if `set_thread_safe(true)` was called. `extension` and
  // `backend_ids` take it themselves.
  std::unique_lock<std::mutex> guard() const;
  void set_thread_safe(bool thread_safe) { is_thread_safe_ = thread_safe; }

 private:
  const std::filesystem::path path_;
  void* handle_ = nullptr;
  Functions functions_{};
  bool is_fork_ = false, is_thread_safe_ = false;
  WaitEventFor wait_event_for_ = nullptr;
  decltype(&onnxGetExtensionFunctionAddress) get_extension_ = nullptr;
  mutable std::mutex mutex_;
};

}  // namespace onnxifi_backend
