// SPDX-License-Identifier: Apache-2.0
// backplane-probe LIBRARY: loads a plugin and uses it as discovery and coverage do. The plugin only has to survive: the
// loader reports its errors later. child.h lists the descriptors, probe_report.h describes the reports.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
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
#include "discover/process_state.h"
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

void say(ProbeReporter& reporter, ProbeStep step, ProcessPart part = kUnchanged) {
  if (!reporter.report(step, part)) _exit(kProbeUnheard);
}

// Reports a step unless the plugin has changed the state of the process in it.
class Steps {
 public:
  explicit Steps(ProbeReporter& reporter) : reporter_(reporter), had_executable_stack_(stack_is_executable()) {}
  void say(ProbeStep step) const {
    ProcessPart part = state_.changed();
    if (part == kUnchanged && !had_executable_stack_ && stack_is_executable()) part = kStackPart;
    ::say(reporter_, part == kUnchanged ? step : ProbeStep::kChanged, part);
    if (part != kUnchanged) _exit(0);
  }

 private:
  ProbeReporter& reporter_;
  const bool had_executable_stack_;
  const ProcessState state_;
};

ProbeReporter* finished = nullptr;  // set after kDone

// An exit handler that makes exit() report kEnded. It was registered before the plugin's handlers, so it runs after
// them, but before the destructors of libraries. It therefore leaves a byte in the buffer of a stream, and the report
// is sent when exit() writes that buffer, at the very end.
void report_at_the_end() {
  if (!finished) return;  // the plugin called exit()
  constexpr cookie_io_functions_t kFunctions = {.read = nullptr,
                                                .write = [](void* self, const char*, size_t) -> ssize_t {
                                                  say(*static_cast<ProbeReporter*>(self), ProbeStep::kEnded);
                                                  _exit(0);
                                                },
                                                .seek = nullptr,
                                                .close = nullptr};
  FILE* const stream = fopencookie(finished, "w", kFunctions);
  if (!stream || setvbuf(stream, nullptr, _IOFBF, 64) != 0 || fputc('\n', stream) == EOF) _exit(1);
}

void query_an_operator(const Device& device, bp_device_t* handle) {
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
void use(Backend& backend, const std::string& folder, const Steps& steps) {
  bp_env_desc_t desc{};
  desc.size = sizeof desc;
  desc.log_level = BP_LOG_ERROR;
  backend.id = abi::string(backend.plugin->id);
  backend.kept_parts = KeptParts::kNone;  // `steps` compares all parts instead
  if (create_backend(backend, folder, std::make_shared<Services>(desc), {})) return;
  steps.say(ProbeStep::kCreated);
  std::vector<bp_device_info_t> infos;
  if (survey_devices(backend, infos)) return;
  steps.say(ProbeStep::kListed);
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<bp_device_t*> handles;
  for (const bp_device_info_t& info : infos) {
    if (devices.size() == kMaxOpened) break;
    devices.push_back(
        std::make_unique<Device>(backend, info.index + 1, backend.id, info, static_cast<uint32_t>(infos.size())));
    auto opened = devices.back()->open();
    handles.push_back(opened.ok() ? *opened : nullptr);
  }
  steps.say(ProbeStep::kOpened);
  for (size_t i = 0; i < devices.size(); ++i)
    if (handles[i]) query_an_operator(*devices[i], handles[i]);
  steps.say(ProbeStep::kAnswered);
  devices.clear();
  steps.say(ProbeStep::kClosed);
}

}  // namespace

// A sanitizer must not end this process because a plugin does not free memory or end threads.
extern "C" int __lsan_is_turned_off() {
  return 1;
}
extern "C" const char* __tsan_default_options() {
  return "report_thread_leaks=0:exitcode=0";
}

int main(int argc, char** argv) {
  if (argc != 2) {
    constexpr std::string_view kUsage = "usage: backplane-probe LIBRARY\nThe loader runs this.\n";
    return write(STDERR_FILENO, kUsage.data(), kUsage.size()) < 0 ? 1 : 2;
  }
  set_limits();
  // Never destroyed, because its last report follows the exit handlers.
  auto& reporter = *new ProbeReporter(STDIN_FILENO, kChildReport);
  File file;
  if (file.open(own_descriptor(kChildFile))) return 1;
  close(kChildFile);
  say(reporter, ProbeStep::kStarted);
  if (std::atexit(report_at_the_end) != 0) return 1;

  const Steps steps(reporter);
  const std::string library = argv[1];
  bp_plugin_query_t query = nullptr;
  const Refusal refusal = load_library(library, file, {}, query);
  if (refusal.code == BP_REFUSED_LINK || refusal.code == BP_REFUSED_UNTRUSTED) {
    if (!reporter.report(ProbeStep::kNotLoaded, kUnchanged, refusal)) _exit(kProbeUnheard);
    _exit(0);
  }
  {
    Backend backend;
    const bool agreed = refusal.code == BP_REFUSED_NONE && !negotiate(query, library, "", *backend.tables);
    steps.say(ProbeStep::kLoaded);
    if (agreed) use(backend, library.substr(0, library.rfind('/')), steps);
  }
  steps.say(ProbeStep::kDone);
  finished = &reporter;
  std::exit(0);  // runs the plugin's exit handlers, as the framework will
}
