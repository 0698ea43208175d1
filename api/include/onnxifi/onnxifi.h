/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of ONNXIFI 1.0 as libonnxifi.so implements it: Backplane's own declaration of the functions, structs
 * and numbers that ONNX 1.3 to 1.12 published as onnx/onnxifi.h and onnx/onnxifi_ext.h. Programs compiled with either
 * header work with this library. New programs use backplane/loader.h. docs/reference/onnxifi.md describes what each
 * function does on Backplane.
 */
#ifndef BACKPLANE_ONNXIFI_H
#define BACKPLANE_ONNXIFI_H

#include <stddef.h>
#include <stdint.h>

/* NOLINTBEGIN(readability-identifier-naming): the names are ONNXIFI's. */

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ONNXIFI_EXPORT
#define ONNXIFI_EXPORT __attribute__((visibility("default")))
#endif

typedef void* onnxBackendID; /* a device; valid until the process ends */
typedef void* onnxBackend;   /* a device in use */
typedef void* onnxGraph;     /* a model compiled for a backend */
typedef void* onnxEvent;     /* an event that happens once */
typedef int32_t onnxStatus;
typedef uint64_t onnxEnum;     /* the low 32 bits are ONNXIFI's, the high 32 bits vendors' */
typedef uint64_t onnxBitfield; /* likewise */
typedef uint64_t onnxPointer;  /* an address, or a driver's handle */

/* Two statuses for success, then errors by category. */
#define ONNXIFI_STATUS_SUCCESS 0x0000
#define ONNXIFI_STATUS_FALLBACK 0x0001
#define ONNXIFI_STATUS_INVALID_ID 0x0101
#define ONNXIFI_STATUS_INVALID_SIZE 0x0102
#define ONNXIFI_STATUS_INVALID_POINTER 0x0103
#define ONNXIFI_STATUS_INVALID_PROTOBUF 0x0104
#define ONNXIFI_STATUS_INVALID_MODEL 0x0105
#define ONNXIFI_STATUS_INVALID_BACKEND 0x0106
#define ONNXIFI_STATUS_INVALID_GRAPH 0x0107
#define ONNXIFI_STATUS_INVALID_EVENT 0x0108
#define ONNXIFI_STATUS_INVALID_STATE 0x0109
#define ONNXIFI_STATUS_INVALID_NAME 0x010A
#define ONNXIFI_STATUS_INVALID_SHAPE 0x010B
#define ONNXIFI_STATUS_INVALID_DATATYPE 0x010C
#define ONNXIFI_STATUS_INVALID_MEMORY_TYPE 0x010D
#define ONNXIFI_STATUS_INVALID_MEMORY_LOCATION 0x010E
#define ONNXIFI_STATUS_INVALID_FENCE_TYPE 0x010F
#define ONNXIFI_STATUS_INVALID_PROPERTY 0x0110
#define ONNXIFI_STATUS_UNSUPPORTED_TAG 0x0201
#define ONNXIFI_STATUS_UNSUPPORTED_VERSION 0x0202
#define ONNXIFI_STATUS_UNSUPPORTED_OPERATOR 0x0203
#define ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE 0x0204
#define ONNXIFI_STATUS_UNSUPPORTED_SHAPE 0x0205
#define ONNXIFI_STATUS_UNSUPPORTED_DATATYPE 0x0206
#define ONNXIFI_STATUS_UNSUPPORTED_MEMORY_TYPE 0x0207
#define ONNXIFI_STATUS_UNSUPPORTED_FENCE_TYPE 0x0208
#define ONNXIFI_STATUS_UNSUPPORTED_PROPERTY 0x0209
#define ONNXIFI_STATUS_UNIDENTIFIED_NAME 0x0301
#define ONNXIFI_STATUS_MISMATCHING_SHAPE 0x0302
#define ONNXIFI_STATUS_MISMATCHING_DATATYPE 0x0303
#define ONNXIFI_STATUS_NO_SYSTEM_MEMORY 0x0401
#define ONNXIFI_STATUS_NO_DEVICE_MEMORY 0x0402
#define ONNXIFI_STATUS_NO_SYSTEM_RESOURCES 0x0403
#define ONNXIFI_STATUS_NO_DEVICE_RESOURCES 0x0404
#define ONNXIFI_STATUS_BACKEND_UNAVAILABLE 0x0405
#define ONNXIFI_STATUS_INTERNAL_ERROR 0x0406

typedef int32_t onnxEventState;
#define ONNXIFI_EVENT_STATE_INVALID 0
#define ONNXIFI_EVENT_STATE_NONSIGNALLED 0x16BD
#define ONNXIFI_EVENT_STATE_SIGNALLED 0x3395

#define ONNXIFI_DEVICE_TYPE_NPU 0x01
#define ONNXIFI_DEVICE_TYPE_DSP 0x02
#define ONNXIFI_DEVICE_TYPE_GPU 0x04
#define ONNXIFI_DEVICE_TYPE_CPU 0x08
#define ONNXIFI_DEVICE_TYPE_FPGA 0x10
#define ONNXIFI_DEVICE_TYPE_HETEROGENEOUS 0x20

