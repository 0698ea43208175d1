// SPDX-License-Identifier: Apache-2.0
// How the probe reports its progress. The plugin runs in the probe's process and can write to the same pipe, so each
// message carries a MAC under a key that the loader sends before the plugin is loaded. While the plugin runs, the key
// is in memory that cannot be read.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace backplane {

// The steps that the probe reports as soon as the plugin has completed them, in this order.
enum class ProbeStep : uint8_t { kNone, kLoaded, kCreated, kListed, kOpened, kAnswered, kClosed, kDone };

using ProbeKey = std::array<unsigned char, 32>;

// The exit status of a probe that cannot write its reports.
inline constexpr int kProbeUnheard = 4;

ProbeKey make_probe_key();
// Builds the report of `step`, the probe's report number `index` (from 0).
std::string probe_message(const ProbeKey& key, uint32_t index, ProbeStep step);

struct ProbeProgress {
  ProbeStep last = ProbeStep::kNone;
  bool disturbed = false;  // bytes follow that are no authentic report in order
};

// Reads reports up to the first that is not authentic or not in order.
ProbeProgress read_probe_report(const ProbeKey& key, std::string_view report);

// Used by the probe.
class ProbeReporter {
 public:
  // Reads the key from `input` and closes it. Reports are written to `output`.
  ProbeReporter(int input, int output);
  ~ProbeReporter();
  ProbeReporter(const ProbeReporter&) = delete;

  // False if the report cannot be written: the plugin closed the descriptor, or the loader has exited.
  bool report(ProbeStep step);

 private:
  int output_;
  uint32_t index_ = 0;
  void* page_;  // holds the key; readable only while a report is being built
};

}  // namespace backplane
