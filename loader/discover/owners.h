// SPDX-License-Identifier: Apache-2.0
// Which users are trusted as owners of files, and whether a group has members who are not.
#pragma once

#include <sys/types.h>

namespace backplane {

// Root, the effective user, and the owner of the file that contains this code: they control this process anyway. In a
// user namespace also the user who stands for all those outside it, since the system's files may belong to it.
bool is_trusted_owner(uid_t user);

// Whether users other than root, the effective user and `owner` may be members of `group`, according to /etc/group and
// /etc/passwd. True for groups that are not listed there, except for root's and for one with the number of its owner.
bool has_other_members(gid_t group, uid_t owner);

}  // namespace backplane
