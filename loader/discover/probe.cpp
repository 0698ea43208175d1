// SPDX-License-Identifier: Apache-2.0
#include "discover/probe.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstring>

#include "discover/child.h"
#include "discover/helper.h"
#include "discover/known.h"
#include "discover/probe_report.h"
#include "discover/verdict.h"

namespace backplane {
namespace {

namespace fs = std::filesystem;

Refusal crashed(const fs::path& library, std::string_view how, std::string_view way_out) {
  return {BP_REFUSED_CRASHED,
          fmt::format("{} {} when it was tried in a process of its own: {}", library.string(), how, way_out)};
}

// Names the step in which the plugin failed: the step after the last one that was reported.
const char* next_step(ProbeStep last) {
  switch (last) {
    case ProbeStep::kNone:
      return "was started";  // the helper, without the plugin
    case ProbeStep::kStarted:
      return "was loaded and queried";
    case ProbeStep::kLoaded:
      return "was created";
    case ProbeStep::kCreated:
      return "described its devices";
    case ProbeStep::kListed:
      return "opened a device";
    case ProbeStep::kOpened:
      return "was queried about an operator";
    case ProbeStep::kAnswered:
      return "closed a device";
    case ProbeStep::kDone:
      return "ended";  // its exit handlers and the destructors of its library
    default:
      return "was destroyed";
  }
}

std::string how_it_ended(const ChildResult& child, const ProbeProgress& progress) {
  if (progress.last == ProbeStep::kChanged && !progress.disturbed)
    return fmt::format("changed {} while it {}", text_of_part(progress.part), next_step(progress.before));
  const char* where = next_step(progress.last);
  if (child.timed_out) return fmt::format("did not return in time while it {}", where);
  if (child.signal) {
    const char* name = sigabbrev_np(child.signal);
    return fmt::format("crashed (SIG{}) while it {}", name ? name : "?", where);
  }
  if (progress.disturbed) return fmt::format("wrote to a descriptor that is not its own while it {}", where);
  if (child.exit_code == kProbeUnheard)
    return fmt::format("closed a descriptor that is not its own while it {}", where);
  return fmt::format("ended the process (exit code {}) while it {}", child.exit_code, where);
}

// Whether a signal asks a process to end. Such a signal probably comes from outside, for example because the service of
// which the process is a part is being stopped.
bool asks_to_end(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace

Refusal probe_library(const fs::path& path, const File& library, const std::string& content,
                      const ProbeSettings& settings, const Log& log) {
  auto untried = [&](std::string_view why) -> Refusal {
    if (settings.policy == ProbePolicy::kIfPossible || settings.policy == ProbePolicy::kNever) {
      // Logged as an error if the framework wanted a probe, and as a warning if it turned probing off.
      const uint32_t level = settings.policy == ProbePolicy::kIfPossible ? BP_LOG_ERROR : BP_LOG_WARNING;
      log.write(level, {}, fmt::format("{} is loaded without a probe: {}", path.string(), why));
      return {};
    }
    return {BP_REFUSED_UNTRIED, fmt::format("{} cannot be tried in a process of its own: {}; loader.probe=if_possible "
                                            "loads it anyway",
                                            path.string(), why)};
  };
  if (settings.policy == ProbePolicy::kNever) return untried("loader.probe is never");
  if (settings.policy != ProbePolicy::kAlways) {
    const auto verdict = recall_verdict(content);
    if (verdict && verdict->survived && (verdict->situation.empty() || verdict->situation == situation({}))) return {};
    if (verdict && !verdict->survived && (verdict->hung_for == 0 || settings.limit.count() <= verdict->hung_for)) {
      return crashed(
          path, verdict->how,
          fmt::format("it is quarantined until it changes; remove {} or set loader.probe=always to try again",
                      verdict_path(content).string()));
    }
  }
  fs::path helper = settings.helper;
  if (helper.empty())
    if (const Refusal refusal = find_helper("backplane-probe", helper)) return untried(refusal.text);
  const ProbeKey key = make_probe_key();
  const auto child = run_child({.program = helper,
                                .arguments = {path.string()},
                                .environment = minimal_environment(),
                                .input = std::string(reinterpret_cast<const char*>(key.data()), key.size()),
                                .file = library.descriptor(),
                                .limit = settings.limit});
  if (!child.ok()) return untried(child.status().text());
  // Only authentic reports count. The exit code does not: the plugin may call exit(0), or the framework may reap the
  // child.
  const ProbeProgress progress = read_probe_report(key, child->output);
  const bool complete = !child->timed_out && !progress.disturbed;
  // No verdict is kept: what is missing may be there next time. The framework may have a symbol that its helper lacks,
  // but a library that was not tried is not loaded.
  if (complete && progress.last == ProbeStep::kNotLoaded) {
    if (settings.policy == ProbePolicy::kIfPossible) return untried(progress.reason.text);
    const bool is_symbol = progress.reason.text.find("undefined symbol") != std::string::npos;
    return {
        progress.reason.code,
        progress.reason.text +
            (is_symbol ? "; if the framework has it, loader.probe=if_possible loads the plugin without a trial" : "")};
  }
  if (complete && progress.last == ProbeStep::kEnded && progress.before == ProbeStep::kDone) {
    // Without a device the probe skipped steps: in a situation in which there may be one, the plugin is probed again.
    remember_verdict(content, {.survived = true, .situation = progress.closed ? std::string() : situation({})});
    return {};
  }
  const std::string how = how_it_ended(*child, progress);
  if (progress.last == ProbeStep::kNone) return untried(fmt::format("{} {}", helper.string(), how));
  if (!asks_to_end(child->signal))
    remember_verdict(content, {.how = how, .hung_for = child->timed_out ? settings.limit.count() : 0});
  return crashed(path, how, "ask its vendor, or set loader.probe=never to load it anyway");
}

}  // namespace backplane
