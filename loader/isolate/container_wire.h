// SPDX-License-Identifier: Apache-2.0
// The contents of sequences, optionals and maps in a message.
#pragma once

#include "backplane/memory.h"
#include "isolate/message.h"

namespace backplane::isolate {

// Everything in the container, by the table of the host that made it.
Status write_container(const bp_container_api_t& api, const bp_container_t* container, Writer& out);
// Replaces what is in the container. Stops at what is damaged.
Status read_container(const bp_container_api_t& api, bp_container_t* container, Reader& in);

}  // namespace backplane::isolate