#define ONNXIFI_CAPABILITY_THREAD_SAFE 0x01
#define ONNXIFI_CAPABILITY_SYMBOLIC_BATCH_SIZE 0x02
#define ONNXIFI_CAPABILITY_SYMBOLIC_SIZE_TENSORS 0x04
#define ONNXIFI_CAPABILITY_VARIABLE_BATCH_SIZE 0x08
#define ONNXIFI_CAPABILITY_VARIABLE_SIZE_OUTPUTS 0x10
#define ONNXIFI_CAPABILITY_HOT_PLUGGABLE 0x20

/* The values of `infoType` of onnxGetBackendInfo, each with the type of the value that the function returns. */
typedef int32_t onnxBackendInfo;
#define ONNXIFI_BACKEND_ONNXIFI_VERSION 0 /* uint64_t */
#define ONNXIFI_BACKEND_NAME 1            /* text: bytes without a zero at the end */
#define ONNXIFI_BACKEND_VENDOR 2          /* text */
#define ONNXIFI_BACKEND_VERSION 3         /* text */
#define ONNXIFI_BACKEND_EXTENSIONS 4      /* text */
#define ONNXIFI_BACKEND_DEVICE 5          /* text */
#define ONNXIFI_BACKEND_DEVICE_TYPE 6     /* onnxEnum */
#define ONNXIFI_BACKEND_ONNX_IR_VERSION 7 /* text: "3 4 5" */
#define ONNXIFI_BACKEND_OPSET_VERSION 8   /* text: "ai.onnx:7 org.example:1" */
#define ONNXIFI_BACKEND_CAPABILITIES 10   /* onnxBitfield, as for the next four */
#define ONNXIFI_BACKEND_INIT_PROPERTIES 11
#define ONNXIFI_BACKEND_MEMORY_TYPES 12
#define ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES 13
#define ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES 14
#define ONNXIFI_BACKEND_MEMORY_SIZE 20 /* uint64_t, as for all below except the two of OpenCL */
#define ONNXIFI_BACKEND_MAX_GRAPH_SIZE 21
#define ONNXIFI_BACKEND_MAX_GRAPH_COUNT 22
#define ONNXIFI_BACKEND_MACS_FP32 30
#define ONNXIFI_BACKEND_MACS_FP16 31
#define ONNXIFI_BACKEND_MEMORY_BANDWIDTH 35
#define ONNXIFI_BACKEND_CPU_MEMORY_READ_BANDWIDTH 36
#define ONNXIFI_BACKEND_CPU_MEMORY_WRITE_BANDWIDTH 37
#define ONNXIFI_BACKEND_PCI_BUS_ID 40
#define ONNXIFI_BACKEND_PCI_DEVICE_ID 41
#define ONNXIFI_BACKEND_PCI_DOMAIN_ID 42
#define ONNXIFI_BACKEND_DIRECTX_ID 43
#define ONNXIFI_BACKEND_CUDA_INDEX 44
#define ONNXIFI_BACKEND_OPENCL_PLATFORM_ID 45 /* cl_platform_id */
#define ONNXIFI_BACKEND_OPENCL_DEVICE_ID 46   /* cl_device_id */

/* Numbered as ONNX's TensorProto.DataType. */
#define ONNXIFI_DATATYPE_UNDEFINED 0
#define ONNXIFI_DATATYPE_FLOAT32 1
#define ONNXIFI_DATATYPE_UINT8 2
#define ONNXIFI_DATATYPE_INT8 3
#define ONNXIFI_DATATYPE_UINT16 4
#define ONNXIFI_DATATYPE_INT16 5
#define ONNXIFI_DATATYPE_INT32 6
#define ONNXIFI_DATATYPE_INT64 7
#define ONNXIFI_DATATYPE_FLOAT16 10
#define ONNXIFI_DATATYPE_FLOAT64 11
#define ONNXIFI_DATATYPE_UINT32 12
#define ONNXIFI_DATATYPE_UINT64 13
#define ONNXIFI_DATATYPE_COMPLEX64 14
#define ONNXIFI_DATATYPE_COMPLEX128 15
#define ONNXIFI_DATATYPE_BFLOAT16 16

#define ONNXIFI_MEMORY_TYPE_CPU 0
#define ONNXIFI_MEMORY_TYPE_CUDA_BUFFER 1
#define ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER 2
#define ONNXIFI_MEMORY_TYPE_OPENGLES_TEXTURE_2D 4
#define ONNXIFI_MEMORY_TYPE_D3D_RESOURCE 8

