// SPDX-License-Identifier: Apache-2.0
// What tests ask of the stand-in for libcuda.so.1 in addition to CUDA's own functions.
#pragma once

#include <cuda.h>

#include <cstdint>

extern "C" {
// How many of a kind exist: "contexts", "modules", "memory", "pinned", "registered", "streams", "events".
__attribute__((visibility("default"))) int64_t standin_objects(const char* kind);
// How often a function was called: "cuLaunchKernel".
__attribute__((visibility("default"))) uint64_t standin_calls(const char* function);
// Calls of the function return `status`, after the first `skips`. NULL: all calls work.
__attribute__((visibility("default"))) void standin_fail(const char* function, CUresult status, uint64_t skips);
}
