// SPDX-License-Identifier: Apache-2.0
// Elements of 8 bits or fewer as raw bits: integers of 2, 4 and 8 bits and small floats, all of whose values `float`
// can represent. Elements of 2 and 4 bits are packed into bytes, the first in the lowest bits.
#pragma once

#include "kernels/common/float16.h"
#include "runtime/kernel.h"

namespace backplane::cpu {

// Returns the type's format, or null if the type is not a signed float of at most 8 bits.
const Minifloat* minifloat(bp_dtype_t dtype);

int bits_of(bp_dtype_t dtype);

// Returns the bits of element i of a tensor whose elements have at most 8 bits.
inline uint8_t load_bits(const void* data, int bits, int64_t i) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (bits == 8) return bytes[i];
  const int64_t per_byte = 8 / bits;
  return static_cast<uint8_t>(bytes[i / per_byte] >> (i % per_byte * bits) & ((1 << bits) - 1));
}

float decode_bits(bp_dtype_t dtype, uint8_t element);

// How floats are converted to float8. With `saturate`, numbers beyond the largest finite one become that one, otherwise
// infinity or NaN, whichever the format has for them.
struct EncodeRules {
  bool saturate = true;
  ScaleRounding rounding = ScaleRounding::kUp;  // for FLOAT8E8M0
};
// Encodes a value. For an integer type, the value is truncated and wraps around, and NaN becomes 0. FLOAT4E2M1 always
// saturates.
uint8_t encode_bits(bp_dtype_t dtype, float value, EncodeRules rules);

// Convert elements [begin, begin + n) of `data` to or from float. `begin` must be a multiple of 8.
void load_floats(bp_dtype_t dtype, const void* data, int64_t begin, float* values, int64_t n);
void store_floats(bp_dtype_t dtype, void* data, int64_t begin, const float* values, int64_t n, EncodeRules rules);

// Convert packed elements to one byte each, and back. `pack` keeps the lowest bits of each byte.
void unpack(bp_dtype_t dtype, const void* packed, uint8_t* elements, int64_t n);
void pack(bp_dtype_t dtype, const uint8_t* elements, void* packed, int64_t n);

}  // namespace backplane::cpu