/* A list of properties consists of pairs of a property and its value. A property of 0 ends the list. */
#define ONNXIFI_BACKEND_PROPERTY_NONE 0
#define ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION 1 /* ONNXIFI_OPTIMIZATION_* */
#define ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL 2    /* ONNXIFI_LOG_LEVEL_* */
#define ONNXIFI_BACKEND_CUDA_STREAM 4           /* CUstream */
#define ONNXIFI_BACKEND_OPENCL_CONTEXT 8        /* cl_context */
#define ONNXIFI_GRAPH_PROPERTY_NONE 0

#define ONNXIFI_OPTIMIZATION_HIGH_THROUGHPUT 0
#define ONNXIFI_OPTIMIZATION_LOW_LATENCY 1
#define ONNXIFI_OPTIMIZATION_LOW_POWER 2
#define ONNXIFI_OPTIMIZATION_LOW_DELAY 3

#define ONNXIFI_LOG_LEVEL_ERROR 4
#define ONNXIFI_LOG_LEVEL_WARNING 3
#define ONNXIFI_LOG_LEVEL_INFO 2
#define ONNXIFI_LOG_LEVEL_DEBUG 1

#define ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1 0x43DFBF69
typedef struct onnxTensorDescriptorV1 {
  int32_t tag; /* ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1 */
  const char* name;
  onnxEnum dataType;
  onnxEnum memoryType;
  uint32_t dimensions;
  const uint64_t* shape; /* `dimensions` extents */
  onnxPointer buffer;
} onnxTensorDescriptorV1;

#define ONNXIFI_SYNCHRONIZATION_EVENT 0
#define ONNXIFI_SYNCHRONIZATION_IMPLICIT 2

#define ONNXIFI_TAG_MEMORY_FENCE_V1 0x23E08AAB
typedef struct onnxMemoryFenceV1 {
  int32_t tag;   /* ONNXIFI_TAG_MEMORY_FENCE_V1 */
  onnxEnum type; /* ONNXIFI_SYNCHRONIZATION_* */
  union {
    onnxEvent event;
  };
} onnxMemoryFenceV1;

typedef onnxStatus (*onnxExtensionFunctionPointer)(void);

ONNXIFI_EXPORT onnxStatus onnxGetBackendIDs(onnxBackendID* backendIDs, size_t* numBackends);
ONNXIFI_EXPORT onnxStatus onnxReleaseBackendID(onnxBackendID backendID);
ONNXIFI_EXPORT onnxStatus onnxGetBackendInfo(onnxBackendID backendID, onnxBackendInfo infoType, void* infoValue,
                                             size_t* infoValueSize);
ONNXIFI_EXPORT onnxStatus onnxGetBackendCompatibility(onnxBackendID backendID, size_t onnxModelSize,
                                                      const void* onnxModel);
ONNXIFI_EXPORT onnxStatus onnxInitBackend(onnxBackendID backendID, const uint64_t* auxPropertiesList,
                                          onnxBackend* backend);
ONNXIFI_EXPORT onnxStatus onnxReleaseBackend(onnxBackend backend);
ONNXIFI_EXPORT onnxStatus onnxInitEvent(onnxBackend backend, onnxEvent* event);
ONNXIFI_EXPORT onnxStatus onnxSignalEvent(onnxEvent event);
ONNXIFI_EXPORT onnxStatus onnxGetEventState(onnxEvent event, onnxEventState* state);
ONNXIFI_EXPORT onnxStatus onnxWaitEvent(onnxEvent event);
ONNXIFI_EXPORT onnxStatus onnxReleaseEvent(onnxEvent event);
ONNXIFI_EXPORT onnxStatus onnxInitGraph(onnxBackend backend, const uint64_t* auxPropertiesList, size_t onnxModelSize,
                                        const void* onnxModel, uint32_t weightsCount,
                                        const onnxTensorDescriptorV1* weightDescriptors, onnxGraph* graph);
ONNXIFI_EXPORT onnxStatus onnxSetGraphIO(onnxGraph graph, uint32_t inputsCount,
                                         const onnxTensorDescriptorV1* inputDescriptors, uint32_t outputsCount,
                                         const onnxTensorDescriptorV1* outputDescriptors);
ONNXIFI_EXPORT onnxStatus onnxRunGraph(onnxGraph graph, const onnxMemoryFenceV1* inputFence,
                                       onnxMemoryFenceV1* outputFence);
ONNXIFI_EXPORT onnxStatus onnxReleaseGraph(onnxGraph graph);

/* From onnx/onnxifi_ext.h. */
ONNXIFI_EXPORT onnxStatus onnxGetExtensionFunctionAddress(onnxBackendID backendID, const char* name,
                                                          onnxExtensionFunctionPointer* function);
ONNXIFI_EXPORT onnxStatus onnxSetIOAndRunGraph(onnxGraph graph, uint32_t inputsCount,
                                               const onnxTensorDescriptorV1* inputDescriptors, uint32_t outputsCount,
                                               const onnxTensorDescriptorV1* outputDescriptors,
                                               onnxMemoryFenceV1* outputFence);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(readability-identifier-naming) */

#endif
