// SPDX-License-Identifier: Apache-2.0
// backplane-probe LIBRARY: loads a plugin and uses it as discovery and coverage do. The plugin only has to survive: the
// loader reports its errors later. child.h lists the descriptors, probe_report.h describes the reports.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <string>

#include "base/abi.h"
#include "discover/call.h"
#include "discover/child.h"
#include "discover/digest.h"
#include "discover/environment.h"
#include "discover/library.h"
#include "discover/negotiate.h"
#include "discover/probe_graph.h"
#include "discover/probe_report.h"
#include "discover/survey.h"

namespace {

using namespace backplane;

constexpr size_t kMaxOpened = 16;  // the most devices that are opened

std::string own_descriptor(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

void limit(__rlimit_resource resource, rlim_t value) {
  rlimit limits{};
  if (getrlimit(resource, &limits) != 0) return;
  limits.rlim_cur = limits.rlim_max = std::min(limits.rlim_max, value);
  setrlimit(resource, &limits);
}

void set_limits() {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_CPU, 600);  // seconds, for all threads; usually the loader's time limit passes first
  limit(RLIMIT_FSIZE, rlim_t{1} << 30);
  limit(RLIMIT_NOFILE, 4096);
  struct sysinfo memory {};
  if (own_sanitizer() == BP_SANITIZER_NONE &&
      sysinfo(&memory) == 0)  // sanitizers reserve more address space than there is memory
    limit(RLIMIT_DATA, std::max<rlim_t>(rlim_t{memory.totalram} * memory.mem_unit / 2, rlim_t{1} << 30));
  // Ends a plugin that hangs, even if the loader has exited.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(3600);
}

void say(ProbeReporter& reporter, ProbeStep step) {
  if (!reporter.report(step)) _exit(kProbeUnheard);
}

void ask_about_an_operator(const Device& device, bp_device_t* handle) {
  bp_coverage_sink_t sink{};
  sink.size = sizeof sink;
  sink.verdicts = [](void*, const bp_verdict_t*, uint32_t, uint32_t) {};
  sink.groups = [](void*, const bp_group_t*, uint32_t, uint32_t) {};
  bp_coverage_query_t query{};
  query.size = sizeof query;
  query.graph = &probe_graph();
  query.option_stride = sizeof(bp_option_t);
  PluginError error;
  const bp_coverage_api_t& api = *device.backend().plugin->coverage;
  call_plugin(error, [&] { return api.query(handle, &query, &sink, error.get()); });
}

// Reports each step when it is done. A plugin that creates no backend or lists no devices, but returns, has survived:
// the remaining steps are skipped.
void use(Backend& backend, const std::string& folder, ProbeReporter& reporter) {
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  desc.log_level = BP_LOG_ERROR;
  backend.id = abi::string(backend.plugin->id);
  if (create_backend(backend, folder, std::make_shared<Services>(desc), {})) return;
  say(reporter, ProbeStep::kCreated);
  std::vector<bp_device_info_t> infos;
  if (survey_devices(backend, infos)) return;
  say(reporter, ProbeStep::kListed);
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<bp_device_t*> handles;
  for (const bp_device_info_t& info : infos) {
    if (devices.size() == kMaxOpened) break;
    devices.push_back(
        std::make_unique<Device>(backend, info.index + 1, backend.id, info, static_cast<uint32_t>(infos.size())));
    auto opened = devices.back()->open();
    handles.push_back(opened.ok() ? *opened : nullptr);
  }
  say(reporter, ProbeStep::kOpened);
  for (size_t i = 0; i < devices.size(); ++i)
    if (handles[i]) ask_about_an_operator(*devices[i], handles[i]);
  say(reporter, ProbeStep::kAnswered);
  devices.clear();
  say(reporter, ProbeStep::kClosed);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    constexpr std::string_view kUsage = "usage: backplane-probe LIBRARY\nThe loader runs this.\n";
    return write(STDERR_FILENO, kUsage.data(), kUsage.size()) < 0 ? 1 : 2;
  }
  set_limits();
  ProbeReporter reporter(STDIN_FILENO, kChildReport);
  File file;
  if (file.open(own_descriptor(kChildFile))) return 1;
  close(kChildFile);
  say(reporter, ProbeStep::kStarted);

  const std::string library = argv[1];
  bp_plugin_query_t query = nullptr;
  const uint32_t refusal = load_library(library, file, {}, query).code;
  if (refusal == BP_REFUSED_LINK || refusal == BP_REFUSED_UNTRUSTED) {
    say(reporter, ProbeStep::kNotLoaded);
    _exit(0);
  }
  {
    Backend backend;
    const bool agreed = refusal == BP_REFUSED_NONE && !negotiate(query, library, "", *backend.tables);
    say(reporter, ProbeStep::kLoaded);
    if (agreed) use(backend, library.substr(0, library.rfind('/')), reporter);
  }
  say(reporter, ProbeStep::kDone);
  _exit(0);  // skips exit handlers, including the plugin's: they are not part of the probe
}
