// SPDX-License-Identifier: Apache-2.0
// NVIDIA's run-time compiler, opened when the first kernel is compiled.
#pragma once

#include <string>

namespace backplane::cuda {

// The compiler is looked up by name, then where CUDA's toolkit is installed.
// Compiles kernels with "-DNAME=VALUE" options to machine code for `arch` ("sm_90"). Throws sdk::Error with the
// compiler's log, or the reason why there is no compiler.
// `out_log` may be NULL.
std::string compile(const std::string& text, const std::string& options, const std::string& arch,
                    std::string* out_log = nullptr);

}  // namespace backplane::cuda
