// SPDX-License-Identifier: Apache-2.0
// The processor that kernels are chosen and tuned for: the one that the process runs on, or a less capable one if the
// option `instructions` or the environment sets a limit. Kernels use this and never query the processor themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace backplane::cpu {

// Each level includes those before it, with one exception: kAvx512 does not imply the 8-bit products of kAvx2Vnni (see
// Processor::vnni).
enum class Instructions {
  kBaseline,
  kSse41,      // enables blocked layouts
  kAvx2,       // with FMA; vectors of 8 floats, 16 registers
  kAvx2Vnni,   // also 8-bit integer products in 32-byte vectors
  kAvx512,     // F, BW, DQ and VL; vectors of 16 floats, 32 registers
  kAvx512Amx,  // also VNNI and AMX: products of 16×64 by 64×16 bytes, or half as many bf16 values, in one instruction
};

struct Processor {
  Instructions instructions = Instructions::kBaseline;
  bool vnni = false;  // whether AVX-512's products of 8-bit integers are available
  bool amx = false;   // whether AMX's products of int8 and of bf16 values are available (kernels/simd/amx.h)
  int64_t vector_bytes = 16;
  int64_t l1_bytes = 32 << 10;  // data cache of one core
  int64_t l2_bytes = 256 << 10;

  bool has(Instructions wanted) const { return instructions >= wanted; }
  int64_t vector_floats() const { return vector_bytes / 4; }
  // The number of fp32 multiply-adds that a core does in this time at a nominal two vectors per cycle and 4 GHz. Used
  // for the size of the chunks of parallel loops.
  int64_t multiply_adds(double microseconds) const {
    return static_cast<int64_t>(microseconds * 8000 * static_cast<double>(vector_floats()));
  }
};

const char* name_of(Instructions instructions);                         // spelled as in the option `instructions`
std::optional<Instructions> instructions_named(std::string_view name);  // ignores case; nullopt: unknown

// A limit for the instruction set that kernels may use, and the sizes of the caches.
struct ProcessorLimits {
  std::optional<Instructions> most;
  int64_t l1_bytes = 0, l2_bytes = 0;  // used instead of the sizes that the system reports, unless 0
};

// Returns the processor that all backends of the process use. Only the first call's limits apply: blocked tensors and
// packed weights have one layout per process, and oneDNN accepts a limit only before its first use. If `limits->most`
// is not set, BACKPLANE_CPU_INSTRUCTIONS in the environment sets the limit. ONEDNN_MAX_CPU_ISA limits it in any case.
const Processor& processor(const ProcessorLimits* limits = nullptr);

}  // namespace backplane::cpu
