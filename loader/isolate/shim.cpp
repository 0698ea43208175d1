// SPDX-License-Identifier: Apache-2.0
// A plugin that runs another plugin in a separate process, for programs that load plugins themselves, such as the
// harness. BACKPLANE_ISOLATED_LIBRARY names the other plugin, BACKPLANE_ISOLATE_SANDBOX the sandbox, and
// BACKPLANE_ISOLATE_PATHS more paths, separated by ':', that the process may read. A program may compare a plugin's id
// with its file name: give it a link to this file that has the other plugin's name.
#include <dlfcn.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>

#include "base/abi.h"
#include "isolate/library.h"

namespace {

using namespace backplane;
namespace fs = std::filesystem;

bp_plugin_t plugin;
isolate::Library* library;  // never destroyed, because the tables contain its functions
std::string refusal;

bp_status_t create(const bp_backend_create_t* how, bp_backend_t** out_backend, bp_error_t* error) {
  Result<bp_backend_create_t> with = abi::read(how, "how");
  if (!with.ok()) return with.status().write(error);
  if (const Status status = abi::check_chain(with->chain); !status.ok()) return status.write(error);
  with->chain = library->chain();
  return library->plugin()->create(&*with, out_backend, error);
}

void start() {
  plugin.size = sizeof plugin;
  plugin.version_min = BP_ABI_VERSION_MIN;
  plugin.version_max = BP_ABI_VERSION;
  plugin.refusal = BP_INCOMPATIBLE;
  const auto refuse = [](std::string why) {
    refusal = std::move(why);
    plugin.refusal_text = abi::text(refusal);
  };
  const char* name = secure_getenv("BACKPLANE_ISOLATED_LIBRARY");
  Dl_info own{};
  if (!name || dladdr(reinterpret_cast<const void*>(&start), &own) == 0)
    return refuse("BACKPLANE_ISOLATED_LIBRARY is not set: it must be the path of a plugin's library");
  isolate::Settings settings;
  std::error_code error;
  settings.library = fs::absolute(name, error);
  settings.program.file = fs::canonical(own.dli_fname, error).parent_path() / BACKPLANE_TO_PROGRAM;
  const char* sandbox = secure_getenv("BACKPLANE_ISOLATE_SANDBOX");
  settings.program.arguments = {settings.library.string(), sandbox ? sandbox : "strict"};
  if (const char* paths = secure_getenv("BACKPLANE_ISOLATE_PATHS"))
    for (std::string_view rest = paths; !rest.empty();) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) settings.program.arguments.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  for (char** entry = environ; entry && *entry; ++entry) settings.program.environment.emplace_back(*entry);
  const isolate::Descriptor file(::open(settings.library.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file)
    return refuse(std::string(name) +
                  " cannot be opened: " + std::error_code(errno, std::generic_category()).message());
  settings.file = file.get();
  isolate::Rejection rejection;
  static auto loaded = isolate::Library::load(std::move(settings), rejection);
  if (!loaded) return refuse(rejection.text);
  library = loaded.get();
  library->rest();  // a query of a plugin must leave no threads
  plugin = *library->plugin();
  plugin.create = create;
}

}  // namespace

extern "C" BP_EXPORT const bp_plugin_t* BP_CALL bp_plugin_query(const bp_host_offer_t* offer) {
  static std::once_flag started;
  std::call_once(started, start);
  const bool whole = offer && offer->size >= BP_SIZE_1_0(bp_host_offer_t);
  if (plugin.version == 0 || (whole && offer->version_min <= plugin.version && plugin.version <= offer->version_max &&
                              offer->sanitizer == plugin.sanitizer))
    return &plugin;
  static const bp_plugin_t kRefusal = [] {
    bp_plugin_t refused = plugin;
    refused.version = 0;
    refused.refusal = BP_INCOMPATIBLE;
    refused.refusal_text = abi::text(
        "it supports another version of the ABI than this host, was built with another sanitizer, or the offer is too "
        "short");
    return refused;
  }();
  return &kRefusal;
}
