// SPDX-License-Identifier: Apache-2.0
// Compares driver/cudnn.h with NVIDIA's header, of cuDNN 9.8 or later, at compile time. Compiled only where that header
// is found.
#include <cudnn_graph.h>

#include <type_traits>

#include "driver/cudnn.h"

#if defined(CUDNN_MAJOR) && CUDNN_MAJOR == 9 && CUDNN_MINOR >= 8
namespace backplane::cuda::dnn {
namespace {

// Some of the names are deprecated in cuDNN's latest versions, but earlier versions have no others.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define SAME(own, theirs) static_assert(static_cast<int>(own) == static_cast<int>(CUDNN_##theirs))
SAME(kSuccess, STATUS_SUCCESS);
SAME(kNotInitialized, STATUS_NOT_INITIALIZED);
SAME(kBadParameter, STATUS_BAD_PARAM);
SAME(kNotSupported, STATUS_NOT_SUPPORTED);
SAME(kInternalError, STATUS_INTERNAL_ERROR);
SAME(kHostAllocationFailed, STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
SAME(kDeviceAllocationFailed, STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
SAME(kExecutionFailed, STATUS_EXECUTION_FAILED);
SAME(kF32, DATA_FLOAT);
SAME(kF16, DATA_HALF);
SAME(kBf16, DATA_BFLOAT16);
SAME(kCrossCorrelation, CROSS_CORRELATION);
SAME(kAdd, POINTWISE_ADD);
SAME(kReluForward, POINTWISE_RELU_FWD);
SAME(kFallback, HEUR_MODE_FALLBACK);
SAME(kModel, HEUR_MODE_A);
SAME(kTensorCore, NUMERICAL_NOTE_TENSOR_CORE);
SAME(kConvertsInputsDown, NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
SAME(kReducesInLessPrecision, NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
SAME(kFft, NUMERICAL_NOTE_FFT);
SAME(kNondeterministic, NUMERICAL_NOTE_NONDETERMINISTIC);
SAME(kWinograd, NUMERICAL_NOTE_WINOGRAD);
SAME(kWinograd4x4, NUMERICAL_NOTE_WINOGRAD_TILE_4x4);
SAME(kWinograd6x6, NUMERICAL_NOTE_WINOGRAD_TILE_6x6);
SAME(kWinograd13x13, NUMERICAL_NOTE_WINOGRAD_TILE_13x13);
SAME(kPointwise, BACKEND_POINTWISE_DESCRIPTOR);
SAME(kConvolution, BACKEND_CONVOLUTION_DESCRIPTOR);
SAME(kEngine, BACKEND_ENGINE_DESCRIPTOR);
SAME(kEngineConfig, BACKEND_ENGINECFG_DESCRIPTOR);
SAME(kEngineHeuristic, BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(kPlan, BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(kConvolutionForward, BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
SAME(kPointwiseOperation, BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
SAME(kGraph, BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(kVariantPack, BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(kTensor, BACKEND_TENSOR_DESCRIPTOR);
SAME(kDeviceProperties, BACKEND_DEVICEPROP_DESCRIPTOR);
SAME(kPointwiseMode, ATTR_POINTWISE_MODE);
SAME(kPointwisePrecision, ATTR_POINTWISE_MATH_PREC);
SAME(kConvolutionPrecision, ATTR_CONVOLUTION_COMP_TYPE);
SAME(kConvolutionMode, ATTR_CONVOLUTION_CONV_MODE);
SAME(kConvolutionDilations, ATTR_CONVOLUTION_DILATIONS);
SAME(kConvolutionStrides, ATTR_CONVOLUTION_FILTER_STRIDES);
SAME(kConvolutionPaddingAfter, ATTR_CONVOLUTION_POST_PADDINGS);
SAME(kConvolutionPaddingBefore, ATTR_CONVOLUTION_PRE_PADDINGS);
SAME(kConvolutionSpatialDims, ATTR_CONVOLUTION_SPATIAL_DIMS);
SAME(kHeuristicMode, ATTR_ENGINEHEUR_MODE);
SAME(kHeuristicGraph, ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(kHeuristicResults, ATTR_ENGINEHEUR_RESULTS);
SAME(kHeuristicDevice, ATTR_ENGINEHEUR_DEVICEPROP);
SAME(kConfigEngine, ATTR_ENGINECFG_ENGINE);
SAME(kPlanHandle, ATTR_EXECUTION_PLAN_HANDLE);
SAME(kPlanConfig, ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(kPlanWorkspace, ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(kPlanDevice, ATTR_EXECUTION_PLAN_DEVICEPROP);
SAME(kForwardAlpha, ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
SAME(kForwardBeta, ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
SAME(kForwardConvolution, ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
SAME(kForwardW, ATTR_OPERATION_CONVOLUTION_FORWARD_W);
SAME(kForwardX, ATTR_OPERATION_CONVOLUTION_FORWARD_X);
SAME(kForwardY, ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
SAME(kOperationPointwise, ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
SAME(kOperationX, ATTR_OPERATION_POINTWISE_XDESC);
SAME(kOperationB, ATTR_OPERATION_POINTWISE_BDESC);
SAME(kOperationY, ATTR_OPERATION_POINTWISE_YDESC);
SAME(kGraphHandle, ATTR_OPERATIONGRAPH_HANDLE);
SAME(kGraphOperations, ATTR_OPERATIONGRAPH_OPS);
SAME(kTensorAlignment, ATTR_TENSOR_BYTE_ALIGNMENT);
SAME(kTensorType, ATTR_TENSOR_DATA_TYPE);
SAME(kTensorExtents, ATTR_TENSOR_DIMENSIONS);
SAME(kTensorStrides, ATTR_TENSOR_STRIDES);
SAME(kTensorId, ATTR_TENSOR_UNIQUE_ID);
SAME(kTensorIsVirtual, ATTR_TENSOR_IS_VIRTUAL);
SAME(kPackIds, ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(kPackPointers, ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(kPackWorkspace, ATTR_VARIANT_PACK_WORKSPACE);
SAME(kEngineNumericalNotes, ATTR_ENGINE_NUMERICAL_NOTE);
SAME(kDeviceJson, ATTR_DEVICEPROP_JSON_REPRESENTATION);
SAME(kTypeHandle, TYPE_HANDLE);
SAME(kTypeDataType, TYPE_DATA_TYPE);
SAME(kTypeBoolean, TYPE_BOOLEAN);
SAME(kTypeInt64, TYPE_INT64);
SAME(kTypeFloat, TYPE_FLOAT);
SAME(kTypePointer, TYPE_VOID_PTR);
SAME(kTypeConvolutionMode, TYPE_CONVOLUTION_MODE);
SAME(kTypeHeuristicMode, TYPE_HEUR_MODE);
SAME(kTypeNumericalNote, TYPE_NUMERICAL_NOTE);
SAME(kTypePointwiseMode, TYPE_POINTWISE_MODE);
SAME(kTypeDescriptor, TYPE_BACKEND_DESCRIPTOR);
SAME(kTypeChar, TYPE_CHAR);
#undef SAME
#pragma GCC diagnostic pop

// The types in driver/cudnn.h match NVIDIA's if they are passed alike: pointers, and integers and enumerations of equal
// size.
template <class Own, class Theirs>
constexpr bool kPassedAlike = std::is_void_v<Own>
                                  ? std::is_void_v<Theirs>
                                  : std::is_pointer_v<Own> == std::is_pointer_v<Theirs> &&
                                        sizeof(std::conditional_t<std::is_void_v<Own>, int, Own>) ==
                                            sizeof(std::conditional_t<std::is_void_v<Theirs>, int, Theirs>);
template <class Own, class Theirs>
struct Alike : std::false_type {};
template <class Own, class... Owns, class Theirs, class... Others>
requires(sizeof...(Owns) == sizeof...(Others)) struct Alike<Own(Owns...), Theirs(Others...)>
    : std::bool_constant<kPassedAlike<Own, Theirs> && (kPassedAlike<Owns, Others> && ...)> {
};

#define BACKPLANE_CUDNN_COMPARE(name, ...) static_assert(Alike<__VA_ARGS__, decltype(::cudnn##name)>::value, #name);
BACKPLANE_CUDNN_FUNCTIONS(BACKPLANE_CUDNN_COMPARE)
#undef BACKPLANE_CUDNN_COMPARE

}  // namespace
}  // namespace backplane::cuda::dnn
#endif
