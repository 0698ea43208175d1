# SPDX-License-Identifier: Apache-2.0
"""Random nodes for differential.py: FAMILIES and FOREIGN list the operators that each generator draws. There is a module for each kind of operator.

A generator takes a Draw and returns a Node. Inputs of operators that add up products are multiples of 1/4 with few bits, so that sums
are exact in any order, and results differ only by the rounding of single functions. Case numbers follow the order of the table.
"""
from .draw import Draw, MICROSOFT, ML, Node, ints
from .axes import arg_reduce, cumulative, reduce, softmax
from .casts import cast, dynamic_quantize, quantize
from .elementwise import binary, clip, unary, variadic, where
from .index import compress, gather, gather_elements, gather_nd, non_zero, scatter_elements, scatter_nd, top_k, unique
from .ml import ml_features, ml_labels, ml_linear, ml_maps, ml_scale, ml_svm, ml_trees
from .microsoft import (
    dynamic_quantize_lstm, embed_layer_norm, fused_product, gelu, matmul_nbits, multi_head_attention, nhwc_conv, qattention, skip_layer_norm,
    spelled_out,
)
from .microsoft_quantized import fused_conv, integer_product, qlinear_binary, qlinear_concat, qlinear_pool, qlinear_unary, rotary_embedding
from .movement import (
    blocks, concat, constant_of_shape, crop_pad, expand, eye_like, flatten, one_hot, pad, range_, reshape,
    reverse_sequence, shape_of, slice_, split, squeeze, tile, transpose, trilu, unsqueeze,
)
from .network import attention, dft, loss, recurrent, signal_window
from .normalization import batch_norm, group_norm, instance_norm, layer_norm, lp_norm, lrn, mvn
from .picture import affine_grid, grid_sample, resize
from .product import det, einsum, gemm, matmul, matmul_integer, qlinear_matmul
from .text import regex, string_concat, string_normalizer, string_split
from .window import col2im, conv, conv_integer, global_pool, pool, qlinear_conv, roi_align

FAMILIES = [
    (unary, "Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsInf "
            "IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Swish Tan Tanh "
            "ThresholdedRelu"),
    (binary, "Add Sub Mul Div Pow Mod And Or Xor Equal Less LessOrEqual Greater GreaterOrEqual BitwiseAnd BitwiseOr BitwiseXor BitShift PRelu"),
    (variadic, "Max Min Sum Mean"), (where, "Where"), (clip, "Clip"),
    (reduce, "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare"),
    (arg_reduce, "ArgMax ArgMin"), (cumulative, "CumSum CumProd"), (softmax, "Softmax LogSoftmax Hardmax"),
    (transpose, "Transpose"), (reshape, "Reshape"), (flatten, "Flatten"), (squeeze, "Squeeze"), (unsqueeze, "Unsqueeze"), (expand, "Expand"),
    (tile, "Tile"), (concat, "Concat"), (split, "Split"), (slice_, "Slice"), (pad, "Pad"), (blocks, "DepthToSpace SpaceToDepth"),
    (reverse_sequence, "ReverseSequence"), (trilu, "Trilu"), (eye_like, "EyeLike"), (shape_of, "Shape Size"),
    (constant_of_shape, "ConstantOfShape"), (range_, "Range"), (one_hot, "OneHot"), (crop_pad, "CenterCropPad"),
    (gather, "Gather"), (gather_elements, "GatherElements"), (gather_nd, "GatherND"), (scatter_elements, "ScatterElements"),
    (scatter_nd, "ScatterND"), (compress, "Compress"), (non_zero, "NonZero"), (unique, "Unique"), (top_k, "TopK"),
    (conv, "Conv ConvTranspose"), (conv_integer, "ConvInteger"), (qlinear_conv, "QLinearConv"), (pool, "MaxPool AveragePool LpPool"),
    (global_pool, "GlobalMaxPool GlobalAveragePool GlobalLpPool"), (col2im, "Col2Im"), (roi_align, "RoiAlign"),
    (matmul, "MatMul"), (gemm, "Gemm"), (matmul_integer, "MatMulInteger"), (qlinear_matmul, "QLinearMatMul"), (einsum, "Einsum"), (det, "Det"),
    (batch_norm, "BatchNormalization"), (instance_norm, "InstanceNormalization"), (layer_norm, "LayerNormalization RMSNormalization"),
    (group_norm, "GroupNormalization"), (lp_norm, "LpNormalization"), (mvn, "MeanVarianceNormalization"), (lrn, "LRN"),
    (resize, "Resize"), (grid_sample, "GridSample"), (affine_grid, "AffineGrid"), (cast, "Cast CastLike"),
    (quantize, "QuantizeLinear DequantizeLinear"), (dynamic_quantize, "DynamicQuantizeLinear"),
    (loss, "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"), (recurrent, "RNN GRU LSTM"), (dft, "DFT"),
    (signal_window, "HannWindow HammingWindow BlackmanWindow"), (attention, "Attention"),
    (string_concat, "StringConcat"), (string_normalizer, "StringNormalizer"), (string_split, "StringSplit"), (regex, "RegexFullMatch"),
    (ml_scale, "Binarizer Imputer Normalizer Scaler"), (ml_features, "ArrayFeatureExtractor FeatureVectorizer OneHotEncoder"),
    (ml_linear, "LinearClassifier LinearRegressor"), (ml_svm, "SVMClassifier SVMRegressor"),
    (ml_trees, "TreeEnsembleClassifier TreeEnsembleRegressor"), (ml_labels, "CategoryMapper LabelEncoder"), (ml_maps, "CastMap DictVectorizer ZipMap"),
]

# Operators of com.microsoft. They are in a separate table, so that the numbers of the cases in FAMILIES do not change.
FOREIGN = [
    (embed_layer_norm, "EmbedLayerNormalization"), (nhwc_conv, "NhwcConv"), (qattention, "QAttention Attention"),
    (dynamic_quantize_lstm, "DynamicQuantizeLSTM"),
    (gelu, "BiasGelu FastGelu Gelu QuickGelu"), (skip_layer_norm, "SkipLayerNormalization SkipSimplifiedLayerNormalization"),
    (fused_product, "FusedGemm FusedMatMul"), (matmul_nbits, "MatMulNBits"), (multi_head_attention, "MultiHeadAttention"),
    (qlinear_binary, "QLinearAdd QLinearMul"), (qlinear_unary, "QLinearLeakyRelu QLinearSigmoid"), (qlinear_concat, "QLinearConcat"),
    (qlinear_pool, "QLinearAveragePool QLinearGlobalAveragePool"), (integer_product, "DynamicQuantizeMatMul MatMulIntegerToFloat"),
    (fused_conv, "FusedConv"), (rotary_embedding, "RotaryEmbedding"),
]
