// SPDX-License-Identifier: Apache-2.0
// Reads and writes values as protobuf messages: ONNX's .pb files. Functions that read throw Malformed on invalid input.
#pragma once

#include <string>
#include <string_view>

#include "onnx/onnx.pb.h"
#include "onnx/value.h"

namespace backplane::onnx {

Tensor from_message(const TensorProto& message);
Value from_message(const SequenceProto& message);
Value from_message(const OptionalProto& message);
Value from_message(const MapProto& message);
TensorProto to_message(const Tensor& tensor, std::string_view name);

// Parses a TensorProto, SequenceProto, OptionalProto or MapProto. A .pb file does not state which message it contains,
// so the caller passes `kind` (BP_KIND_*). `out_name` (may be NULL) receives the name in the message, or an empty
// string.
Value parse_value(std::string_view bytes, uint32_t kind, std::string* out_name = nullptr);

}  // namespace backplane::onnx
