# SPDX-License-Identifier: Apache-2.0
# Reads a header of the ABI and writes one as a later version could have it: every struct that may grow has one more field at its end.
# A struct whose comment says "never grows" is unchanged. Fails on a struct that it cannot parse, so that no struct is left out.
function fail(why) {
    print FILENAME ":" FNR ": " why > "/dev/stderr"
    failed = 1
    exit 1
}
/^\/\*/ { comment = "" }
{
    line = $0
    sub(/^ \*/, "", line) # removes the star of a comment's continuation line, as "never grows" may span two lines
    comment = comment line
}
/^(typedef )?struct bp_[a-z_0-9]+ \{$/ {
    if (open) fail("the struct before this one has no end that grow.awk recognizes")
    open = 1
    named = /^typedef/
    grows = tolower(comment) !~ /never grows/
    comment = ""
}
(/struct[^;(]*\{/ && comment != "") || /^(typedef )?struct [^;({]*$/ { fail("a struct begins in a way that grow.awk does not recognize") }
/^\}( bp_[a-z_0-9]+)?;/ && open {
    if (named != (NF > 1)) fail("a struct ends in a way that grow.awk does not recognize")
    if (grows) print "  uint64_t grown; /* of a later version */"
    open = 0
    comment = ""
}
{ print }
END { if (open && !failed) fail("the last struct has no end that grow.awk recognizes") }
