// SPDX-License-Identifier: Apache-2.0
#include "kernels/q8/q8_onednn.h"

namespace backplane::cpu {

#if DNNL_VERSION_MAJOR >= 3

// oneDNN 3 takes scales as arguments of each execution, which is not implemented here.
bool has_q8_products() {
  return false;
}

dnnl::convolution_forward::primitive_desc describe_convolution(const Q8Convolution&) {
  return {};
}

#else

bool has_q8_products() {
  auto has = [isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa())](dnnl::cpu_isa wanted) {
    return (isa & static_cast<unsigned>(wanted)) == static_cast<unsigned>(wanted);
  };
  return has(dnnl::cpu_isa::avx512_core_vnni) || has(dnnl::cpu_isa::avx2_vnni);
}

dnnl::convolution_forward::primitive_desc describe_convolution(const Q8Convolution& c) {
  constexpr int kChannels = 1 << 1;  // scales vary along dimension 1 of the result
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_output_scales(kChannels, c.scale);
  if (c.source_zero != 0) attributes.set_zero_points(DNNL_ARG_SRC, 0, {c.source_zero});
  if (c.result_zero != 0) attributes.set_zero_points(DNNL_ARG_DST, 0, {c.result_zero});
  if (c.activation) {
    dnnl::post_ops ops;
    if (c.activation->function == Activation::kRelu)
      ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, 0, 0);
    else
      ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_clip, c.activation->alpha, c.activation->beta);
    attributes.set_post_ops(ops);
  }
  const dnnl::memory::desc bias({static_cast<int64_t>(c.scale.size())}, dnnl::memory::data_type::f32,
                                dnnl::memory::format_tag::a);
  return {{dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, c.source, c.weights, bias, c.result,
           c.strides, c.dilations, c.begin, c.end},
          attributes,
          onednn_engine(),
          true};  // allow_empty: do not throw if there is no implementation
}

#endif

}  // namespace backplane::cpu
