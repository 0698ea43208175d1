// SPDX-License-Identifier: Apache-2.0
// Compares driver/cublaslt.h with NVIDIA's header at compile time. Compiled only where that header is found.
#include <cublasLt.h>

#include <type_traits>

#include "driver/cublaslt.h"

namespace backplane::cuda::lt {
namespace {

#define SAME(own, theirs) static_assert(static_cast<long>(own) == static_cast<long>(theirs))
SAME(kSuccess, CUBLAS_STATUS_SUCCESS);
SAME(kNotInitialized, CUBLAS_STATUS_NOT_INITIALIZED);
SAME(kAllocFailed, CUBLAS_STATUS_ALLOC_FAILED);
SAME(kInvalidValue, CUBLAS_STATUS_INVALID_VALUE);
SAME(kExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED);
SAME(kNotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
SAME(kF32, CUDA_R_32F);
SAME(kF64, CUDA_R_64F);
SAME(kF16, CUDA_R_16F);
SAME(kBf16, CUDA_R_16BF);
SAME(kCompute32F, CUBLAS_COMPUTE_32F);
SAME(kCompute64F, CUBLAS_COMPUTE_64F);
SAME(kCompute32FFastTf32, CUBLAS_COMPUTE_32F_FAST_TF32);
SAME(kPlain, CUBLAS_OP_N);
SAME(kTransposed, CUBLAS_OP_T);
SAME(kTransA, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(kTransB, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(kEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE);
SAME(kBiasPointer, CUBLASLT_MATMUL_DESC_BIAS_POINTER);
SAME(kNoEpilogue, CUBLASLT_EPILOGUE_DEFAULT);
SAME(kRelu, CUBLASLT_EPILOGUE_RELU);
SAME(kBias, CUBLASLT_EPILOGUE_BIAS);
SAME(kRelu | kBias, CUBLASLT_EPILOGUE_RELU_BIAS);
SAME(kGelu, CUBLASLT_EPILOGUE_GELU);
SAME(kGelu | kBias, CUBLASLT_EPILOGUE_GELU_BIAS);
SAME(kBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(kBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(kMaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(kReductionMask, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK);
SAME(kMinAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(kMinAlignmentA + 1, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
SAME(kMinAlignmentA + 2, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
SAME(kMinAlignmentA + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(kReduceInComputeType, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
SAME(kReduceInAnyType, CUBLASLT_REDUCTION_SCHEME_MASK);
SAME(sizeof(Algorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(Heuristic), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(Heuristic, algorithm), offsetof(cublasLtMatmulHeuristicResult_t, algo));
SAME(offsetof(Heuristic, workspace_bytes), offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(Heuristic, status), offsetof(cublasLtMatmulHeuristicResult_t, state));
#undef SAME

// The types in driver/cublaslt.h match NVIDIA's if they are passed alike: pointers, and integers and enumerations of
// equal size.
template <class Own, class Theirs>
constexpr bool kPassedAlike = sizeof(Own) == sizeof(Theirs) && std::is_pointer_v<Own> == std::is_pointer_v<Theirs>;
template <class Own, class Theirs>
struct Alike : std::false_type {};
template <class Own, class... Owns, class Theirs, class... Others>
requires(sizeof...(Owns) == sizeof...(Others)) struct Alike<Own(Owns...), Theirs(Others...)>
    : std::bool_constant<kPassedAlike<Own, Theirs> && (kPassedAlike<Owns, Others> && ...)> {
};

#define BACKPLANE_CUBLASLT_COMPARE(name, ...) \
  static_assert(Alike<__VA_ARGS__, decltype(::cublasLt##name)>::value, #name);
BACKPLANE_CUBLASLT_FUNCTIONS(BACKPLANE_CUBLASLT_COMPARE)
#undef BACKPLANE_CUBLASLT_COMPARE

}  // namespace
}  // namespace backplane::cuda::lt
