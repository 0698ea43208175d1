// SPDX-License-Identifier: Apache-2.0
// Reads and writes the contents of sequences, optionals and maps in messages.
#pragma once

#include "backplane/memory.h"
#include "isolate/message.h"

namespace backplane::isolate {

// Writes all elements. `api` has the container functions of the host that created the container. BP_UNSUPPORTED: an
// element is not a dense tensor, or containers are nested too deeply.
Status write_container(const bp_container_api_t& api, const bp_container_t* container, Writer& out);
// Replaces the container's elements with those in the message. BP_CORRUPT: the message is damaged, and the container
// may have some of its elements.
Status read_container(const bp_container_api_t& api, bp_container_t* container, Reader& in);

}  // namespace backplane::isolate
