// SPDX-License-Identifier: Apache-2.0
// data_client LIBRARY BACKEND FOLDER… [-KNOWN…]: runs the test cases in ONNX's folders through an ONNXIFI library. Uses
// ONNXIFI's own header and loader. BACKEND is part of a backend's name, and KNOWN is a case whose result is known to
// differ. Prints counts. Exits with 1 if a result is wrong, or a refusal is not the one that ONNXIFI prescribes.
#include <onnx/onnxifi_loader.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "onnx/number.h"
#include "onnx/wire.h"

namespace {

using backplane::onnx::Tensor;
namespace fs = std::filesystem;

onnxifi_library library;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The result of a case: "passed", the status of a refusal, or the error.
struct Result {
  bool good;
  std::string text;
};

std::string text_of(onnxStatus status) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%04x", static_cast<unsigned>(status));
  return text;
}

bool is_expressible(uint32_t dtype) {
  constexpr uint32_t kBool = 9, kString = 8, kLast = ONNXIFI_DATATYPE_BFLOAT16;
  return dtype != kBool && dtype != kString && dtype <= kLast;
}

// SUCCESS if ONNXIFI can express the tensor's type and extents; otherwise the status with which it refuses them.
onnxStatus expressible(const Tensor& tensor) {
  if (std::ranges::count(tensor.extents, 0) != 0) return ONNXIFI_STATUS_INVALID_SHAPE;
  if (!is_expressible(tensor.dtype)) return ONNXIFI_STATUS_INVALID_DATATYPE;
  return ONNXIFI_STATUS_SUCCESS;
}

// What the model declares about an input or output.
struct Declared {
  std::string name;
  bp_dtype_t dtype;
  std::optional<std::vector<int64_t>> extents;  // -1: any
};

// SUCCESS if the tensor is as declared; otherwise the status that comes first in ONNXIFI's header.
onnxStatus matches(const Tensor& tensor, const Declared& declared) {
  const auto fits = [](int64_t extent, int64_t wanted) { return wanted < 0 || extent == wanted; };
  if (declared.extents && !std::ranges::equal(tensor.extents, *declared.extents, fits))
    return ONNXIFI_STATUS_MISMATCHING_SHAPE;
  return tensor.dtype == declared.dtype ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_MISMATCHING_DATATYPE;
}

struct Described {
  std::string name;
  Declared declared;
  Tensor tensor;
  std::vector<uint64_t> shape;
};

onnxTensorDescriptorV1 describe(Described& one) {
  one.shape.assign(one.tensor.extents.begin(), one.tensor.extents.end());
  onnxTensorDescriptorV1 d{};
  d.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1;
  d.name = one.name.c_str();
  d.dataType = one.tensor.dtype;
  d.memoryType = ONNXIFI_MEMORY_TYPE_CPU;
  d.dimensions = static_cast<uint32_t>(one.shape.size());
  d.shape = one.shape.data();
  d.buffer = reinterpret_cast<onnxPointer>(one.tensor.bytes.data());
  return d;
}

// The tolerance of ONNX's own tests: 1e-3 relative plus 1e-7 absolute.
bool agrees(const Tensor& got, const Tensor& want) {
  if (std::memcmp(got.bytes.data(), want.bytes.data(), want.bytes.size()) == 0) return true;
  for (uint64_t i = 0; i < want.count(); ++i) {
    const std::complex<double> g = backplane::onnx::number_at(got, i), w = backplane::onnx::number_at(want, i);
    const auto near = [](double x, double y) {
      return x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= 1e-7 + 1e-3 * std::abs(y);
    };
    if (!near(g.real(), w.real()) || !near(g.imag(), w.imag())) return false;
  }
  return true;
}

// Appends the tensors in `kind`_0.pb, `kind`_1.pb, … up to the first missing one. Returns false if one is malformed.
bool read_values(const fs::path& folder, const char* kind, const std::vector<Declared>& declared,
                 std::vector<Described>& values) {
  for (size_t i = 0; i < declared.size(); ++i) {
    const fs::path path = folder / (std::string(kind) + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) break;
    try {
      Tensor tensor = backplane::onnx::parse_value(read_file(path), BP_KIND_TENSOR).tensor;
      values.push_back({declared[i].name, declared[i], std::move(tensor), {}});
    } catch (const backplane::onnx::Malformed&) {
      return false;
    }
  }
  return true;
}

