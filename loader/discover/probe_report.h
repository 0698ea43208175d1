// SPDX-License-Identifier: Apache-2.0
// The probe's progress reports. The plugin runs in the probe's process and could write to the same pipe. Each report
// therefore carries a MAC, computed with a key that the loader sends before the plugin is loaded. While the plugin
// runs, the key is in memory that is not readable.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "discover/process_state.h"
#include "discover/refusal.h"

namespace backplane {

// The steps of a probe. Each is reported when it has ended, in this order. kStarted precedes all code of the plugin.
// Steps after an error of the plugin are skipped, except kDone and kEnded. kEnded follows the exit handlers and the
// destructors of libraries. kNotLoaded is reported, with the reason, instead of all further steps if the library is
// not loaded, for example because another one is missing or the file was replaced: the plugin was not tried. kChanged
// is reported instead of all further steps if the plugin changed the state of the process.
enum class ProbeStep : uint8_t {
  kNone,
  kStarted,
  kLoaded,
  kCreated,
  kListed,
  kOpened,
  kAnswered,
  kClosed,
  kDone,
  kEnded,
  kNotLoaded,
  kChanged
};

using ProbeKey = std::array<unsigned char, 32>;

// The exit code of a probe that cannot write its reports.
inline constexpr int kProbeUnheard = 4;

ProbeKey make_probe_key();

// Why a library was not loaded: a code of bp_refusal_t and a text of at most kMaxReasonBytes.
inline constexpr size_t kMaxReasonBytes = 3000;  // run_child keeps about 4 KB of reports

// Builds the report of `step`. `index` counts the reports of this probe, from 0. `part` is the changed part, for
// kChanged. For kNotLoaded, `reason` is why.
std::string probe_message(const ProbeKey& key, uint32_t index, ProbeStep step, ProcessPart part = kUnchanged,
                          const Refusal& reason = {});

struct ProbeProgress {
  ProbeStep last = ProbeStep::kNone;
  ProbeStep before = ProbeStep::kNone;  // the step that was reported before `last`
  bool closed = false;                  // kClosed was reported: no step was skipped
  ProcessPart part = kUnchanged;        // of `last`
  Refusal reason;                       // if `last` is kNotLoaded
  bool disturbed = false;               // after `last` there are bytes that are not the next authentic report
};

// Reads reports until one is not authentic or not in order.
ProbeProgress read_probe_report(const ProbeKey& key, std::string_view report);

// The probe's side of the reports.
class ProbeReporter {
 public:
  // Reads the key from descriptor `input` and closes that descriptor. Reports are written to descriptor `output`.
  ProbeReporter(int input, int output);
  ~ProbeReporter();
  ProbeReporter(const ProbeReporter&) = delete;

  // Returns false if the report cannot be written: the plugin closed the descriptor, or the loader has exited.
  bool report(ProbeStep step, ProcessPart part = kUnchanged, const Refusal& reason = {});

 private:
  int output_;
  uint32_t index_ = 0;
  void* page_;  // contains the key; readable only while a report is built
};

}  // namespace backplane
