// SPDX-License-Identifier: Apache-2.0
// A node that is rewritten in an older form, and the functions that the table in downgrade.cpp uses.
#pragma once

#include <optional>

#include "downgrade.h"
#include "onnx_model.h"

namespace onnxifi_backend {

class Rewrite {
 public:
  Rewrite(OnnxModel& onnx_model, OnnxNode& node, const Step& step) : onnx_model(onnx_model), node(node), step(step) {}

  // The elements of a constant int32 or int64 input; nullopt if it is computed or omitted.
  std::optional<std::vector<int64_t>> ints(size_t slot) const;
  std::optional<std::vector<float>> floats(size_t slot) const;  // FLOAT only
  std::vector<int64_t> extents(size_t slot) const { return node.input(slot).value.extents(); }
  int64_t rank(size_t slot) const { return node.input(slot).value.rank(); }
  // Replaces a constant int32 or int64 input by one of the same type and extents with these elements.
  void set_ints(size_t slot, const std::vector<int64_t>& values) const;
  bool wants_output(size_t slot) const { return slot < node.outputs.size() && node.outputs[slot]; }

  // Returns a text such as "the library has Softmax only in its form before version 13, ", followed by `what`.
  std::string refuse(const std::string& what) const {
    return "the library has " + node.op + " only in its form before version " + std::to_string(step.since) + ", " +
           what;
  }

  OnnxModel& onnx_model;
  OnnxNode& node;
  const Step& step;
};

// Changes nothing: the older form has an attribute that the newer form lacks, and means the same with its default.
std::string unchanged(Rewrite&);
// Removes the step's attribute; refuses if its value is not the neutral one.
std::string drop(Rewrite&);
// Removes the step's attribute whatever its value, because every value allows the results of the older form.
std::string ignore(Rewrite&);
// Replaces negative axes, which count from the last dimension, by the equivalent non-negative ones in the attributes
// `axis` and `axes`. Sorts the axes that Unsqueeze inserts.
std::string positive_axes(Rewrite&);
// Refuses inputs of different shapes.
std::string equal_shapes(Rewrite&);
// Refuses inputs 0 and 1 of different types.
std::string equal_types(Rewrite&);
std::string attention_24(Rewrite&);
std::string batch_normalization_15(Rewrite&);
std::string batch_normalization_14(Rewrite&);
std::string bit_shift_28(Rewrite&);
std::string clip_13(Rewrite&);
std::string clip_11(Rewrite&);
std::string dropout_12(Rewrite&);
std::string dropout_10(Rewrite&);
std::string gemm_11(Rewrite&);
std::string grid_sample_20(Rewrite&);
std::string max_pool_8(Rewrite&);
std::string mod_28(Rewrite&);
std::string pad_19(Rewrite&);
std::string pad_18(Rewrite&);
std::string pad_11(Rewrite&);
std::string per_tensor(Rewrite&);
std::string reduce_axes(Rewrite&);
std::string reshape_14(Rewrite&);
std::string resize_19(Rewrite&);
std::string resize_18(Rewrite&);
std::string resize_13(Rewrite&);
std::string resize_11(Rewrite&);
std::string resize_10(Rewrite&);
std::string shape_15(Rewrite&);
std::string slice_10(Rewrite&);
std::string softmax_13(Rewrite&);
std::string split_18(Rewrite&);
std::string split_13(Rewrite&);
std::string squeeze_13(Rewrite&);
std::string top_k_10(Rewrite&);
std::string upsample_9(Rewrite&);
std::string dft_20(Rewrite&);

}  // namespace onnxifi_backend
