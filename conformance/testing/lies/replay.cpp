// SPDX-License-Identifier: Apache-2.0
// Replays results recorded with the public seeds: if BACKPLANE_REPLAY_RECORD is set, it appends the honest results to
// the file that BACKPLANE_REPLAY names; otherwise it returns results from that file, or zeros if a run is not in it.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>

#include "testing/wrapper.h"

namespace backplane::liar {
namespace {

std::string bytes_of(const Bound& bound) {
  return {bound.bytes(), bound.tensor.buffer.bytes};
}

// Identifies a run by a hash of its operator, its inputs, and the types and extents of inputs and outputs.
uint64_t question(const Run& run) {
  std::string text = run.op;
  for (const Bound& input : run.inputs) text += bytes_of(input);
  for (const std::vector<Bound>* bounds : {&run.inputs, &run.outputs}) {
    for (const Bound& bound : *bounds) {
      for (const int64_t extent : bound.extents) text += "," + std::to_string(extent);
      text += ";" + std::to_string(bound.tensor.dtype);
    }
  }
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

using Answers = std::map<uint64_t, std::string>;

// Each record of the file is the hash of a run (8 bytes), a size (8 bytes) and that many bytes of results.
Answers read_answers(const char* file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  Answers answers;
  for (size_t at = 0; at + 16 <= text.size();) {
    uint64_t key, size;
    std::memcpy(&key, text.data() + at, 8);
    std::memcpy(&size, text.data() + at + 8, 8);
    answers[key] = text.substr(at + 16, size);
    at += 16 + size;
  }
  return answers;
}

void record(const Run& run, const char* file) {
  const uint64_t key = question(run);
  std::string bytes;
  for (const Bound& output : run.outputs) bytes += bytes_of(output);
  const uint64_t size = bytes.size();
  const std::string text = std::string(reinterpret_cast<const char*>(&key), 8) +
                           std::string(reinterpret_cast<const char*>(&size), 8) + bytes;
  std::ofstream(file, std::ios::binary | std::ios::app).write(text.data(), static_cast<std::streamsize>(text.size()));
}

void replay(Run& run) {
  const char* file = std::getenv("BACKPLANE_REPLAY");
  if (file == nullptr) return;
  if (std::getenv("BACKPLANE_REPLAY_RECORD") != nullptr) return record(run, file);
  static const Answers kAnswers = read_answers(file);
  const auto known = kAnswers.find(question(run));
  size_t at = 0;
  for (const Bound& output : run.outputs) {
    const uint64_t size = output.tensor.buffer.bytes;
    if (known == kAnswers.end())
      std::memset(output.bytes(), 0, size);
    else
      std::memcpy(output.bytes(), known->second.data() + at, size);
    at += size;
  }
}

}  // namespace

const Lie kLie = {.after = replay};

}  // namespace backplane::liar
