# SPDX-License-Identifier: Apache-2.0
# Prints a line for every function pointer in the structs of the ABI's headers: SLOT(table, slot) for tables between
# plugin and host, CALLBACK(struct, slot) for structs that are passed in a call, and FUNCTION(bp_loader_api_t, slot) for
# the loader's table. Fails on a function pointer that is neither a member of a struct nor a typedef.
/^(typedef )?struct bp_[a-z_]+ \{$/ { table = $1 == "typedef" ? $3 : $2 }
/^\}/ { table = "" }
/\(BP_CALL\*/ {
    if (table == "" && /^typedef /) next
    if (table == "" || !match($0, /\(BP_CALL\* ?[a-z_0-9]+\)\(/)) {
        print FILENAME ":" FNR ": a function pointer that slots.awk does not understand" >"/dev/stderr"
        exit failed = 1
    }
    slot = substr($0, RSTART, RLENGTH)
    gsub(/\(BP_CALL\* ?|\)\(/, "", slot)
    kind = table == "bp_loader_api_t" ? "FUNCTION" : table ~ /_api_t$|^bp_plugin_t$|^bp_host_t$/ ? "SLOT" : "CALLBACK"
    print kind "(" table ", " slot ")"
}
END { exit failed }
