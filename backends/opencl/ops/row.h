// SPDX-License-Identifier: Apache-2.0
// How an operator is implemented: a row of its family's table.
#pragma once

#include <span>

#include "engine/planner.h"

namespace backplane::opencl {

using sdk::Node;
using sdk::Value;
using sdk::Verdict;

inline constexpr bp_dtype_set_t one(bp_dtype_t dtype) {
  return bp_dtype_set_t{1} << dtype;
}
inline constexpr bp_dtype_set_t kFloats =
    one(BP_DTYPE_FLOAT) | one(BP_DTYPE_FLOAT16) | one(BP_DTYPE_BFLOAT16) | one(BP_DTYPE_DOUBLE);
inline constexpr bp_dtype_set_t kSignedIntegers =
    one(BP_DTYPE_INT8) | one(BP_DTYPE_INT16) | one(BP_DTYPE_INT32) | one(BP_DTYPE_INT64);
inline constexpr bp_dtype_set_t kUnsignedIntegers =
    one(BP_DTYPE_UINT8) | one(BP_DTYPE_UINT16) | one(BP_DTYPE_UINT32) | one(BP_DTYPE_UINT64);
inline constexpr bp_dtype_set_t kIntegers = kSignedIntegers | kUnsignedIntegers;
inline constexpr bp_dtype_set_t kBooleans = one(BP_DTYPE_BOOL);
inline constexpr bp_dtype_set_t kNumbers = kFloats | kIntegers;
inline constexpr bp_dtype_set_t kAnything = kNumbers | kBooleans;

// The form of a call: how many inputs (an optional one between may be omitted), at most how many outputs, and the type
// of output 0.
struct Form {
  uint32_t least, most;
  enum Result { kSame, kBool, kOpen } result = kSame;  // as input 0; bool; whatever `supports` allows
  uint32_t outputs = 1;
};
inline constexpr Form kUnary{1, 1}, kBinary{2, 2}, kVariadic{1, UINT32_MAX}, kUnaryOpen{1, 1, Form::kOpen};
inline constexpr Form kUnaryTest{1, 1, Form::kBool}, kBinaryTest{2, 2, Form::kBool};

// An operator from one version of its operator set on, until a later row of the same operator.
struct Row {
  std::string_view domain;
  std::string_view op_type;
  uint32_t since_version;
  bp_dtype_set_t types;  // that input 0 may have, if the device has them
  Form form;
  // What else must hold; NULL: nothing. Asked for coverage and again before `emit`. Ranks are known, operands are
  // tensors of types that the device has; extents may be unknown (-1).
  Verdict (*supports)(const Node& node);
  void (*emit)(Emit& e, std::string_view with);
  std::string_view with = {};  // a formula or a name, for the rows that share `emit`
};

inline Verdict accept() {
  return sdk::yes();
}
inline bool accepted(const Verdict& verdict) {
  return verdict.answer != BP_ANSWER_NO;
}

// A number as OpenCL C, exact.
std::string literal(float value);

// Conditions that many rows share.
Verdict same_types(const Node& node);  // of all inputs
// Input `slot` is omitted, or its bytes can be read on the host before the node is planned: it is a constant, or an
// input of the model while the extents of all results are known without it.
Verdict known_on_host(const Node& node, uint32_t slot);

}  // namespace backplane::opencl
