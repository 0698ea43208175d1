// SPDX-License-Identifier: Apache-2.0
// The contents of sequences, optionals and maps in a message.
#pragma once

#include "backplane/memory.h"
#include "isolate/message.h"

namespace backplane::isolate {

// Writes all elements, which `api`, the table of the host that created the container, returns.
Status write_container(const bp_container_api_t& api, const bp_container_t* container, Writer& out);
// Replaces the container's elements by those in the message. BP_CORRUPT at the first damaged element.
Status read_container(const bp_container_api_t& api, bp_container_t* container, Reader& in);

}  // namespace backplane::isolate
