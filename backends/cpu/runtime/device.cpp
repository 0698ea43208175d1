// SPDX-License-Identifier: Apache-2.0
#include "runtime/device.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "runtime/coverage.h"
#include "runtime/island.h"
#include "runtime/processor.h"

namespace backplane::cpu {

namespace {

constexpr int kMaxThreads = 1024;

// Returns the value of the first line "key : value" of /proc/cpuinfo, or an empty string.
std::string cpuinfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    size_t colon = line.find(':');
    size_t begin = colon == std::string::npos ? colon : line.find_first_not_of(' ', colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

// The name of the instruction set, and the fp32 operations per cycle that a core is assumed to do: with AVX2 or
// AVX-512, two fused multiply-adds of whole vectors.
struct Architecture {
  const char* name;
  double flops_per_cycle;
};
Architecture architecture() {
#if defined(__x86_64__)
  const Processor& used = processor();
  const auto flops = static_cast<double>(4 * used.vector_floats());
  if (used.has(Instructions::kAvx512)) return {"x86_64-avx512", flops};
  if (used.has(Instructions::kAvx2)) return {"x86_64-avx2", flops};
  return {"x86_64", 8};
#elif defined(__aarch64__)
  return {"aarch64", 16};
#else
  return {"generic", 2};
#endif
}

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace

int parse_threads(std::string_view text) {
  int threads = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
  if (error != std::errc() || end != text.data() + text.size() || threads < 1 || threads > kMaxThreads) {
    throw sdk::Error(BP_INVALID_ARGUMENT, "option cpu.threads is '" + std::string(text) +
                                              "'; give a number from 1 to " + std::to_string(kMaxThreads));
  }
  return threads;
}

int choose_threads(const sdk::Host& host, int cores) {
  if (const auto value = host.option("threads")) return parse_threads(*value);
  const int wanted = host.raw()->thread_count != nullptr ? static_cast<int>(host.thread_count()) : cores;
  return std::clamp(wanted, 1, kMaxThreads);
}

ThreadsPolicy parse_threads_policy(std::string_view text) {
  if (text == "auto") return ThreadsPolicy::kAuto;
  if (text == "team") return ThreadsPolicy::kTeam;
  if (text == "arena") return ThreadsPolicy::kArena;
  throw sdk::Error(BP_INVALID_ARGUMENT,
                   "option cpu.threads_policy is '" + std::string(text) + "'; give auto, team or arena");
}

ThreadsPolicy choose_threads_policy(const sdk::Host& host) {
  return parse_threads_policy(host.option("threads_policy").value_or("auto"));
}

int64_t parse_max_bytes(std::string_view text) {
  int64_t bytes = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (error != std::errc() || end != text.data() + text.size() || bytes < 1)
    throw sdk::Error(BP_INVALID_ARGUMENT,
                     "option cpu.max_bytes is '" + std::string(text) + "'; give a number of bytes, at least 1");
  return bytes;
}

int64_t choose_max_bytes(const sdk::Host& host, uint64_t available) {
  const auto value = host.option("max_bytes");
  return value ? parse_max_bytes(*value) : static_cast<int64_t>(std::min(available, uint64_t{INT64_MAX}));
}

// Reads the option "reference", or if it is not set, the environment variable BACKPLANE_CPU_REFERENCE.
bool choose_reference(const sdk::Host& host) {
  const char* variable = secure_getenv("BACKPLANE_CPU_REFERENCE");
  const std::string_view value = host.option("reference").value_or(variable != nullptr ? variable : "0");
  if (value != "0" && value != "1")
    throw sdk::Error(BP_INVALID_ARGUMENT, "option cpu.reference or variable BACKPLANE_CPU_REFERENCE is '" +
                                              std::string(value) + "'; give 0 or 1");
  return value == "1";
}

std::optional<Choices> choose_implementations(const sdk::Host& host, const Operators& operators) {
  const auto wanted = host.option("implementation");
  if (!wanted) return std::nullopt;
  return Choices(*wanted, operators.implementations(), host);
}

static Instructions parse_instructions(std::string_view what, std::string_view value) {
  if (const auto found = instructions_named(value)) return *found;
  throw sdk::Error(BP_INVALID_ARGUMENT, std::string(what) + " is '" + std::string(value) +
                                            "'; give BASELINE, SSE41, AVX2, AVX2_VNNI, AVX512 or AVX512_AMX");
}

static void choose_instructions(const sdk::Host& host) {
  ProcessorLimits limits;
  if (const char* variable = secure_getenv("BACKPLANE_CPU_INSTRUCTIONS"); variable != nullptr && *variable != 0) {
    try {
      limits.most = parse_instructions("BACKPLANE_CPU_INSTRUCTIONS", variable);
    } catch (const sdk::Error& error) {
      host.log(BP_LOG_ERROR, error.text);  // logged because the error is lost if another backend runs the model
      throw;
    }
  }
  const auto option = host.option("instructions");
  if (option) limits.most = parse_instructions("option cpu.instructions", *option);
  const std::optional<bp_topology_t> topology = host.topology();
  if (topology && topology->core_count != 0) {
    limits.l1_bytes = static_cast<int64_t>(topology->cores->l1_bytes);
    limits.l2_bytes = static_cast<int64_t>(topology->cores->l2_bytes);
  }
  const Instructions used = processor(&limits).instructions;
  if (option && used > *limits.most) {
    throw sdk::Error(BP_INVALID_ARGUMENT, "option cpu.instructions is '" + std::string(*option) +
                                              "', but this process already uses " + name_of(used) +
                                              "; set the option for the first backend of the process");
  }
}

Machine read_machine(const sdk::Host& host) {
  choose_instructions(host);
  Machine machine;
  const Architecture set = architecture();
  machine.arch = set.name;
  machine.name = cpuinfo("model name");
  if (machine.name.empty()) machine.name = set.name;
  machine.vendor = cpuinfo("vendor_id");
  machine.cores = allowed_cores();
  double megahertz = 0;
  std::string clock = cpuinfo("cpu MHz");
  std::from_chars(clock.data(), clock.data() + clock.size(), megahertz);
  machine.flops_per_core = (megahertz > 0 ? megahertz : 2000) * 1e6 * set.flops_per_cycle;

  const std::optional<bp_topology_t> topology = host.topology();
  if (topology && topology->memory_bytes != 0) {
    machine.memory_bytes = topology->memory_bytes;
    machine.numa_nodes = topology->numa_count;
  } else {
    machine.memory_bytes =
        static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  }
  return machine;
}

PlanContext Device::plan_context(uint32_t compute_types) const {
  return {.threads = threads_.count(),
          .reference = reference_,
          .make_reorder = operators_.make_reorder(),
          .choices = choices_,
          .max_bytes = threads_.budget().limit(),
          .bf16 = processor().amx && !reference_ && (compute_types & BP_COMPUTE_BF16) != 0};
}

void Device::cover(sdk::Coverage& coverage) {
  cpu::cover(*this, coverage);
}

std::unique_ptr<sdk::Program> Device::compile(const sdk::Compile& what) {
  what.options().allow({});
  return std::make_unique<Island>(*this, what);
}

}  // namespace backplane::cpu
