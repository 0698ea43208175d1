// SPDX-License-Identifier: Apache-2.0
#include "discover/library.h"

#include <dlfcn.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#define BOOST_DLL_USE_STD_FS
#include <fmt/format.h>

#include <boost/dll/shared_library.hpp>

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
  struct Loaded {
    boost::dll::shared_library library;
    std::string content;
  };
  // Never destroyed, so that no library is unloaded when the process exits.
  static auto& loaded = *new std::map<std::string, Loaded>;
  static std::mutex mutex;
  std::lock_guard lock(mutex);

  auto untrusted = [&](std::string_view why) {
    return Refusal{BP_REFUSED_UNTRUSTED, fmt::format("{} is not used: {}", path.string(), why)};
  };
  const std::string name = path.string();
  auto known = loaded.find(name);
  if (known != loaded.end() && known->second.content != content)
    return untrusted(
        "this process has loaded an earlier version of this file: restart the process to load the present one");
  if (known == loaded.end()) {
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
    known = loaded.emplace(name, std::move(fresh)).first;
    if (facts_of(path) != file.facts() || file.facts_now() != file.facts()) {
      known->second.content.clear();  // it is unknown which content was loaded
      return untrusted(kExchanged);
    }
  }
  void* symbol = dlsym(known->second.library.native(), BP_PLUGIN_SYMBOL);
  if (!symbol)
    return {BP_REFUSED_SYMBOL, fmt::format("{} does not export {}: it is not a Backplane plugin, or hides the symbol",
                                           name, BP_PLUGIN_SYMBOL)};
  out_query = reinterpret_cast<bp_plugin_query_t>(symbol);
  return {};
}

}  // namespace backplane
