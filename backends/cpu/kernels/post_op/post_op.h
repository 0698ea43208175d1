// SPDX-License-Identifier: Apache-2.0
// Operations that a kernel applies to its result before writing it. They replace the nodes after it
// (passes/fusion.cpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace backplane::cpu {

// A function of one float x. alpha and beta are the attributes of the ONNX operator, or the bounds of Clip.
struct Activation {
  enum Function : uint8_t {
    kRelu,
    kLeakyRelu,  // alpha · x for x < 0, otherwise x
    kClip,       // x limited to [alpha, beta]
    kSigmoid,
    kTanh,
    kElu,
    kHardSigmoid,  // alpha · x + beta, limited to [0, 1]
    kHardSwish,    // x · HardSigmoid(x) with alpha = 1/6 and beta = 1/2
    kSwish,        // x · sigmoid(alpha · x)
    kGelu,         // x · (1 + erf(x / √2)) / 2
    kGeluTanh,     // kGelu with erf approximated by tanh
  };
  Function function = kRelu;
  float alpha = 0;
  float beta = 0;
};

struct PostOp {
  enum Kind : uint8_t {
    kAffine,  // multiplies by `scale` and adds `shift`, which have one number per channel
    kAdd,     // adds the kernel's last input, which has the extents of the result
    kActivation,
  };
  Kind kind = kAffine;
  std::vector<float> scale;
  std::vector<float> shift;
  Activation activation;
};

// Whether `op` only adds constants, and not all of them are 0.
inline bool shifts(const PostOp& op) {
  return op.kind == PostOp::kAffine && std::ranges::any_of(op.shift, [](float shift) { return shift != 0; }) &&
         std::ranges::all_of(op.scale, [](float scale) { return scale == 1; });
}

// Whether oneDNN computes two activations by the same algorithm. oneDNN 2.6 applies the parameters of one of them to
// both if they are applied to the same result.
inline bool share_algorithm(const PostOp& one, const PostOp& other) {
  if (one.kind != PostOp::kActivation || other.kind != PostOp::kActivation) return false;
  const auto algorithm = [](Activation::Function function) {
    if (function == Activation::kLeakyRelu) return Activation::kRelu;
    return function == Activation::kHardSigmoid ? Activation::kClip : function;  // linear, then clip
  };
  return algorithm(one.activation.function) == algorithm(other.activation.function);
}

// Whether `next` may follow `post_ops` in a kernel that folds affine operations into its weights, then adds a tensor,
// then applies activations. The constants of two additions are not combined, because x + (a + b) is rounded
// differently from (x + a) + b, which the nodes compute. (Scaling, which comes from normalizations, is rounded anyway.)
inline bool keeps_order(const std::vector<PostOp>& post_ops, const PostOp& next) {
  if (shifts(next) && std::ranges::any_of(post_ops, shifts)) return false;
  if (std::ranges::any_of(post_ops, [&](const PostOp& op) { return share_algorithm(op, next); })) return false;
  return next.kind == PostOp::kActivation || post_ops.empty() ||
         (post_ops.back().kind == PostOp::kAffine && next.kind != PostOp::kActivation);
}

}  // namespace backplane::cpu
