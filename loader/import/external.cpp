// SPDX-License-Identifier: Apache-2.0
#include "import/external.h"

#include <algorithm>
#include <filesystem>

#include "base/names.h"

namespace backplane::model {
namespace {

namespace fs = std::filesystem;

bool lies_in(const fs::path& file, const fs::path& directory) {
  const auto [end, unused] = std::mismatch(directory.begin(), directory.end(), file.begin(), file.end());
  return end == directory.end();
}

}  // namespace

Result<const ExternalFiles::File*> ExternalFiles::open(std::string_view location) {
  if (const auto found = files_.find(location); found != files_.end()) return &found->second;
  const std::string name = "external data " + in_quotes(location);
  if (location.empty())
    return Status(BP_INVALID_MODEL,
                  "external data without a location, which must be a path relative to the model's directory");
  if (location.find('\0') != location.npos)
    return Status(BP_INVALID_MODEL, name + " is not a file name: it contains a zero byte");
  if (directory_.empty()) {
    return Status(BP_INVALID_MODEL,
                  name + " cannot be found: the model does not come from a path and no directory was given with it");
  }
  const fs::path relative(location);
  if (relative.is_absolute() || std::find(relative.begin(), relative.end(), "..") != relative.end()) {
    return Status(BP_INVALID_MODEL,
                  name + " is outside the model's directory: the location must be relative and without " +
                      "'..'; put the file next to the model");
  }
  std::error_code error;
  const fs::path folder = fs::canonical(directory_, error);
  if (error) return Status(BP_NOT_FOUND, name + ": directory '" + directory_ + "': " + error.message());
  const fs::path path = fs::canonical(folder / relative, error);
  if (error) return Status(BP_NOT_FOUND, name + " in '" + folder.string() + "': " + error.message());
  const fs::path store = model_.empty() ? folder : fs::canonical(model_, error).parent_path();
  if (!lies_in(path, folder) && (error || !lies_in(path, store))) {
    return Status(BP_INVALID_MODEL,
                  name + " is a link that leaves the model's directory, to '" + path.string() +
                      "'; put the file itself next to the model, or let the model be a link into the same folder");
  }
  BP_ASSIGN(auto mapping, Mapping::open_canonical(path.string()));
  return &files_.emplace(std::string(location), File{path.string(), std::move(mapping)}).first->second;
}

}  // namespace backplane::model
