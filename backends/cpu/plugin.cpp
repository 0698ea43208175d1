// SPDX-License-Identifier: Apache-2.0
// The CPU backend: presents the processor that this process runs on as one device.
#include "backplane/sdk/plugin.hpp"

#include "runtime/coverage.h"
#include "runtime/instance.h"
#include "table.h"

namespace backplane::cpu {

class Backend final : public sdk::Backend {
 public:
  static constexpr sdk::About kAbout{"cpu", "CPU (oneDNN, oneTBB)", "Backplane", "0.1.0", "cpu-0.1.0"};
  static constexpr auto& kOpsets = kNewestOpsets;
  static constexpr std::string_view kOptions[] = {"threads",   "threads_policy", "max_bytes",
                                                  "reference", "implementation", "instructions"};
  using Device = cpu::Device;
  using Program = Island;
  using Instance = cpu::Instance;

  explicit Backend(const bp_backend_create_t& how)
      : sdk::Backend(how),
        machine_(read_machine(host())),
        threads_(choose_threads(host(), machine_.cores)),
        threads_policy_(choose_threads_policy(host())),
        max_bytes_(choose_max_bytes(host(), machine_.memory_bytes)),
        reference_(choose_reference(host())),
        choices_(choose_implementations(host(), operators())) {}

  uint32_t device_count(std::string&) override { return 1; }

  bp_device_info_t device_info(uint32_t) override {
    bp_device_info_t info{};
    info.kind = BP_DEVICE_CPU;
    info.flags = BP_DEVICE_SYNCHRONOUS | BP_DEVICE_UNIFIED_MEMORY;
    info.name = sdk::text(machine_.name);
    info.vendor = sdk::text(machine_.vendor);
    info.driver = sdk::text("1");
    info.arch = sdk::text(machine_.arch);
    info.memory_bytes = machine_.memory_bytes;
    info.launch_ns = 500;
    info.flops_fp32 = machine_.flops_per_core * std::min(threads_, machine_.cores);
    info.dtypes = supported_dtypes();
    info.space_count = 1;
    return info;
  }

  std::unique_ptr<sdk::Device> open(uint32_t, const sdk::Options& options, const bp_device_open_t&) override {
    options.allow({"threads", "threads_policy", "max_bytes"});
    const auto threads = options.get("threads"), policy = options.get("threads_policy"),
               max_bytes = options.get("max_bytes");
    return std::make_unique<Device>(*this, machine_, operators(), choices_ ? &*choices_ : nullptr,
                                    threads ? parse_threads(*threads) : threads_,
                                    policy ? parse_threads_policy(*policy) : threads_policy_,
                                    max_bytes ? parse_max_bytes(*max_bytes) : max_bytes_, reference_);
  }

 private:
  Machine machine_;
  int threads_;
  ThreadsPolicy threads_policy_;
  int64_t max_bytes_;
  bool reference_;
  std::optional<Choices> choices_;
};

}  // namespace backplane::cpu

BACKPLANE_PLUGIN(backplane::cpu::Backend)
