// SPDX-License-Identifier: Apache-2.0
// External tensor data: files next to the model, each mapped once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "import/mapping.h"

namespace backplane::model {

class ExternalFiles {
 public:
  // Locations are relative to `directory`; if it is empty, no external file is allowed. With links resolved, each file
  // must be in `directory` or in the folder of the file `model` (a path, may be empty). The second folder is for model
  // hub caches, in which a model and its data are links into one folder.
  ExternalFiles(std::string directory, std::string model)
      : directory_(std::move(directory)), model_(std::move(model)) {}

  struct File {
    std::string path;
    std::shared_ptr<const Mapping> mapping;
  };
  // Opens the file at a tensor's `location`. The result is valid as long as this object.
  Result<const File*> open(std::string_view location);
  const std::map<std::string, File, std::less<>>& files() const { return files_; }

 private:
  std::string directory_, model_;
  std::map<std::string, File, std::less<>> files_;  // by location
};

}  // namespace backplane::model
