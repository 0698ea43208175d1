// SPDX-License-Identifier: Apache-2.0
// Sizes of constant tensors, and functions that read small ones.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace backplane::model {

// Product of the extents; nullopt if one is negative or the product of those other than 0 exceeds 2^59.
std::optional<uint64_t> element_count(std::span<const int64_t> dims);
// Bytes of a dense tensor, with types smaller than a byte packed. nullopt for strings, unknown types and impossible
// extents.
std::optional<uint64_t> tensor_bytes(bp_dtype_t dtype, std::span<const int64_t> dims);
// Packs strings into the ABI's layout: n+1 int64 offsets, then the bytes.
std::vector<char> pack_strings(std::span<const std::string_view> strings);
// Whether a string tensor's offsets start at 0, never descend and end at the size of its bytes. Checks tensors from
// outside the loader.
bool strings_fit(const Weight& weight);
// The numbers of an int32 or int64 tensor; nullopt for other types.
std::optional<std::vector<int64_t>> integers(const Weight& weight);
// The numbers of a tensor of bfloat16, float16 to double, int32, int64 or uint8 to uint64; nullopt for other types.
std::optional<std::vector<double>> numbers(const Weight& weight);

}  // namespace backplane::model
