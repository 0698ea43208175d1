// SPDX-License-Identifier: Apache-2.0
// libFuzzer: bytes that a plugin could write to the harness after an authentic record, and a plugin's replies to
// requests of the judge.
#include <cstdlib>
#include <stdexcept>

#include "checks/remote.h"
#include "sandbox/channel.h"

namespace {

using namespace backplane::conform;

void forge(const std::string& text) {
  static const ChannelKey kKey = make_channel_key();
  Unsealer records(kKey);
  const std::string first = sealed(kKey, 0, 0, "ready");
  records.append(first.data(), first.size());
  records.append(text.data(), text.size());
  std::string content;
  if (records.next(0, kMaxRecord, content) != Unsealer::State::kRecord || content != "ready") std::abort();
  if (records.next(0, kMaxRecord, content) == Unsealer::State::kRecord) std::abort();
}

void reply(const std::string& text) {
  RemoteDevice device([&](const std::string&, uint64_t) { return text; }, 1);
  GraphSpec spec;
  spec.values.resize(2);
  spec.values[0].extents = spec.values[1].extents = {4};
  spec.nodes.push_back({"Relu", "", 14, {0}, {1}, {}});
  spec.inputs = {0};
  spec.outputs = {1};
  const std::vector<backplane::onnx::Tensor> inputs = {{BP_DTYPE_FLOAT, {4}, std::vector<std::byte>(16)}};
  const auto try_it = [](const auto& what) {
    try {
      what();
    } catch (const std::runtime_error&) {
    }
  };
  try_it([&] { device.identity(); });
  try_it([&] { device.newest_opset(); });
  try_it([&] { device.review(spec); });
  try_it([&] {
    std::vector<Claim> claims;
    if (device.coverage(spec, claims).ok() && claims.size() != 1) std::abort();
  });
  try_it([&] {
    std::vector<backplane::onnx::Tensor> outputs;
    if (device.compute(spec, inputs, outputs).ok() && outputs.at(0).bytes.size() != 16) std::abort();
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  forge(text);
  reply(text);
  return 0;
}
