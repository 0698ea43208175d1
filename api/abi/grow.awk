# SPDX-License-Identifier: Apache-2.0
# Reads a header of the ABI and writes it as a later version could be: every struct that may grow has one more field at its end. What
# the comment before a struct says never grows stays as it is.
/^\/\*/ { comment = "" }
{ comment = comment $0 }
/^typedef struct bp_[a-z_0-9]+ \{/ { grows = tolower(comment) !~ /never grows/; comment = "" }
/^\} bp_[a-z_0-9]+;/ {
    if (grows) print "  uint64_t grown; /* of a later version */"
    grows = 0; comment = ""
}
{ print }
