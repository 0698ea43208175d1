// SPDX-License-Identifier: Apache-2.0
#include "runtime/processor.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>

namespace backplane::cpu {

namespace {

constexpr const char* kNames[] = {"BASELINE", "SSE41", "AVX2", "AVX2_VNNI", "AVX512", "AVX512_AMX"};

// Limits oneDNN to the instruction set `most`, unless oneDNN's own environment variable is set.
void limit_onednn(Instructions most) {
  if (std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr || std::getenv("DNNL_MAX_CPU_ISA") != nullptr) return;
  if (most <= Instructions::kSse41) dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
  if (most == Instructions::kAvx2) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  if (most == Instructions::kAvx2Vnni) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2_vnni);
#if DNNL_VERSION_MAJOR >= 3
  if (most == Instructions::kAvx512) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_fp16);
#else
  if (most == Instructions::kAvx512) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16);
#endif
}

bool onednn_has(dnnl::cpu_isa wanted) {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
}

#if defined(__x86_64__)
// Requests AMX's registers, which Linux grants per process, because they enlarge the frames of its signal handlers.
bool permits_amx() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
#endif

// Returns the processor's instruction set, up to oneDNN's limit.
Instructions present() {
#if defined(__x86_64__)
  const bool has_fma = __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (onednn_has(dnnl::cpu_isa::avx512_core_amx) && has_fma && permits_amx()) return Instructions::kAvx512Amx;
  if (onednn_has(dnnl::cpu_isa::avx512_core) && has_fma) return Instructions::kAvx512;
  if (onednn_has(dnnl::cpu_isa::avx2_vnni) && has_fma) return Instructions::kAvx2Vnni;
  if (onednn_has(dnnl::cpu_isa::avx2) && has_fma) return Instructions::kAvx2;
#endif
  return onednn_has(dnnl::cpu_isa::sse41) ? Instructions::kSse41 : Instructions::kBaseline;
}

// Returns the size in bytes of the L2 (`second`) or L1 data cache that sysconf reports, 0 if unknown.
int64_t system_cache([[maybe_unused]] bool second) {
#ifdef _SC_LEVEL2_CACHE_SIZE
  return std::max<int64_t>(0, sysconf(second ? _SC_LEVEL2_CACHE_SIZE : _SC_LEVEL1_DCACHE_SIZE));
#else
  return 0;
#endif
}

// Second-level caches count as at most this, because virtual machines may report larger ones than they have.
constexpr int64_t kLargestL2 = 2 << 20;

int64_t first_known(int64_t stated, int64_t found, int64_t fallback) {
  return stated > 0 ? stated : found > 0 ? found : fallback;
}

Processor describe(const ProcessorLimits& limits) {
  Instructions most = Instructions::kAvx512Amx;
  const char* variable = secure_getenv("BACKPLANE_CPU_INSTRUCTIONS");
  if (limits.most)
    most = *limits.most;
  else if (variable != nullptr)  // the backend has validated its value
    most = instructions_named(variable).value_or(most);
  limit_onednn(most);
  Processor result;
  result.instructions = std::min(most, present());
  if (result.instructions == Instructions::kAvx2Vnni && !onednn_has(dnnl::cpu_isa::avx2_vnni))
    result.instructions = Instructions::kAvx2;
  result.vnni = result.has(Instructions::kAvx512) && onednn_has(dnnl::cpu_isa::avx512_core_vnni);
  result.amx = result.has(Instructions::kAvx512Amx);
  result.vector_bytes = result.has(Instructions::kAvx512) ? 64 : result.has(Instructions::kAvx2) ? 32 : 16;
  result.l1_bytes = first_known(limits.l1_bytes, system_cache(false), result.l1_bytes);
  result.l2_bytes = std::min(kLargestL2, first_known(limits.l2_bytes, system_cache(true), result.l2_bytes));
  return result;
}

}  // namespace

const char* name_of(Instructions instructions) {
  return kNames[static_cast<int>(instructions)];
}

std::optional<Instructions> instructions_named(std::string_view name) {
  const auto same = [&](std::string_view known) {
    return std::ranges::equal(known, name, {}, {}, [](char c) { return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c; });
  };
  const auto* found = std::ranges::find_if(kNames, same);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Instructions>(found - std::begin(kNames));
}

const Processor& processor(const ProcessorLimits* limits) {
  static const Processor kProcessor = describe(limits != nullptr ? *limits : ProcessorLimits{});
  return kProcessor;
}

}  // namespace backplane::cpu
