// SPDX-License-Identifier: Apache-2.0
// The processor that kernels are chosen and tuned for: the one that the process runs on, or a lesser one if the option
// `instructions` says so. Everything that depends on the processor is derived from this; no kernel queries the
// processor itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace backplane::cpu {

// Each includes those before it, except that AVX-512 does not include the products of kAvx2Vnni: see Processor::vnni.
enum class Instructions {
  kBaseline,
  kSse41,     // blocked layouts
  kAvx2,      // with FMA: vectors of 8 floats, 16 registers
  kAvx2Vnni,  // and products of 8-bit integers, in vectors of 32 bytes
  kAvx512,    // F, BW, DQ and VL: vectors of 16 floats, 32 registers
};

struct Processor {
  Instructions instructions = Instructions::kBaseline;
  bool vnni = false;  // has AVX-512's products of 8-bit integers
  int64_t vector_bytes = 16;
  int64_t l1_bytes = 32 << 10;  // one core's data cache
  int64_t l2_bytes = 256 << 10;

  bool has(Instructions wanted) const { return instructions >= wanted; }
  int64_t vector_floats() const { return vector_bytes / 4; }
  // fp32 multiply-adds that a core does in this time at a nominal two vectors a cycle and 4 GHz. Sizes the chunks of
  // parallel loops.
  int64_t multiply_adds(double microseconds) const {
    return static_cast<int64_t>(microseconds * 8000 * static_cast<double>(vector_floats()));
  }
};

const char* name_of(Instructions instructions);                         // as the option names them
std::optional<Instructions> instructions_named(std::string_view name);  // case-insensitive; nullopt: unknown

// Limits for the processor that kernels see.
struct ProcessorLimits {
  std::optional<Instructions> most;
  int64_t l1_bytes = 0, l2_bytes = 0;  // 0: as detected
};

// The processor, for all backends of the process. Only the first call's limits count: blocked tensors and packed
// weights have one layout per process, and oneDNN accepts a limit only before its first use. If `limits->most` is not
// set, the environment variable BACKPLANE_CPU_INSTRUCTIONS applies; oneDNN's own, ONEDNN_MAX_CPU_ISA, always does.
const Processor& processor(const ProcessorLimits* limits = nullptr);

}  // namespace backplane::cpu
