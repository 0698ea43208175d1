// SPDX-License-Identifier: Apache-2.0
// A row of the operator table: the functions and properties of an operator that the runtime uses.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/kernel.h"
#include "runtime/node.h"

namespace backplane::cpu {

// Whether a node is accepted, and the reason if it is not.
struct Verdict {
  uint32_t reason = BP_REASON_NONE;
  std::string detail;
  explicit operator bool() const { return reason == BP_REASON_NONE; }
};
inline Verdict yes() {
  return {};
}
inline Verdict no(uint32_t reason, std::string detail) {
  return {reason, std::move(detail)};
}

// The kinds of operands that a row can accept in addition to tensors of numbers.
inline constexpr uint32_t kTexts = 1;
inline constexpr uint32_t kContainers = 2;

// The domain of ONNX Runtime's operators.
inline constexpr std::string_view kMicrosoft = "com.microsoft";

// Properties of operators that the runtime uses:

// The result depends only on the extents of the inputs.
inline constexpr uint32_t kReadsExtentsOnly = 1;
// Nodes of this operator are folded only after the early passes, which look for them.
inline constexpr uint32_t kFoldsLate = 2;
// The product of inputs 0 and 1 may be computed in bf16 where the session allows it.
inline constexpr uint32_t kMultipliesInBf16 = 4;
// Output 0 may be omitted where another output is used. Every other output may be omitted for all operators.
inline constexpr uint32_t kOmitsOutput0 = 8;
// The operator only moves elements. Where its row accepts only numbers, strings are replaced by numbers and moved by
// its kernel (kernels/text/text_movement.h).
inline constexpr uint32_t kMovesTexts = 16;
// The operator also compares elements; the numbers have the order of the strings.
inline constexpr uint32_t kRanksTexts = 32;

// An output that is an input with some elements changed, so the two may share a buffer.
struct Update {
  uint32_t input, output;
  // Whether the two have the same extents in every call. If not, they share a buffer only in calls where the declared
  // extents are equal numbers or the same symbols.
  bool same_extents;
};
inline constexpr Update kUpdatesInput0[] = {{0, 0, true}};

// How nodes with fp16 or bf16 operands are computed.
enum class HalfRule : uint8_t {
  // By the row's kernel.
  kOwn,
  // By the row's kernel for fp32: operands are converted first, and results are rounded once at the end.
  kFp32,
  // Like kFp32, but some elements at a time: element i of the result depends only on element i of each operand.
  kFp32Elements,
};

struct ImplementationNames;  // runtime/choices.h

// Describes an operator from its since version up to the next row of the same operator. Written as
//   Row{kDomain, kName, 1, supports, create}.in_fp32(0b010).costing(operations)
struct Row {
  std::string_view domain;
  std::string_view op_type;
  uint32_t since_version;
  Verdict (*supports)(const Node& node);
  std::unique_ptr<Kernel> (*create)(const Node& node);  // called only after `supports` accepted the node
  uint32_t operand_kinds = 0;                           // bits kTexts and kContainers

  HalfRule half = HalfRule::kOwn;
  uint32_t weights = 0;  // with kFp32: a bit for each input of which the kernel may keep its own copy
  uint32_t facts = 0;    // bits kReadsExtentsOnly and others above
  std::span<const Update> updates = {};
  // Returns the operations per element of the outputs; a multiply-add counts as two. Null: one operation.
  double (*operations)(const Node& node) = nullptr;
  // Returns the list from which the kernel chooses for each plan (runtime/implementations.h). Null: there is none.
  ImplementationNames (*implementations)() = nullptr;

  constexpr Row in_fp32(uint32_t kept = 0) const {
    Row row = *this;
    row.half = HalfRule::kFp32;
    row.weights = kept;
    return row;
  }
  constexpr Row in_fp32_elements() const {
    Row row = *this;
    row.half = HalfRule::kFp32Elements;
    return row;
  }
  constexpr Row with(uint32_t more) const {
    Row row = *this;
    row.facts |= more;
    return row;
  }
  constexpr Row updating(std::span<const Update> pairs) const {
    Row row = *this;
    row.updates = pairs;
    return row;
  }
  constexpr Row costing(double (*count)(const Node& node)) const {
    Row row = *this;
    row.operations = count;
    return row;
  }
  constexpr Row choosing(ImplementationNames (*names)()) const {
    Row row = *this;
    row.implementations = names;
    return row;
  }
};

}  // namespace backplane::cpu
