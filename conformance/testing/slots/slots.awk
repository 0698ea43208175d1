# SPDX-License-Identifier: Apache-2.0
# Prints SLOT(table, slot) for every function pointer of the structs in the ABI's headers whose names end in _api_t, of bp_plugin_t and
# of bp_host_t.
/^(typedef )?struct bp_[a-z_]+ \{$/ { table = $1 == "typedef" ? $3 : $2 }
/^\}/ { table = "" }
table ~ /_api_t$|^bp_plugin_t$|^bp_host_t$/ && table != "bp_loader_api_t" && match($0, /\(BP_CALL\* ?[a-z_0-9]+\)\(/) {
    slot = substr($0, RSTART, RLENGTH)
    gsub(/\(BP_CALL\* ?|\)\(/, "", slot)
    print "SLOT(" table ", " slot ")"
}
