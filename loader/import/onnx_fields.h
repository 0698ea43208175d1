// SPDX-License-Identifier: Apache-2.0
// Field numbers of ONNX's protobuf messages (onnx.proto, IR version 14).
#pragma once

#include <cstdint>

namespace backplane::model::field {

using Number = uint32_t;

namespace model {
constexpr Number kIrVersion = 1, kProducerName = 2, kProducerVersion = 3, kDomain = 4, kModelVersion = 5,
                 kDocString = 6, kGraph = 7, kOpsetImport = 8, kMetadataProps = 14, kTrainingInfo = 20, kFunctions = 25;
}
namespace opset {
constexpr Number kDomain = 1, kVersion = 2;
}
namespace entry {
constexpr Number kKey = 1, kValue = 2;
}
namespace graph {
constexpr Number kNode = 1, kName = 2, kInitializer = 5, kDocString = 10, kInput = 11, kOutput = 12, kValueInfo = 13,
                 kSparseInitializer = 15;
}
namespace function {
constexpr Number kName = 1, kInput = 4, kOutput = 5, kAttribute = 6, kNode = 7, kOpsetImport = 9, kDomain = 10,
                 kAttributeProto = 11, kOverload = 13;
}
namespace node {
constexpr Number kInput = 1, kOutput = 2, kName = 3, kOpType = 4, kAttribute = 5, kDomain = 7, kOverload = 8;
}
namespace attribute {
constexpr Number kName = 1, kF = 2, kI = 3, kS = 4, kT = 5, kG = 6, kFloats = 7, kInts = 8, kStrings = 9, kTensors = 10,
                 kGraphs = 11, kTp = 14, kTypeProtos = 15, kType = 20, kRefAttrName = 21, kSparseTensor = 22,
                 kSparseTensors = 23;
}
namespace tensor {
constexpr Number kDims = 1, kDataType = 2, kSegment = 3, kFloatData = 4, kInt32Data = 5, kStringData = 6,
                 kInt64Data = 7, kName = 8, kRawData = 9, kDoubleData = 10, kUint64Data = 11, kExternalData = 13,
                 kDataLocation = 14;
}
namespace sparse {
constexpr Number kValues = 1, kIndices = 2, kDims = 3;
}
namespace value_info {
constexpr Number kName = 1, kType = 2;
}
namespace type {
constexpr Number kTensor = 1, kSequence = 4, kMap = 5, kSparseTensor = 8, kOptional = 9;
}
namespace tensor_type {
constexpr Number kElemType = 1, kShape = 2;
}
namespace container_type {  // sequence and optional
constexpr Number kElemType = 1;
}
namespace map_type {
constexpr Number kKeyType = 1, kValueType = 2;
}
namespace shape {
constexpr Number kDim = 1;
}
namespace dim {
constexpr Number kValue = 1, kParam = 2;
}

}  // namespace backplane::model::field
