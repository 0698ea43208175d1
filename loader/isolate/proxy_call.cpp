// SPDX-License-Identifier: Apache-2.0
#include "isolate/proxy_call.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/abi.h"

namespace backplane::isolate {

void explain(bp_error_t* error, std::string_view text) {
  if (!error || text.empty() || error->size < BP_SIZE_1_0(bp_error_t)) return;
  error->text_size = text.size();
  if (error->text) std::memcpy(error->text, text.data(), std::min<uint64_t>(error->text_capacity, text.size()));
}

void write_options(const bp_option_t* options, uint32_t count, uint32_t stride, Writer& out) {
  out.put<uint64_t>(options ? count : 0);
  for (uint32_t i = 0; options && i < count; ++i) {
    const bp_option_t option = abi::element(options, i, stride);
    out.text(option.name).text(option.value);
  }
}

Status refuse_chain(const bp_chain_t* chain) {
  for (; chain; chain = chain->next)
    if (chain->required)
      return {BP_UNSUPPORTED,
              "extension \"" + abi::string(chain->extension) + "\" cannot be passed to an isolated backend"};
  return {};
}

Status refuse_flags(uint32_t flags, std::string_view name) {
  if (!(flags & BP_FLAGS_REQUIRED)) return {};
  return {BP_UNSUPPORTED, std::string(name) + " is " + std::to_string(flags) +
                              ": an isolated backend supports no flags of BP_FLAGS_REQUIRED"};
}

void write_tensor_form(const bp_tensor_t& tensor, Writer& out) {
  out.put(tensor.dtype).put(tensor.layout).array(tensor.extents, tensor.extents ? tensor.rank : 0);
  out.array(tensor.strides, tensor.strides ? tensor.rank : 0);
}

}  // namespace backplane::isolate
