// SPDX-License-Identifier: Apache-2.0
// Functions of the stand-in for libcuda.so.1 that tests use in addition to CUDA's own.
#pragma once

#include <cuda.h>

#include <cstdint>

extern "C" {
// The number of existing objects of a kind: "contexts", "modules", "memory", "pinned", "registered", "streams",
// "events", "graphs", "executable graphs"; of the stand-in for cuBLASLt: "cublaslt", "operations", "layouts",
// "preferences"; of that for cuDNN: "cudnn", "descriptors".
__attribute__((visibility("default"))) int64_t standin_objects(const char* kind);
// The number of calls of a function, such as "cuLaunchKernel". Also counts products by the number of the algorithm
// ("algorithm 1"), convolutions by the number of the engine ("engine 3"), reads for which the driver would wait
// ("read into pageable memory"), and calls of cuEventDestroy that leave the result of a wait undefined ("destruction of
// an event that is waited for"). Commands that the launch of a graph executes are not counted.
__attribute__((visibility("default"))) uint64_t standin_calls(const char* function);
// After `skips` more successful calls, every call of `function` returns `status`; for functions of cuBLASLt, a
// cublasStatus_t, and for those of cuDNN, a cudnnStatus_t. If `function` is NULL, no call fails any more.
__attribute__((visibility("default"))) void standin_fail(const char* function, int status, uint64_t skips);
// While `fails` is true, a command that is captured makes its capture invalid.
__attribute__((visibility("default"))) void standin_fail_in_capture(bool fails);
}
