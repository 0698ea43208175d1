// SPDX-License-Identifier: Apache-2.0
// The families of operators. Each has a file named after it, with its rows at the end.
#pragma once

#include <span>

#include "engine/kernel.h"

namespace backplane::cpu {

std::span<const Row> unary_rows();      // one input, element by element
std::span<const Row> binary_rows();     // two or more inputs, element by element
std::span<const Row> clip_rows();
std::span<const Row> cast_rows();       // Cast, CastLike, BitCast
std::span<const Row> reshape_rows();    // the bytes stay, the extents change
std::span<const Row> copy_rows();       // Transpose, Slice, Tile, Expand, …: elements go elsewhere along strides
std::span<const Row> concat_rows();     // Concat, Split
std::span<const Row> pad_rows();        // Pad, CenterCropPad
std::span<const Row> gather_rows();     // Gather, GatherElements, GatherND, ReverseSequence
std::span<const Row> scatter_rows();
std::span<const Row> constant_rows();   // Constant, Shape, Range, …: made from little or nothing
std::span<const Row> reduce_rows();     // ReduceSum, …
std::span<const Row> arg_reduce_rows();
std::span<const Row> cumulative_rows();
std::span<const Row> select_rows();     // NonZero, Compress, Unique: extents depend on values
std::span<const Row> top_k_rows();
std::span<const Row> resize_rows();
std::span<const Row> layer_norm_rows(); // LayerNormalization, InstanceNormalization, …
std::span<const Row> recurrent_rows();  // RNN, GRU, LSTM
std::span<const Row> random_rows();     // RandomNormal, …, Bernoulli, Multinomial, Dropout
std::span<const Row> signal_rows();     // windows, DFT, STFT, MelWeightMatrix
std::span<const Row> loss_rows();
std::span<const Row> region_rows();     // RoiAlign, MaxRoiPool, NonMaxSuppression
std::span<const Row> grid_rows();       // GridSample, AffineGrid
std::span<const Row> unpool_rows();     // MaxUnpool, Col2Im
std::span<const Row> einsum_rows();
std::span<const Row> det_rows();

std::span<const Row> conv_rows();
std::span<const Row> conv_transpose_rows();
std::span<const Row> matmul_rows();
std::span<const Row> gemm_rows();
std::span<const Row> pool_rows();
std::span<const Row> batch_normalization_rows();
std::span<const Row> lrn_rows();
std::span<const Row> softmax_rows();    // Softmax, LogSoftmax, Hardmax
std::span<const Row> quantize_rows();   // QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear
std::span<const Row> quantized_rows();  // MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv

std::span<const Row> control_rows();        // If, Loop, Scan, SequenceMap
std::span<const Row> sequence_rows();       // sequences and optionals
std::span<const Row> text_rows();           // StringConcat, StringSplit, RegexFullMatch, StringNormalizer
std::span<const Row> text_cast_rows();      // Cast, CastLike from and to texts
std::span<const Row> text_movement_rows();  // Gather, Concat, Equal, …, of texts
std::span<const Row> tf_idf_rows();         // TfIdfVectorizer

std::span<const Row> attention_rows();
std::span<const Row> flex_attention_rows();
std::span<const Row> rotary_rows();
std::span<const Row> linear_attention_rows();  // LinearAttention, CausalConvWithState
std::span<const Row> deform_conv_rows();
std::span<const Row> image_decoder_rows();
std::span<const Row> optimizer_rows();         // Adagrad, Adam, Momentum

std::span<const Row> fused_rows();         // com.microsoft FusedConv, FusedGemm
std::span<const Row> fused_matmul_rows();  // com.microsoft FusedMatMul, DynamicQuantizeMatMul, MatMulIntegerToFloat
std::span<const Row> gelu_rows();  // com.microsoft Gelu, FastGelu, BiasGelu, QuickGelu
std::span<const Row> group_query_attention_rows();
std::span<const Row> matmul_nbits_rows();
std::span<const Row> qlinear_rows();  // com.microsoft QLinearAdd, QLinearConcat, …
std::span<const Row> skip_layer_norm_rows();  // com.microsoft Skip…LayerNormalization

// ai.onnx.ml
std::span<const Row> ml_feature_rows();  // ArrayFeatureExtractor, FeatureVectorizer, OneHotEncoder
std::span<const Row> ml_label_rows();    // LabelEncoder, CategoryMapper
std::span<const Row> ml_linear_rows();
std::span<const Row> ml_map_rows();      // ZipMap, CastMap, DictVectorizer
std::span<const Row> ml_scale_rows();    // Binarizer, Imputer, Normalizer, Scaler
std::span<const Row> ml_svm_rows();
std::span<const Row> ml_tree_rows();

}  // namespace backplane::cpu
