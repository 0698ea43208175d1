// SPDX-License-Identifier: Apache-2.0
#include "import/parse.h"

#include <filesystem>
#include <new>
#include <stdexcept>

#include "import/parser.h"

namespace backplane::model {

Result<std::shared_ptr<Model>> parse(const Source& source) {
  if (!source.path.empty() + (source.bytes != nullptr) + (source.descriptor >= 0) != 1) {
    return Status(BP_INVALID_ARGUMENT,
                  "a model comes from a path, from bytes or from a descriptor: set exactly one of them");
  }
  auto model = std::make_shared<Model>();
  std::string_view bytes;
  std::string directory = source.directory;
  if (source.bytes) {
    bytes = {static_cast<const char*>(source.bytes), source.size};
    model->origin = "<memory>";
  } else {
    BP_ASSIGN(auto mapping,
              source.path.empty() ? Mapping::of_descriptor(source.descriptor) : Mapping::open(source.path));
    bytes = mapping->bytes();
    model->storage.push_back(std::move(mapping));
    model->origin = source.path.empty() ? "<descriptor>" : source.path;
    if (!source.path.empty() && directory.empty()) {
      directory = std::filesystem::path(source.path).parent_path().string();
      if (directory.empty()) directory = ".";
    }
  }
  ExternalFiles external(directory, source.path);
  try {
    model->budget = std::make_shared<Budget>(source.limits, bytes.size());
    Parser(*model, bytes, source.path, external).parse_model();
  } catch (Malformed& error) {
    return std::move(error.status);
  } catch (Budget::Exhausted& stop) {
    return std::move(stop.status);
  } catch (const protozero::exception&) {
    return Status(BP_INVALID_MODEL, "not an ONNX model, or truncated: its bytes are not a complete protobuf message");
  } catch (const std::bad_alloc&) {
    return Status(BP_RESOURCE_EXHAUSTED, "no memory left for the model");
  } catch (const std::length_error&) {
    return Status(BP_RESOURCE_EXHAUSTED, "the model's arrays are too long");
  }
  for (const auto& [location, file] : external.files()) model->storage.push_back(file.mapping);
  return model;
}

}  // namespace backplane::model
