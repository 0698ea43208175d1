// SPDX-License-Identifier: Apache-2.0
// Checks who could change or replace a file. Files and folders that others can write to are not trusted, even if their
// present content is good.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "discover/file.h"
#include "discover/refusal.h"

namespace backplane {

// Folders that were already checked, so that of later files in them only the file itself is checked. Valid during one
// search.
using CheckedFolders = std::set<std::string>;

// Follows `path` through every folder and link to its file. BP_REFUSED_UNTRUSTED if the file or any folder on the way
// belongs to a user who is not trusted (owners.h), or is writable by all users, by a group that may have other members,
// or by an access control list. Such a folder with the sticky bit, as /tmp is, is accepted if the path continues with a
// folder in it whose owner is trusted. With elevated privileges everything must belong to root and must not be
// group-writable. A missing file is not refused. `checked` may be null.
Refusal check_writers(const std::filesystem::path& path, CheckedFolders* checked = nullptr);
// The same for a file that was opened by `path`. Also refuses a regular file if `path` now leads to no file or to
// another one. Otherwise another user could put a folder into /tmp while the file is opened, and take it away during
// the check.
Refusal check_writers(const std::filesystem::path& path, const File& opened, CheckedFolders* checked = nullptr);

}  // namespace backplane
