// SPDX-License-Identifier: Apache-2.0
#include "discover/library.h"

#include <dlfcn.h>

#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#define BOOST_DLL_USE_STD_FS
#include <fmt/format.h>

#include <boost/dll/shared_library.hpp>

#include "discover/elf.h"
#include "discover/file.h"

namespace backplane {
namespace {

// A sanitizer's runtime ends the process when it comes late; a plugin that needs one is refused before it is loaded.
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

Refusal check_library(const std::filesystem::path& path) {
  File file;
  if (Refusal refusal = file.open(path)) return refusal;
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

Refusal load_library(const std::filesystem::path& path, bp_plugin_query_t& out_query) {
  // Never destroyed, so nothing is unloaded at the end of the process either.
  static auto& loaded = *new std::deque<boost::dll::shared_library>;
  static std::mutex mutex;
  std::lock_guard lock(mutex);

  boost::dll::shared_library library;
  std::error_code error;
  library.load(path, error, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (error) {
    const char* reason = dlerror();
    return {BP_REFUSED_LINK,
            fmt::format("the system cannot load {}: {}", path.string(), reason ? reason : error.message())};
  }
  void* symbol = dlsym(library.native(), BP_PLUGIN_SYMBOL);
  loaded.push_back(std::move(library));
  if (!symbol)
    return {BP_REFUSED_SYMBOL, fmt::format("{} does not export {}: it is no Backplane plugin, or hides the symbol",
                                           path.string(), BP_PLUGIN_SYMBOL)};
  out_query = reinterpret_cast<bp_plugin_query_t>(symbol);
  return {};
}

}  // namespace backplane
