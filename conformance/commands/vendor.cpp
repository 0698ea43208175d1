// SPDX-License-Identifier: Apache-2.0
// `backplane-conform vendor`: a vendor's own cases.
#include "commands/data_command.h"
#include "commands/verb.h"

namespace backplane::conform {

extern const Verb vendor_verb = {"vendor", "runs a vendor's own cases, with its own tolerances",
                                 [](cli::Command command) { return declare_data_command(command, "vendor"); }};

}  // namespace backplane::conform
