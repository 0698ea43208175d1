// SPDX-License-Identifier: Apache-2.0
// The families of operators. Each has a file named after it, with its rows at the end. These functions are cold, so
// that the linker puts them side by side: else asking for all rows brings the whole library into memory.
#pragma once

#include <span>

#include "runtime/kernel.h"

namespace backplane::cpu {

[[gnu::cold]] std::span<const Row> unary_rows();   // one input, element by element
[[gnu::cold]] std::span<const Row> binary_rows();  // two or more inputs, element by element
[[gnu::cold]] std::span<const Row> clip_rows();
[[gnu::cold]] std::span<const Row> cast_rows();     // Cast, CastLike, BitCast
[[gnu::cold]] std::span<const Row> reshape_rows();  // the bytes stay, the extents change
[[gnu::cold]] std::span<const Row>
copy_rows();  // Transpose, Slice, Tile, Expand, …: elements go elsewhere along strides
[[gnu::cold]] std::span<const Row> concat_rows();  // Concat, Split
[[gnu::cold]] std::span<const Row> pad_rows();     // Pad, CenterCropPad
[[gnu::cold]] std::span<const Row> gather_rows();  // Gather, GatherElements, GatherND, ReverseSequence
[[gnu::cold]] std::span<const Row> scatter_rows();
[[gnu::cold]] std::span<const Row> constant_rows();  // Constant, Shape, Range, …: made from little or nothing
[[gnu::cold]] std::span<const Row> reduce_rows();    // ReduceSum, …
[[gnu::cold]] std::span<const Row> arg_reduce_rows();
[[gnu::cold]] std::span<const Row> cumulative_rows();
[[gnu::cold]] std::span<const Row> select_rows();  // NonZero, Compress, Unique: extents depend on values
[[gnu::cold]] std::span<const Row> top_k_rows();
[[gnu::cold]] std::span<const Row> resize_rows();
[[gnu::cold]] std::span<const Row> layer_norm_rows();  // LayerNormalization, InstanceNormalization, …
[[gnu::cold]] std::span<const Row> recurrent_rows();   // RNN, GRU, LSTM
[[gnu::cold]] std::span<const Row> random_rows();      // RandomNormal, …, Bernoulli, Multinomial, Dropout
[[gnu::cold]] std::span<const Row> signal_rows();      // windows, DFT, STFT, MelWeightMatrix
[[gnu::cold]] std::span<const Row> loss_rows();
[[gnu::cold]] std::span<const Row> region_rows();  // RoiAlign, MaxRoiPool, NonMaxSuppression
[[gnu::cold]] std::span<const Row> grid_rows();    // GridSample, AffineGrid
[[gnu::cold]] std::span<const Row> unpool_rows();  // MaxUnpool, Col2Im
[[gnu::cold]] std::span<const Row> einsum_rows();
[[gnu::cold]] std::span<const Row> det_rows();

[[gnu::cold]] std::span<const Row> conv_rows();
[[gnu::cold]] std::span<const Row> conv_transpose_rows();
[[gnu::cold]] std::span<const Row> matmul_rows();
[[gnu::cold]] std::span<const Row> gemm_rows();
[[gnu::cold]] std::span<const Row> pool_rows();
[[gnu::cold]] std::span<const Row> batch_normalization_rows();
[[gnu::cold]] std::span<const Row> lrn_rows();
[[gnu::cold]] std::span<const Row> softmax_rows();    // Softmax, LogSoftmax, Hardmax
[[gnu::cold]] std::span<const Row> quantize_rows();   // QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear
[[gnu::cold]] std::span<const Row> quantized_rows();  // MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv

[[gnu::cold]] std::span<const Row> control_rows();        // If, Loop, Scan, SequenceMap
[[gnu::cold]] std::span<const Row> sequence_rows();       // sequences and optionals
[[gnu::cold]] std::span<const Row> text_rows();           // StringConcat, StringSplit, RegexFullMatch, StringNormalizer
[[gnu::cold]] std::span<const Row> text_cast_rows();      // Cast, CastLike from and to texts
[[gnu::cold]] std::span<const Row> text_movement_rows();  // Gather, Concat, Equal, …, of texts
[[gnu::cold]] std::span<const Row> tf_idf_rows();         // TfIdfVectorizer

[[gnu::cold]] std::span<const Row> attention_rows();
[[gnu::cold]] std::span<const Row> flex_attention_rows();
[[gnu::cold]] std::span<const Row> rotary_rows();
[[gnu::cold]] std::span<const Row> linear_attention_rows();  // LinearAttention, CausalConvWithState
[[gnu::cold]] std::span<const Row> deform_conv_rows();
[[gnu::cold]] std::span<const Row> image_decoder_rows();
[[gnu::cold]] std::span<const Row> optimizer_rows();  // Adagrad, Adam, Momentum

[[gnu::cold]] std::span<const Row> fused_rows();  // com.microsoft FusedConv, FusedGemm
[[gnu::cold]] std::span<const Row>
fused_matmul_rows();  // com.microsoft FusedMatMul, DynamicQuantizeMatMul, MatMulIntegerToFloat
[[gnu::cold]] std::span<const Row> gelu_rows();  // com.microsoft Gelu, FastGelu, BiasGelu, QuickGelu
[[gnu::cold]] std::span<const Row> group_query_attention_rows();
[[gnu::cold]] std::span<const Row> matmul_nbits_rows();
[[gnu::cold]] std::span<const Row> qlinear_rows();          // com.microsoft QLinearAdd, QLinearConcat, …
[[gnu::cold]] std::span<const Row> skip_layer_norm_rows();  // com.microsoft Skip…LayerNormalization

// ai.onnx.ml
[[gnu::cold]] std::span<const Row> ml_feature_rows();  // ArrayFeatureExtractor, FeatureVectorizer, OneHotEncoder
[[gnu::cold]] std::span<const Row> ml_label_rows();    // LabelEncoder, CategoryMapper
[[gnu::cold]] std::span<const Row> ml_linear_rows();
[[gnu::cold]] std::span<const Row> ml_map_rows();    // ZipMap, CastMap, DictVectorizer
[[gnu::cold]] std::span<const Row> ml_scale_rows();  // Binarizer, Imputer, Normalizer, Scaler
[[gnu::cold]] std::span<const Row> ml_svm_rows();
[[gnu::cold]] std::span<const Row> ml_tree_rows();

}  // namespace backplane::cpu
