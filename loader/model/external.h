// SPDX-License-Identifier: Apache-2.0
// External tensor data: files beside the model, each mapped once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "model/mapping.h"
#include "status.h"

namespace backplane::model {

class ExternalFiles {
 public:
  // Files must lie in `directory` after links are followed; an empty one allows none.
  explicit ExternalFiles(std::string directory) : directory_(std::move(directory)) {}

  struct File {
    std::string path;
    std::shared_ptr<const Mapping> mapping;
  };
  // The file that a tensor's `location` names. The reference holds as long as this object.
  Result<const File*> open(std::string_view location);
  const std::map<std::string, File, std::less<>>& files() const { return files_; }

 private:
  std::string directory_;
  std::map<std::string, File, std::less<>> files_;  // by location
};

}  // namespace backplane::model
