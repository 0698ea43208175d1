// SPDX-License-Identifier: Apache-2.0
// The part of cuDNN 9's graph API that the backend uses, loaded at run time. It is declared here because NVIDIA ships
// the headers only with the library (docs/decisions/0018-own-declarations-of-cudnn.md). testing/cudnn_check.cpp
// compares the declarations with the headers where they are found.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace backplane::cuda::dnn {

using Handle = void*;
using RawDescriptor = void*;
using Status = int;  // cudnnStatus_t: a category (a multiple of 1000) plus a detail

enum : Status {
  kSuccess = 0,
  kNotInitialized = 1001,
  kBadParameter = 2000,
  kNotSupported = 3000,
  kInternalError = 4000,
  kHostAllocationFailed = 4003,
  kDeviceAllocationFailed = 4004,
  kExecutionFailed = 5000,
};

enum DataType : int { kF32 = 0, kF16 = 2, kBf16 = 9 };
enum ConvolutionMode : int { kCrossCorrelation = 1 };
enum PointwiseMode : int { kAdd = 0, kReluForward = 100 };
// How the library lists engines: kModel, best first by a model of their speed; kFallback, for when kModel lists none.
enum HeuristicMode : int { kFallback = 2, kModel = 3 };
enum NumericalNote : int {
  kTensorCore = 0,  // for fp32 data, this means TF32
  kConvertsInputsDown = 1,
  kReducesInLessPrecision = 2,
  kFft = 3,
  kNondeterministic = 4,
  kWinograd = 5,  // the size of the tiles is one of the next three notes
  kWinograd4x4 = 6,
  kWinograd6x6 = 7,
  kWinograd13x13 = 8,
};

enum DescriptorType : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kEngineHeuristic = 4,
  kPlan = 5,
  kConvolutionForward = 10,
  kPointwiseOperation = 13,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kDeviceProperties = 38,  // since 9.8
};

enum Attribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kConvolutionPrecision = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPaddingAfter = 104,
  kConvolutionPaddingBefore = 105,
  kConvolutionSpatialDims = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kHeuristicDevice = 204,
  kConfigEngine = 300,
  kPlanHandle = 400,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kPlanDevice = 407,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kOperationPointwise = 750,
  kOperationX = 751,
  kOperationB = 752,
  kOperationY = 753,
  kGraphHandle = 800,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorExtents = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNumericalNotes = 1303,
  kDeviceJson = 2702,
};

// The types of attributes' elements. The comments name the C++ types where they are not obvious.
enum AttributeType : int {
  kTypeHandle = 0,
  kTypeDataType = 1,
  kTypeBoolean = 2,  // bool
  kTypeInt64 = 3,
  kTypeFloat = 4,
  kTypePointer = 6,
  kTypeConvolutionMode = 7,
  kTypeHeuristicMode = 8,
  kTypeNumericalNote = 11,
  kTypePointwiseMode = 14,
  kTypeDescriptor = 15,  // RawDescriptor
  kTypeChar = 24,
};

// The functions that the backend calls, with the library's prefix "cudnn".
#define BACKPLANE_CUDNN_FUNCTIONS(X)                                                                               \
  X(GetVersion, size_t())                                                                                          \
  X(GetErrorString, const char*(Status))                                                                           \
  X(GetLastErrorString, void(char*, size_t))                                                                       \
  X(Create, Status(Handle*))                                                                                       \
  X(Destroy, Status(Handle))                                                                                       \
  X(SetStream, Status(Handle, CUstream))                                                                           \
  X(BackendCreateDescriptor, Status(DescriptorType, RawDescriptor*))                                               \
  X(BackendDestroyDescriptor, Status(RawDescriptor))                                                               \
  X(BackendSetAttribute, Status(RawDescriptor, Attribute, AttributeType, int64_t count, const void*))              \
  X(BackendGetAttribute, Status(RawDescriptor, Attribute, AttributeType, int64_t capacity, int64_t* count, void*)) \
  X(BackendFinalize, Status(RawDescriptor))                                                                        \
  X(BackendExecute, Status(Handle, RawDescriptor plan, RawDescriptor pack))

template <class Signature>
using Pointer = Signature*;

// NOLINTBEGIN(readability-identifier-naming): members have the names of the library's functions
struct Functions {
#define BACKPLANE_CUDNN_MEMBER(name, ...) Pointer<__VA_ARGS__> name;
  BACKPLANE_CUDNN_FUNCTIONS(BACKPLANE_CUDNN_MEMBER)
#undef BACKPLANE_CUDNN_MEMBER
};
// NOLINTEND(readability-identifier-naming)

// The library's functions, loaded by the first call and never unloaded. Throws BP_UNSUPPORTED with the reason if the
// library cannot be loaded: it is searched for by name, then in /usr/local/cuda.
const Functions& functions();

// Throws sdk::Error when `status` is not kSuccess. `what` names the object or action.
void check(Status status, std::string_view what);

}  // namespace backplane::cuda::dnn
