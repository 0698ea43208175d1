// SPDX-License-Identifier: Apache-2.0
#include "random_tensor.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "convert.h"

namespace backplane::tools {
namespace {

// Uniformly distributed in (0, 1].
double uniform(std::mt19937_64& random) {
  return static_cast<double>((random() >> 11) + 1) * 0x1p-53;
}

// Uses the Box–Muller formula, because std::normal_distribution differs between standard libraries.
double normal(std::mt19937_64& random) {
  const double radius = std::sqrt(-2 * std::log(uniform(random)));
  return radius * std::cos(2 * std::numbers::pi * uniform(random));
}

// Fills `tensor` with successive results of `next()`, converted to T.
template <class T, class Next>
void fill(onnx::Tensor& tensor, Next next) {
  for (size_t at = 0; at + sizeof(T) <= tensor.bytes.size(); at += sizeof(T)) {
    const auto element = static_cast<T>(next());
    std::memcpy(tensor.bytes.data() + at, &element, sizeof element);
  }
}

}  // namespace

onnx::Tensor random_tensor(bp_dtype_t dtype, std::vector<int64_t> extents, std::mt19937_64& random) {
  onnx::Tensor tensor{dtype, std::move(extents), {}};
  const auto real = [&] { return normal(random); };
  const auto digit = [&] { return random() % 10; };
  if (dtype == BP_DTYPE_STRING) {
    std::vector<std::string> texts(tensor.count());
    for (std::string& text : texts) text = std::to_string(digit());
    return onnx::Tensor::of_texts(std::move(tensor.extents), texts);
  }
  tensor.bytes.resize(onnx::dense_bytes(dtype, tensor.extents));
  switch (dtype) {
    case BP_DTYPE_FLOAT:
    case BP_DTYPE_COMPLEX64:
      fill<float>(tensor, real);
      break;
    case BP_DTYPE_DOUBLE:
    case BP_DTYPE_COMPLEX128:
      fill<double>(tensor, real);
      break;
    case BP_DTYPE_FLOAT16:
      fill<uint16_t>(tensor, [&] { return float16_bits(real()); });
      break;
    case BP_DTYPE_BFLOAT16:
      fill<uint16_t>(tensor, [&] { return bfloat16_bits(real()); });
      break;
    case BP_DTYPE_BOOL:
      fill<uint8_t>(tensor, [&] { return random() % 2; });
      break;
    case BP_DTYPE_FLOAT8E4M3FN:
    case BP_DTYPE_FLOAT8E4M3FNUZ:
    case BP_DTYPE_FLOAT8E5M2:
    case BP_DTYPE_FLOAT8E5M2FNUZ:
      fill<uint8_t>(tensor, [&] { return 0x28 + random() % 0x14 + (random() % 2 << 7); });
      break;
    case BP_DTYPE_FLOAT8E8M0:
      fill<uint8_t>(tensor, [&] { return 122 + digit(); });
      break;
    case BP_DTYPE_UINT4:
    case BP_DTYPE_INT4:
    case BP_DTYPE_UINT2:
    case BP_DTYPE_INT2:
    case BP_DTYPE_FLOAT4E2M1:
      fill<uint8_t>(tensor, random);
      break;
    case BP_DTYPE_INT8:
    case BP_DTYPE_UINT8:
      fill<uint8_t>(tensor, digit);
      break;
    case BP_DTYPE_INT16:
    case BP_DTYPE_UINT16:
      fill<uint16_t>(tensor, digit);
      break;
    case BP_DTYPE_INT32:
    case BP_DTYPE_UINT32:
      fill<uint32_t>(tensor, digit);
      break;
    default:
      fill<uint64_t>(tensor, digit);
      break;
  }
  return tensor;
}

}  // namespace backplane::tools
