// SPDX-License-Identifier: Apache-2.0
// The part of cuBLASLt's interface that the backend uses, loaded at run time. It is declared here because NVIDIA ships
// the header only with the library, which takes 500 MB. testing/cublaslt_check.cpp compares the declarations with the
// header where that is found.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace backplane::cuda::lt {

using Handle = void*;
using Operation = void*;   // cublasLtMatmulDesc_t
using Layout = void*;      // cublasLtMatrixLayout_t, column-major
using Preference = void*;  // cublasLtMatmulPreference_t
using Status = int;        // cublasStatus_t

enum : Status {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kExecutionFailed = 13,
  kNotSupported = 15
};
enum DataType : int { kF32 = 0, kF64 = 1, kF16 = 2, kBf16 = 14 };
enum ComputeType : int { kCompute32F = 68, kCompute64F = 70, kCompute32FFastTf32 = 77 };
enum Transposition : int { kPlain = 0, kTransposed = 1 };
// Attributes of a matmul descriptor: int32_t, int32_t, uint32_t, and a device pointer. Of the values of kEpilogue,
// kBias may be combined with kRelu or kGelu; no other combination is valid.
enum OperationAttribute : int { kTransA = 3, kTransB = 4, kEpilogue = 7, kBiasPointer = 8 };
enum Epilogue : uint32_t { kNoEpilogue = 1, kRelu = 2, kBias = 4, kGelu = 32 };
enum LayoutAttribute : int { kBatchCount = 5, kBatchStride = 6 };  // int32_t; int64_t, in elements
enum PreferenceAttribute : int {
  kMaxWorkspace = 1,   // uint64_t
  kReductionMask = 3,  // uint32_t
  kMinAlignmentA = 5,  // uint32_t, in bytes; the next three are those of B, C and D
};
enum ReductionMask : uint32_t { kReduceInComputeType = 2, kReduceInAnyType = 7 };

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  Status status;
  float waves;
  int reserved[4];
};

// The functions that the backend calls, with the library's prefix "cublasLt".
#define BACKPLANE_CUBLASLT_FUNCTIONS(X)                                                                              \
  X(GetVersion, size_t())                                                                                            \
  X(GetStatusName, const char*(Status))                                                                              \
  X(Create, Status(Handle*))                                                                                         \
  X(Destroy, Status(Handle))                                                                                         \
  X(MatmulDescCreate, Status(Operation*, ComputeType, DataType scale))                                               \
  X(MatmulDescDestroy, Status(Operation))                                                                            \
  X(MatmulDescSetAttribute, Status(Operation, OperationAttribute, const void*, size_t))                              \
  X(MatrixLayoutCreate, Status(Layout*, DataType, uint64_t rows, uint64_t columns, int64_t leading))                 \
  X(MatrixLayoutDestroy, Status(Layout))                                                                             \
  X(MatrixLayoutSetAttribute, Status(Layout, LayoutAttribute, const void*, size_t))                                  \
  X(MatmulPreferenceCreate, Status(Preference*))                                                                     \
  X(MatmulPreferenceDestroy, Status(Preference))                                                                     \
  X(MatmulPreferenceSetAttribute, Status(Preference, PreferenceAttribute, const void*, size_t))                      \
  X(MatmulAlgoGetHeuristic,                                                                                          \
    Status(Handle, Operation, Layout a, Layout b, Layout c, Layout d, Preference, int most, Heuristic*, int* count)) \
  X(Matmul, Status(Handle, Operation, const void* alpha, const void* a, Layout, const void* b, Layout,               \
                   const void* beta, const void* c, Layout, void* d, Layout, const Algorithm*, void* workspace,      \
                   size_t workspace_bytes, CUstream))

template <class Signature>
using Pointer = Signature*;

// NOLINTBEGIN(readability-identifier-naming): members have the names of the library's functions
struct Functions {
#define BACKPLANE_CUBLASLT_MEMBER(name, ...) Pointer<__VA_ARGS__> name;
  BACKPLANE_CUBLASLT_FUNCTIONS(BACKPLANE_CUBLASLT_MEMBER)
#undef BACKPLANE_CUBLASLT_MEMBER
};
// NOLINTEND(readability-identifier-naming)

// The library's functions, loaded by the first call and never unloaded. Throws BP_UNSUPPORTED with the reason if the
// library cannot be loaded: it is searched for by name, then in /usr/local/cuda.
const Functions& functions();

// Throws sdk::Error when `status` is not kSuccess. `what` names the object or action.
void check(Status status, std::string_view what);

}  // namespace backplane::cuda::lt
