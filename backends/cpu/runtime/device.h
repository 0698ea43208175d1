// SPDX-License-Identifier: Apache-2.0
// The processor that the process runs on, as the only device of this backend.
#pragma once

#include <optional>
#include <string>

#include "backplane/sdk/backend.hpp"
#include "runtime/choices.h"
#include "runtime/operators.h"
#include "runtime/threads.h"

namespace backplane::cpu {

// Properties of the machine.
struct Machine {
  std::string name;  // name of the processor
  std::string vendor;
  std::string arch;  // for example "x86_64-avx512"
  // Memory that the process may use: the machine's, or the limit of the process's control group if that is lower. If
  // the host does not report the topology, always the machine's.
  uint64_t memory_bytes = 0;
  int cores = 1;  // number of hardware threads that the process's affinity mask allows
  uint32_t numa_nodes = 1;
  double flops_per_core = 0;  // peak fp32 operations per second, at the clock rate when it was read, or at 2 GHz
};
// Reads the properties of the machine. The process's first call fixes the result of processor(). Its instruction set is
// limited by the option "instructions", or if that is not set by BACKPLANE_CPU_INSTRUCTIONS. Throws sdk::Error if the
// name is unknown, or if the option is below the instruction set that the process already uses.
Machine read_machine(const sdk::Host& host);

// Read the plugin's settings: the default thread count, policy and memory limit in bytes of its device, and whether
// operators are computed as they are defined (PlanContext::reference). They throw sdk::Error if the setting is invalid.
// `cores` and `available` are the values without an option; a thread count from the host takes precedence over `cores`.
int choose_threads(const sdk::Host& host, int cores);
ThreadsPolicy choose_threads_policy(const sdk::Host& host);
int64_t choose_max_bytes(const sdk::Host& host, uint64_t available);
bool choose_reference(const sdk::Host& host);
// Parses the option "implementation". Returns nullopt if it is not set. Throws sdk::Error if it is invalid. `host` must
// outlive the result.
std::optional<Choices> choose_implementations(const sdk::Host& host, const Operators& operators);

// Parses the value of the option "threads". Throws sdk::Error.
int parse_threads(std::string_view text);
// Parses the value of the option "threads_policy". Throws sdk::Error.
ThreadsPolicy parse_threads_policy(std::string_view text);
// Parses the value of the option "max_bytes". Throws sdk::Error.
int64_t parse_max_bytes(std::string_view text);

class Device final : public sdk::Device {
 public:
  // `machine`, `operators` and `choices` must outlive the device. `choices` may be null.
  Device(const sdk::Backend& backend, const Machine& machine, const Operators& operators, const Choices* choices,
         int threads, ThreadsPolicy policy, int64_t max_bytes, bool reference)
      : sdk::Device(backend),
        machine_(machine),
        operators_(operators),
        choices_(choices),
        reference_(reference),
        threads_(threads, policy, machine.numa_nodes, max_bytes) {}
  Threads& threads() { return threads_; }
  const Operators& operators() const { return operators_; }
  // `compute_types`: BP_COMPUTE_* that the session allows.
  PlanContext plan_context(uint32_t compute_types) const;

  // Rates assumed for estimates of run time: half of the peak fp32 operations per second of as many cores as there
  // are threads, and a typical memory bandwidth.
  double flops() const { return machine_.flops_per_core * threads_.count() / 2; }
  double bytes_per_second() const { return 20e9; }

  void cover(sdk::Coverage& coverage) override;
  std::unique_ptr<sdk::Program> compile(const sdk::Compile& what) override;

 private:
  const Machine& machine_;
  const Operators& operators_;
  const Choices* choices_;
  bool reference_;
  Threads threads_;
};

}  // namespace backplane::cpu