Result run_set(onnxBackend backend, const std::string& bytes, const backplane::onnx::ModelProto& model,
               const fs::path& folder, bool event_first) {
  std::vector<Declared> inputs, outputs;
  std::set<std::string> weights;
  for (const auto& initializer : model.graph().initializer()) weights.insert(initializer.name());
  bool has_no_descriptor = false;  // a sequence, optional or map, or a type that ONNXIFI does not have
  const auto declare = [&](std::vector<Declared>& list, const auto& value) {
    const auto dtype = static_cast<bp_dtype_t>(value.type().tensor_type().elem_type());
    has_no_descriptor = has_no_descriptor || !value.type().has_tensor_type() || !is_expressible(dtype);
    Declared declared{value.name(), dtype, {}};
    if (value.type().tensor_type().has_shape()) {
      declared.extents.emplace();
      for (const auto& dim : value.type().tensor_type().shape().dim())
        declared.extents->push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    }
    list.push_back(std::move(declared));
  };
  for (const auto& input : model.graph().input())
    if (weights.count(input.name()) == 0) declare(inputs, input);
  for (const auto& output : model.graph().output()) declare(outputs, output);

  onnxGraph graph = nullptr;
  onnxStatus status = library.onnxInitGraph(backend, nullptr, bytes.size(), bytes.data(), 0, nullptr, &graph);
  if (has_no_descriptor) {
    if (status == ONNXIFI_STATUS_SUCCESS) library.onnxReleaseGraph(graph);
    return {status == ONNXIFI_STATUS_UNSUPPORTED_DATATYPE, "onnxInitGraph refused: " + text_of(status)};
  }
  if (status != ONNXIFI_STATUS_SUCCESS) return {false, "onnxInitGraph " + text_of(status)};
  std::vector<Described> in, want;
  if (!read_values(folder, "input", inputs, in) || !read_values(folder, "output", outputs, want) ||
      in.size() != inputs.size() || want.size() != outputs.size()) {
    library.onnxReleaseGraph(graph);
    return {false, "the data of the case cannot be read"};
  }
  std::vector<Described> got = want;
  std::vector<onnxTensorDescriptorV1> in_descriptors, out_descriptors;
  onnxStatus refusal = ONNXIFI_STATUS_SUCCESS, mismatch = ONNXIFI_STATUS_SUCCESS;
  const auto expect = [&](const Described& one) {
    if (refusal == ONNXIFI_STATUS_SUCCESS) refusal = expressible(one.tensor);
    if (mismatch == ONNXIFI_STATUS_SUCCESS) mismatch = matches(one.tensor, one.declared);
  };
  for (Described& one : in) {
    in_descriptors.push_back(describe(one));
    expect(one);
  }
  for (Described& one : got) {
    std::fill(one.tensor.bytes.begin(), one.tensor.bytes.end(), std::byte{0xA5});
    out_descriptors.push_back(describe(one));
    expect(one);
  }
  if (refusal == ONNXIFI_STATUS_SUCCESS) refusal = mismatch;
  status = library.onnxSetGraphIO(graph, static_cast<uint32_t>(in.size()), in_descriptors.data(),
                                  static_cast<uint32_t>(got.size()), out_descriptors.data());
  if (status != refusal) return {false, "onnxSetGraphIO " + text_of(status) + " instead of " + text_of(refusal)};
  Result result{true, "passed"};
  if (refusal != ONNXIFI_STATUS_SUCCESS) {
    result.text = "onnxSetGraphIO refused: " + text_of(refusal);
  } else {
    onnxMemoryFenceV1 before{}, after{};
    before.tag = after.tag = ONNXIFI_TAG_MEMORY_FENCE_V1;
    status = library.onnxInitEvent(backend, &before.event);
    if (status == ONNXIFI_STATUS_SUCCESS && event_first) status = library.onnxSignalEvent(before.event);
    if (status == ONNXIFI_STATUS_SUCCESS) status = library.onnxRunGraph(graph, &before, &after);
    if (status == ONNXIFI_STATUS_SUCCESS && !event_first) status = library.onnxSignalEvent(before.event);
    if (status == ONNXIFI_STATUS_SUCCESS) status = library.onnxWaitEvent(after.event);
    if (status != ONNXIFI_STATUS_SUCCESS) result = {false, "running: " + text_of(status)};
    library.onnxReleaseEvent(before.event);
    if (after.event != nullptr) library.onnxReleaseEvent(after.event);
    for (size_t i = 0; result.good && i < got.size(); ++i) {
      if (!agrees(got[i].tensor, want[i].tensor)) result = {false, "output '" + outputs[i].name + "' differs"};
    }
  }
  library.onnxReleaseGraph(graph);
  return result;
}

