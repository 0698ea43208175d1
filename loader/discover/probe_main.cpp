// SPDX-License-Identifier: Apache-2.0
// backplane-probe LIBRARY: loads a plugin, asks it, creates it and counts its devices. What it finds wrong is told by
// the loader itself later; here only survival counts, and two words on kChildVoice tell of it.
#include <sys/resource.h>
#include <unistd.h>

#include <memory>

#include "discover/child.h"
#include "discover/library.h"
#include "discover/negotiate.h"
#include "discover/probe.h"
#include "host/host.h"

namespace {

void say(std::string_view word) {
  [[maybe_unused]] const ssize_t written = write(backplane::kChildVoice, word.data(), word.size());
}

void try_devices(const backplane::PluginTables& tables, std::string_view library) {
  using namespace backplane;
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  desc.log_level = BP_LOG_ERROR;
  Host host(std::make_shared<Services>(desc), std::string(tables.plugin.id.data, tables.plugin.id.size), {},
            tables.plugin.version);
  const std::string_view folder = library.substr(0, library.rfind('/'));
  bp_backend_create_t how{};
  how.size = sizeof how;
  how.host = host.table();
  how.directory = {folder.data(), folder.size()};
  bp_backend_t* backend = nullptr;
  PluginError error;
  if (tables.plugin.create(&how, &backend, error.get()) != BP_OK) return;
  uint32_t count = 0;
  tables.device.count(backend, &count, error.get());
  tables.plugin.destroy(backend);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    constexpr std::string_view kUsage =
        "usage: backplane-probe LIBRARY\nThe loader runs this; it answers on descriptor 3.\n";
    return write(STDERR_FILENO, kUsage.data(), kUsage.size()) < 0 ? 1 : 2;
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(30);  // if the loader died, nobody else ends a plugin that hangs

  bp_plugin_query_t query = nullptr;
  backplane::PluginTables tables;
  const bool loaded = !backplane::load_library(argv[1], query) && !backplane::negotiate(query, argv[1], "", tables);
  say(backplane::kProbeLoaded);
  if (loaded) try_devices(tables, argv[1]);
  say(backplane::kProbeSurvived);
  _exit(0);  // what a plugin does at the end of a process is no part of the trial
}
