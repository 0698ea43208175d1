// SPDX-License-Identifier: Apache-2.0
// The instruction sets that kernels may use: the processor's, up to the limit that oneDNN keeps as well (the
// environment's ONEDNN_MAX_CPU_ISA).
#pragma once

namespace backplane::cpu {

bool may_use_sse41();
bool may_use_avx2();
bool may_use_avx512();       // F, BW, DQ and VL
bool may_use_avx512_vnni();  // and its products of 8-bit integers

}  // namespace backplane::cpu
