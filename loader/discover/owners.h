// SPDX-License-Identifier: Apache-2.0
// Which users are trusted as owners of files, and whether a group has members who are not.
#pragma once

#include <sys/types.h>

namespace backplane {

// Root, the effective user, and the owner of the file that contains this code: they control this process anyway. In a
// user namespace, also the user to whom the files of all users outside the namespace seem to belong, because the
// system's files may be among them.
bool is_trusted_owner(uid_t user);

// Whether users other than root, the effective user and `owner` may be members of `group`, according to /etc/group and
// /etc/passwd. True for a group that is not listed there, unless its number is 0 or that of `owner`.
bool has_other_members(gid_t group, uid_t owner);

}  // namespace backplane
