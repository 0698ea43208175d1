// SPDX-License-Identifier: Apache-2.0
// The functions in upgrade.cpp's table, by source file. Each handles one change, which may affect several operators.
#pragma once

#include "ops/upgrade/rewrite.h"

namespace backplane::ops {

// attributes.cpp: an attribute was removed, added, renamed or retyped.
Status no_consumed_inputs(Rewrite&);
Status no_output_sequence(Rewrite&);
Status no_is_test(Rewrite&);
Status cast_to_number(Rewrite&);
Status concat_axis(Rewrite&);
Status gemm_broadcast(Rewrite&);
Status grid_sample_modes(Rewrite&);
Status gru_direction(Rewrite&);
Status lp_whole_p(Rewrite&);
Status pad_pads(Rewrite&);
Status roi_align_mode(Rewrite&);
Status scatter_elements(Rewrite&);
Status split_axis(Rewrite&);
Status split_num_outputs(Rewrite&);

// inputs.cpp: an attribute became an input, or an input or output changed.
Status axes_input(Rewrite&);
Status clip_inputs(Rewrite&);
Status dft_axis(Rewrite&);
Status dropout_inputs(Rewrite&);
Status dropout_mask(Rewrite&);
Status pad_inputs(Rewrite&);
Status reshape_input(Rewrite&);
Status slice_inputs(Rewrite&);
Status split_input(Rewrite&);
Status tile_repeats(Rewrite&);
Status top_k_input(Rewrite&);

// broadcast.cpp: the second input used to be aligned at an axis: that of attribute `axis`, or axis 1 in PRelu.
Status numpy_broadcast(Rewrite&);
Status prelu_broadcast(Rewrite&);

// normalization.cpp
Status batch_normalization_spatial(Rewrite&);
Status batch_normalization_outputs(Rewrite&);
Status group_normalization_channels(Rewrite&);
Status softmax_axis(Rewrite&);

// resize.cpp
Status upsample_scales(Rewrite&);
Status upsample_input(Rewrite&);
Status upsample_resize(Rewrite&);
Status resize_modes(Rewrite&);
Status resize_tf_half_pixel(Rewrite&);

// scan.cpp
Status scan_batch(Rewrite&);

// labels.cpp
Status label_encoder_keys(Rewrite&);

}  // namespace backplane::ops
