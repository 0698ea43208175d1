// SPDX-License-Identifier: Apache-2.0
// Keeps a command from replacing what it reads.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace backplane::cli {

// Throws Usage if `output`, to which `option` makes the command write, is the same file as one of `inputs`, by any name
// or link. Names without a file are ignored.
void keep_inputs(std::string_view option, const std::filesystem::path& output, const std::vector<std::string>& inputs);

// The files that this process has mapped, such as the weights of models that store them in other files.
std::vector<std::string> mapped_files();

}  // namespace backplane::cli
