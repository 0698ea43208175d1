# SPDX-License-Identifier: Apache-2.0
# Prints a line for every function pointer in the structs of the ABI's headers: SLOT(table, slot) of the tables between plugin and host,
# CALLBACK(struct, slot) of what one side passes to the other with a call, FUNCTION(bp_loader_api_t, slot) of the loader. Fails on a function pointer that
# is neither in a struct that it knows nor a type of its own.
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
