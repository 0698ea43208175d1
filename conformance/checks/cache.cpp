// SPDX-License-Identifier: Apache-2.0
// Cases of the group cache: stored programs, undamaged and damaged.
#include "checks/group.h"

namespace backplane::conform {
namespace {

struct Stored {
  std::unique_ptr<Subject> subject;
  std::string blob;

  bp_bytes_t bytes() const { return {blob.data(), blob.size()}; }
};

// Compiles and stores a program. nullopt, with the reason in `out_result`, if the device cannot store programs.
std::optional<Stored> store(Bench& bench, Result& out_result) {
  const Device& device = bench.device();
  if (device.plugin().cache == nullptr) {
    out_result = not_supported("the device does not store programs");
    return std::nullopt;
  }
  Stored stored{any_subject(bench, out_result), ""};
  if (stored.subject == nullptr) return std::nullopt;
  Answer answer;
  const auto program = Program::compile(device, *stored.subject->graph, answer);
  if (program == nullptr) {
    out_result = failed(answer.describe());
    return std::nullopt;
  }
  Detail detail;
  const auto append = [](void* self, bp_text_t piece) {
    static_cast<std::string*>(self)->append(piece.data, piece.size);
  };
  const bp_status_t status = device.plugin().cache->serialize(program->raw(), append, &stored.blob, detail.error());
  if (status == BP_OK && !stored.blob.empty()) return stored;
  out_result = status == BP_UNSUPPORTED ? not_supported(detail.text())
               : status == BP_OK        ? failed("serialize returns BP_OK without writing")
                                 : failed(fmt::format("serialize returns {}: {}", status_name(status), detail.text()));
  return std::nullopt;
}

// The BP_CACHE_* value that `validate` reports for a blob. Throws Breach if it fails or reports another value.
uint32_t judged(const Device& device, bp_bytes_t blob) {
  Detail detail;
  uint32_t answer = BP_CACHE_UNUSABLE;
  const bp_status_t status = device.plugin().cache->validate(device.raw(), blob, &answer, detail.error());
  if (status != BP_OK) throw Breach(fmt::format("validate returns {}: {}", status_name(status), detail.text()));
  if (answer > BP_CACHE_UNUSABLE)
    throw Breach(fmt::format("validate returns {}, which is not a BP_CACHE_* value", answer));
  return answer;
}

Result round_trip(Bench& bench) {
  Result result;
  const std::optional<Stored> stored = store(bench, result);
  if (!stored) return result;
  const Device& device = bench.device();
  if (const uint32_t answer = judged(device, stored->bytes()); answer > BP_CACHE_USABLE)
    return failed(fmt::format("validate returns {} for a program that was just stored", answer));
  Answer answer;
  const auto program = Program::restore(device, *stored->subject->graph, stored->bytes(), answer);
  if (program == nullptr) return failed(answer.describe());
  const auto instance = Instance::create(*program, answer);
  if (instance == nullptr) return failed(answer.describe());
  if (answer = instance->bind_all(stored->subject->inputs); !answer.ok()) return failed(answer.describe());
  std::vector<onnx::Tensor> outputs;
  if (answer = instance->run_checked(outputs); !answer.ok()) return failed(answer.describe());
  const std::string fault = stored->subject->fault(outputs);
  return fault.empty() ? passed(1) : failed("a program that was stored and restored computes wrong results: " + fault);
}

// A blob that has one changed byte, is cut short or is followed by a copy of itself must be refused as corrupt or
// stale.
Result damaged(Bench& bench) {
  Result result;
  const std::optional<Stored> stored = store(bench, result);
  if (!stored) return result;
  const Device& device = bench.device();
  const auto refused = [&](const std::string& blob, const std::string& how) -> std::string {
    const bp_bytes_t bytes = {blob.data(), blob.size()};
    const uint32_t judgement = judged(device, bytes);
    Answer answer;
    const auto program = Program::restore(device, *stored->subject->graph, bytes, answer);
    if (program == nullptr) {
      if (answer.status == BP_CORRUPT || answer.status == BP_STALE) return "";
      return fmt::format("{}: {}", how, answer.describe());
    }
    return fmt::format("{}: validate returns {} but the blob is accepted", how, judgement);
  };
  const std::string& blob = stored->blob;
  for (int i = 0; i < 100; ++i) {
    std::string changed = blob;
    const size_t at = blob.size() * static_cast<size_t>(i) / 100;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    if (std::string fault = refused(changed, fmt::format("with byte {} changed", at)); !fault.empty())
      return failed(std::move(fault));
  }
  for (const size_t size : {size_t{0}, size_t{1}, size_t{8}, blob.size() / 2, blob.size() - 1}) {
    if (std::string fault = refused(blob.substr(0, size), fmt::format("cut to {} bytes", size)); !fault.empty())
      return failed(std::move(fault));
  }
  if (std::string fault = refused(blob + blob, "written twice"); !fault.empty()) return failed(std::move(fault));
  return passed(1);
}

}  // namespace

void add_cache(const Selection&, std::vector<Case>& out_cases) {
  out_cases.push_back({"cache/round_trip", round_trip});
  out_cases.push_back({"cache/damaged", damaged});
}

}  // namespace backplane::conform
