// SPDX-License-Identifier: Apache-2.0
// The processor that the process runs on, as the one device of this backend.
#pragma once

#include <string>

#include "backplane/host.h"
#include "engine/threads.h"

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
Processor read_processor(const bp_host_t* host);

// A number of threads from the text of the option "threads". Throws sdk::Error.
int parse_threads(std::string_view text);

class Backend {
 public:
  explicit Backend(const bp_host_t* host);
  const bp_host_t* host() const { return host_; }
  const Processor& processor() const { return processor_; }
  int threads() const { return threads_; }
  bool reference() const { return reference_; }
  uint32_t generation() const { return generation_; }

 private:
  const bp_host_t* host_;
  Processor processor_;
  int threads_;
  bool reference_;
  uint32_t generation_;
};

class Device {
 public:
  Device(const Backend& backend, int threads)
      : backend_(backend), threads_(threads, backend.reference(), backend.processor().numa_nodes) {}
  const bp_host_t* host() const { return backend_.host(); }
  uint32_t generation() const { return backend_.generation(); }
  Threads& threads() { return threads_; }

  // Nominal rates for estimates.
  double flops() const { return backend_.processor().flops_per_core * threads_.count() / 2; }
  double bytes_per_second() const { return 20e9; }

 private:
  const Backend& backend_;
  Threads threads_;
};

}  // namespace backplane::cpu
