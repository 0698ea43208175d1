// SPDX-License-Identifier: Apache-2.0
// NVIDIA's run-time compiler, loaded when the first kernel is compiled.
#pragma once

#include <string>

namespace backplane::cuda {

// Compiles kernels to machine code for `arch` ("sm_90"), with options such as "-DNAME=VALUE". Throws sdk::Error with
// the compiler's log, or with the reason why libnvrtc could not be loaded: it is searched for by name, then in
// /usr/local/cuda. On success, `out_log`, which may be NULL, receives the compiler's log.
std::string compile(const std::string& text, const std::string& options, const std::string& arch,
                    std::string* out_log = nullptr);

}  // namespace backplane::cuda
