// SPDX-License-Identifier: Apache-2.0
// Test code: numbers of the types that the stand-ins for NVIDIA's libraries compute.
#pragma once

#include <cstdint>

#include "driver/cublaslt.h"

namespace standin {

namespace lt = backplane::cuda::lt;

double load(lt::DataType type, const void* data, uint64_t at);
void store(lt::DataType type, void* data, uint64_t at, double value);
// Returns `value` as a factor of a product: rounded to 10 bits of mantissa if `is_tf32`.
double factor(bool is_tf32, double value);

}  // namespace standin
