// SPDX-License-Identifier: Apache-2.0
#include "runtime/isa.h"

#include <oneapi/dnnl/dnnl.hpp>

namespace backplane::cpu {

namespace {

bool may_use(dnnl::cpu_isa wanted) {
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
}

}  // namespace

bool may_use_sse41() {
  static const bool kMay = may_use(dnnl::cpu_isa::sse41);
  return kMay;
}

bool may_use_avx2() {
  static const bool kMay = may_use(dnnl::cpu_isa::avx2);
  return kMay;
}

bool may_use_avx512() {
  static const bool kMay = may_use(dnnl::cpu_isa::avx512_core);
  return kMay;
}

bool may_use_avx512_vnni() {
  static const bool kMay = may_use(dnnl::cpu_isa::avx512_core_vnni);
  return kMay;
}

}  // namespace backplane::cpu
