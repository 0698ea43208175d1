// SPDX-License-Identifier: Apache-2.0
// The processor that the process runs on, as the one device of this backend.
#pragma once

#include <string>

#include "backplane/sdk/backend.hpp"
#include "runtime/threads.h"

namespace backplane::cpu {

// What is known of the processor; read once when the backend is created.
struct Processor {
  std::string name;
  std::string vendor;
  std::string arch;  // "x86_64-avx512"
  uint64_t memory_bytes = 0;
  int cores = 1;
  uint32_t numa_nodes = 1;
  double flops_per_core = 0;  // nominal, in fp32
};
Processor read_processor(const sdk::Host& host);

// Settings of the plugin, which throw sdk::Error where they make no sense: how many threads a device has unless it is
// opened with another number, and whether kernels follow the operators' definitions (threads.h).
int choose_threads(const sdk::Host& host, int cores);
bool choose_reference(const sdk::Host& host);

// A number of threads from the text of the option "threads". Throws sdk::Error.
int parse_threads(std::string_view text);

class Device final : public sdk::Device {
 public:
  Device(const sdk::Backend& backend, const Processor& processor, int threads, bool reference)
      : sdk::Device(backend), processor_(processor), threads_(threads, reference, processor.numa_nodes) {}
  Threads& threads() { return threads_; }

  // Nominal rates for estimates.
  double flops() const { return processor_.flops_per_core * threads_.count() / 2; }
  double bytes_per_second() const { return 20e9; }

  void cover(sdk::Coverage& coverage) override;
  std::unique_ptr<sdk::Program> compile(const sdk::Compile& what) override;

 private:
  const Processor& processor_;
  Threads threads_;
};

}  // namespace backplane::cpu
