// SPDX-License-Identifier: Apache-2.0
// The rows of all operators, and the passes that rewrite a program's calls. The plugin (table.cpp) provides them to the
// runtime.
#pragma once

#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/call.h"
#include "runtime/choices.h"

namespace backplane::cpu {

// Rewrites calls while a program is compiled. `values` and `known` are those of the program, indexed by value.
using Pass = void (*)(const bp_graph_t& graph, std::span<Call> calls, std::span<const Tensor> values,
                      const std::vector<bool>& known);

class Operators {
 public:
  struct Parts {
    std::vector<Row> rows;
    // Creates the kernel for a node with fp16 or bf16 inputs whose row says that such nodes are computed in fp32.
    std::unique_ptr<Kernel> (*create_in_fp32)(const Row& row, const Node& node) = nullptr;
    MakeReorder make_reorder = nullptr;
    // The passes of each list run in its order, but not in reference mode. Early passes run before nodes of rows with
    // kFoldsLate (runtime/row.h) are folded, late passes after these are folded.
    std::vector<Pass> early_passes, late_passes;
    // The lists of implementations of kernels that passes create. The constructor adds the lists that rows name.
    std::vector<ImplementationNames> implementations;
  };
  explicit Operators(Parts parts);
  Operators(const Operators&) = delete;
  Operators& operator=(const Operators&) = delete;

  // Returns the row for a node, or null. For a node that has only tensors of numbers, a row that accepts only these
  // takes precedence.
  const Row* find(const Node& node) const;
  // Returns the oldest row of the node's operator in any version, or null. This distinguishes an unknown operator from
  // an unknown version.
  const Row* find_operator(const Node& node) const;

  // Creates the kernel for a node that the row accepted. `reference`: use the row's own kernel for fp16 and bf16 too.
  std::unique_ptr<Kernel> create(const Row& row, const Node& node, bool reference) const;

  std::span<const Row> rows() const { return parts_.rows; }
  MakeReorder make_reorder() const { return parts_.make_reorder; }
  std::span<const Pass> early_passes() const { return parts_.early_passes; }
  std::span<const Pass> late_passes() const { return parts_.late_passes; }
  std::span<const ImplementationNames> implementations() const { return parts_.implementations; }

 private:
  Parts parts_;
  // The rows of all domains, newest version first.
  std::unordered_map<std::string_view, std::vector<const Row*>> by_op_type_;
};

}  // namespace backplane::cpu
