// SPDX-License-Identifier: Apache-2.0
#include "discover/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#define BOOST_DLL_USE_STD_FS
#include <fmt/format.h>

#include <boost/dll/shared_library.hpp>

#include "base/forks.h"
#include "discover/call.h"
#include "discover/elf.h"
#include "discover/file.h"

namespace backplane {
namespace {

// The sanitizer whose runtime a plugin needs. If this process was built without it, loading the plugin would end the
// process.
uint32_t needed_sanitizer(const std::vector<std::string>& libraries) {
  for (const std::string& library : libraries) {
    if (library.starts_with("libasan.so") || library.starts_with("libclang_rt.asan")) return BP_SANITIZER_ADDRESS;
    if (library.starts_with("libtsan.so") || library.starts_with("libclang_rt.tsan")) return BP_SANITIZER_THREAD;
  }
  return BP_SANITIZER_NONE;
}

struct Loaded {
  boost::dll::shared_library library;
  std::string content;
};

std::mutex maps_mutex;  // guards the maps below
const FreeInChildren<maps_mutex> kFreeInChildren;

// By path. Never destroyed, so that no library is unloaded when the process exits. Elements stay in place.
std::map<std::string, Loaded>& loaded() {
  static auto& all = *new std::map<std::string, Loaded>;
  return all;
}

// Returns null if no library was loaded from this path.
Loaded* find_loaded(const std::string& path) {
  const std::lock_guard lock(maps_mutex);
  const auto found = loaded().find(path);
  return found != loaded().end() ? &found->second : nullptr;
}

Loaded* keep_loaded(const std::string& path, Loaded library) {
  const std::lock_guard lock(maps_mutex);
  return &loaded().emplace(path, std::move(library)).first->second;
}

// Held while a library is loaded. The library's constructors run meanwhile and may take long, so a fork does not wait
// for this mutex. Each process has a mutex of its own, because a thread of the parent may hold the parent's during a
// fork.
std::mutex& load_mutex() {
  const std::lock_guard lock(maps_mutex);
  static auto& all = *new std::map<pid_t, std::mutex>;
  return all[::getpid()];
}

}  // namespace

uint32_t own_sanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return BP_SANITIZER_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
  return BP_SANITIZER_THREAD;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return BP_SANITIZER_ADDRESS;
#elif __has_feature(thread_sanitizer)
  return BP_SANITIZER_THREAD;
#elif __has_feature(memory_sanitizer)
  return BP_SANITIZER_MEMORY;
#else
  return BP_SANITIZER_NONE;
#endif
#else
  return BP_SANITIZER_NONE;
#endif
}

Refusal check_library(const std::filesystem::path& path, const File& file) {
  std::vector<std::string> needed;
  if (Refusal refusal = read_elf(path.string(), file, needed)) return refusal;
  const uint32_t sanitizer = needed_sanitizer(needed);
  if (sanitizer != BP_SANITIZER_NONE && sanitizer != own_sanitizer())
    return {BP_REFUSED_SANITIZER,
            fmt::format("{} needs the runtime of a sanitizer that this process was not built with: build "
                        "both sides alike",
                        path.string())};
  return {};
}

Refusal load_library(const std::filesystem::path& path, const File& file, const std::string& content,
                     bp_plugin_query_t& out_query) {
  const std::lock_guard loading(load_mutex());
  auto untrusted = [&](std::string_view why) {
    return Refusal{BP_REFUSED_UNTRUSTED, fmt::format("{} is not used: {}", path.string(), why)};
  };
  const std::string name = path.string();
  if (name.find('$') != std::string::npos)
    return untrusted("its path contains '$', which the dynamic linker would replace, and so load another file");
  Loaded* known = find_loaded(name);
  if (known && known->content != content)
    return untrusted(
        "this process has loaded an earlier version of this file: restart the process to load the present one");
  if (!known) {
    constexpr std::string_view kExchanged = "it was replaced while it was being checked: try again";
    if (facts_of(path) != file.facts()) return untrusted(kExchanged);
    Loaded fresh{{}, content};
    std::error_code error;
    {
      const KeptThreadState kept;
      fresh.library.load(path, error, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    }
    if (error) {
      const char* reason = dlerror();
      return {BP_REFUSED_LINK, fmt::format("the system cannot load {}: {}", name, reason ? reason : error.message())};
    }
    known = keep_loaded(name, std::move(fresh));
    if (facts_of(path) != file.facts() || file.facts_now() != file.facts()) {
      known->content.clear();  // it is unknown which content was loaded
      return untrusted(kExchanged);
    }
  }
  void* symbol = dlsym(known->library.native(), BP_PLUGIN_SYMBOL);
  if (!symbol)
    return {BP_REFUSED_SYMBOL, fmt::format("{} does not export {}: it is not a Backplane plugin, or hides the symbol",
                                           name, BP_PLUGIN_SYMBOL)};
  out_query = reinterpret_cast<bp_plugin_query_t>(symbol);
  return {};
}

}  // namespace backplane
