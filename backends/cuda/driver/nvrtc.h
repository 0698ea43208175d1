// SPDX-License-Identifier: Apache-2.0
// NVIDIA's run-time compiler, loaded when the first kernel is compiled.
#pragma once

#include <string>

namespace backplane::cuda {

// Compiles kernels with options such as "-DNAME=VALUE" to machine code for `arch` ("sm_90"). Throws sdk::Error with
// the compiler's log, or with the reason why there is no compiler: libnvrtc is looked up by name, then in
// /usr/local/cuda.
// `out_log` may be NULL.
std::string compile(const std::string& text, const std::string& options, const std::string& arch,
                    std::string* out_log = nullptr);

}  // namespace backplane::cuda
