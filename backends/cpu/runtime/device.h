// SPDX-License-Identifier: Apache-2.0
// The processor that the process runs on, as the one device of this backend.
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
  std::string name;  // of the processor
  std::string vendor;
  std::string arch;  // "x86_64-avx512"
  uint64_t memory_bytes = 0;
  int64_t available_bytes = 0;  // how much of that the process may use
  int cores = 1;
  uint32_t numa_nodes = 1;
  double flops_per_core = 0;  // nominal, in fp32
};
// Reads the properties once, when the backend is created. Also decides what processor() returns from then on: by the
// option "instructions", else the environment's BACKPLANE_CPU_INSTRUCTIONS, and the host's cache sizes. Throws
// sdk::Error for an unknown name, and for an option below what the process already uses.
Machine read_machine(const sdk::Host& host);

// Settings of the plugin; invalid ones throw sdk::Error. They are the default number of threads of a device, the
// default number of bytes that it may hold, and whether operators are computed as defined (PlanContext::reference).
int choose_threads(const sdk::Host& host, int cores);
int64_t choose_max_bytes(const sdk::Host& host, int64_t available);
bool choose_reference(const sdk::Host& host);
// Parses the option "implementation"; nullopt if it is not set.
std::optional<Choices> choose_implementations(const sdk::Host& host, const Operators& operators);

// Parses the value of the option "threads". Throws sdk::Error.
int parse_threads(std::string_view text);
// Parses the value of the option "max_bytes". Throws sdk::Error.
int64_t parse_max_bytes(std::string_view text);

class Device final : public sdk::Device {
 public:
  // `operators` and `choices`, which may be null, outlive the device.
  Device(const sdk::Backend& backend, const Machine& machine, const Operators& operators, const Choices* choices,
         int threads, int64_t max_bytes, bool reference)
      : sdk::Device(backend),
        machine_(machine),
        operators_(operators),
        choices_(choices),
        reference_(reference),
        threads_(threads, machine.numa_nodes, max_bytes) {}
  Threads& threads() { return threads_; }
  const Operators& operators() const { return operators_; }
  PlanContext plan_context() const {
    return {threads_.count(), reference_, operators_.make_reorder(), choices_, threads_.budget().limit()};
  }

  // Nominal rates for estimates.
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
