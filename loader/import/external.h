// SPDX-License-Identifier: Apache-2.0
// External tensor data: files beside the model, each mapped once.
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
  // Files are named within `directory`; an empty one allows none. After links are followed they must lie there, or in
  // the folder of the file that `model` (a path, or empty) is after links are followed: caches of model hubs keep a
  // model and its data as links into one store.
  ExternalFiles(std::string directory, std::string model)
      : directory_(std::move(directory)), model_(std::move(model)) {}

  struct File {
    std::string path;
    std::shared_ptr<const Mapping> mapping;
  };
  // The file that a tensor's `location` names. The reference holds as long as this object.
  Result<const File*> open(std::string_view location);
  const std::map<std::string, File, std::less<>>& files() const { return files_; }

 private:
  std::string directory_, model_;
  std::map<std::string, File, std::less<>> files_;  // by location
};

}  // namespace backplane::model
