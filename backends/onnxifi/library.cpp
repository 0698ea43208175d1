// SPDX-License-Identifier: Apache-2.0
#include "library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "status.h"

namespace onnxifi_backend {
namespace {

using backplane::sdk::Error;

constexpr size_t kMaxBackends = 256;

// RTLD_DEEPBIND: the library's own symbols take precedence over the program's, which may include another version of
// protobuf. The sanitizers do not allow this flag.
constexpr int kFlags = RTLD_NOW | RTLD_LOCAL
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
                       | RTLD_DEEPBIND
#endif
    ;

template <class Function>
Function symbol(void* handle, const char* name) {
  return reinterpret_cast<Function>(dlsym(handle, name));
}

// If the sandbox of this process forbids reading the file, returns an error text; otherwise, an empty string. A
// symbolic link may lead out of the folders that the sandbox allows.
std::string denied(const std::filesystem::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  const int why = errno;
  if (file >= 0) close(file);
  if (file >= 0 || why != EACCES || access(path.c_str(), R_OK) != 0) return {};
  std::error_code error;
  std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) real = path;
  return path.string() + (real == path ? " is" : " is a link to " + real.string() + ", which is") +
         " outside of what the sandbox of this backend's process lets it read: add " + real.parent_path().string() +
         " to loader.isolate_paths or BACKPLANE_ISOLATE_PATHS";
}

}  // namespace

Library::Library(const std::filesystem::path& path) : path_(path) {
  handle_ = dlopen(path.c_str(), kFlags);
  if (handle_ == nullptr) {
    const char* const why = dlerror();
    if (std::string text = denied(path); !text.empty()) throw Error(BP_INCOMPATIBLE, std::move(text));
    throw Error(BP_INCOMPATIBLE, why != nullptr ? why : path.string() + " cannot be opened");
  }
  std::string missing;
  const auto find = [&](const char* name, auto& function) {
    function = symbol<std::decay_t<decltype(function)>>(handle_, name);
    if (function == nullptr) missing.append(missing.empty() ? "" : ", ").append(name);
  };
  find("onnxGetBackendIDs", functions_.get_backend_ids);
  find("onnxReleaseBackendID", functions_.release_backend_id);
  find("onnxGetBackendInfo", functions_.get_backend_info);
  find("onnxGetBackendCompatibility", functions_.get_backend_compatibility);
  find("onnxInitBackend", functions_.init_backend);
  find("onnxReleaseBackend", functions_.release_backend);
  find("onnxInitEvent", functions_.init_event);
  find("onnxSignalEvent", functions_.signal_event);
  find("onnxGetEventState", functions_.get_event_state);
  find("onnxWaitEvent", functions_.wait_event);
  find("onnxReleaseEvent", functions_.release_event);
  find("onnxInitGraph", functions_.init_graph);
  find("onnxSetGraphIO", functions_.set_graph_io);
  find("onnxRunGraph", functions_.run_graph);
  find("onnxReleaseGraph", functions_.release_graph);
  if (!missing.empty()) throw Error(BP_INCOMPATIBLE, path.string() + " lacks " + missing);
  // Refuses the libonnxifi.so that the program itself uses, as that library would find this backend again.
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(functions_.get_backend_ids), &info) != 0 && info.dli_fname != nullptr &&
      std::filesystem::path(info.dli_fname).filename().native().rfind("libonnxifi.so", 0) == 0)
    throw Error(BP_INCOMPATIBLE, path.string() + " is " + info.dli_fname + ", which the program uses itself");
  get_extension_ = symbol<decltype(get_extension_)>(handle_, "onnxGetExtensionFunctionAddress");
  wait_event_for_ = symbol<WaitEventFor>(handle_, "onnxWaitEventFor");
  is_fork_ = wait_event_for_ != nullptr || dlsym(handle_, "onnxSetOption") != nullptr;
}

onnxExtensionFunctionPointer Library::extension(onnxBackendID id, const std::string& name) const {
  const std::unique_lock<std::mutex> lock = guard();
  for (const std::string& spelling : {name, name + "Function"}) {
    for (onnxBackendID const of : {id, onnxBackendID{}}) {
      onnxExtensionFunctionPointer function = nullptr;
      if (get_extension_ != nullptr && get_extension_(of, spelling.c_str(), &function) == ONNXIFI_STATUS_SUCCESS &&
          function != nullptr)
        return function;
    }
  }
  return symbol<onnxExtensionFunctionPointer>(handle_, name.c_str());
}

std::vector<onnxBackendID> Library::backend_ids() const {
  const std::unique_lock<std::mutex> lock = guard();
  // There is no first call for the count alone, as not every library supports that.
  std::vector<onnxBackendID> ids(kMaxBackends);
  size_t count = ids.size();
  const onnxStatus status = functions_.get_backend_ids(ids.data(), &count);
  if (accepted(status) && count > ids.size())
    throw Error(BP_INTERNAL, path_.string() + " reports " + std::to_string(count) + " backends; at most " +
                                 std::to_string(kMaxBackends) + " are supported");
  if (status != ONNXIFI_STATUS_SUCCESS) throw error_of(status, "onnxGetBackendIDs");
  ids.resize(count);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (std::find(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(i), ids[i]) !=
        ids.begin() + static_cast<ptrdiff_t>(i))
      throw Error(BP_INTERNAL, path_.string() + " reports one backend id twice");
  }
  return ids;
}

std::unique_lock<std::mutex> Library::guard() const {
  return is_thread_safe_ ? std::unique_lock<std::mutex>() : std::unique_lock(mutex_);
}

}  // namespace onnxifi_backend