Result run_case(onnxBackend backend, const fs::path& folder, bool event_first) {
  const std::string bytes = read_file(folder / "model.onnx");
  backplane::onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) return {false, "model.onnx is not a model"};
  return run_set(backend, bytes, model, folder / "test_data_set_0", event_first);
}

onnxBackend open(const std::string& name) {
  size_t count = 0;
  if (library.onnxGetBackendIDs(nullptr, &count) != ONNXIFI_STATUS_FALLBACK) return nullptr;
  std::vector<onnxBackendID> ids(count);
  if (library.onnxGetBackendIDs(ids.data(), &count) != ONNXIFI_STATUS_SUCCESS) return nullptr;
  for (onnxBackendID id : ids) {
    char text[256];
    size_t size = sizeof text;
    onnxBackend backend = nullptr;
    if (library.onnxGetBackendInfo(id, ONNXIFI_BACKEND_NAME, text, &size) == ONNXIFI_STATUS_SUCCESS &&
        std::string(text, size).find(name) != std::string::npos &&
        library.onnxInitBackend(id, nullptr, &backend) == ONNXIFI_STATUS_SUCCESS)
      return backend;
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "usage: %s LIBRARY BACKEND FOLDER... [-KNOWN...]\n", argv[0]), 2;
  if (onnxifi_load(ONNXIFI_LOADER_FLAG_VERSION_1_0, argv[1], &library) == 0)
    return std::fprintf(stderr, "ONNXIFI's loader cannot load %s\n", argv[1]), 1;
  onnxBackend backend = open(argv[2]);
  if (backend == nullptr) return std::fprintf(stderr, "no backend is named %s\n", argv[2]), 1;
  std::map<std::string, int> counts;
  std::set<std::string> known;  // cases that cannot agree, see docs/conformance-exceptions.md
  for (int i = 3; i < argc; ++i) {
    if (argv[i][0] == '-') known.insert(argv[i] + 1);
  }
  int wrong = 0;
  bool event_first = false;
  for (int i = 3; i < argc; ++i) {
    if (argv[i][0] == '-') continue;
    std::vector<fs::path> folders;
    for (const auto& each : fs::directory_iterator(argv[i])) folders.push_back(each.path());
    std::ranges::sort(folders);
    for (const fs::path& folder : folders) {
      if (!fs::exists(folder / "model.onnx")) continue;
      const Result result = run_case(backend, folder, event_first = !event_first);
      if (result.good) {
        ++counts[result.text];
      } else if (known.count(folder.filename()) != 0) {
        ++counts["wrong or random by docs/conformance-exceptions.md"];
      } else {
        ++wrong;
        std::printf("FAILED %s: %s\n", folder.filename().c_str(), result.text.c_str());
      }
    }
  }
  for (const auto& [text, count] : counts) std::printf("%5d %s\n", count, text.c_str());
  std::printf("%5d failed\n", wrong);
  if (counts["passed"] == 0) std::printf("nothing was run\n");
  onnxifi_unload(&library);
  return wrong == 0 && counts["passed"] != 0 ? 0 : 1;
}
