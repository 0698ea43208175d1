# SPDX-License-Identifier: Apache-2.0
# Reads the ABI's headers and writes a C program that prints their layout: each constant, each struct with the offset, size and
# declaration of each field, and each exported function. The program fails if the fields of a struct leave a hole: then padding is
# not declared as a field, or this script has overlooked a field. With --sizes the program prints the header sizes.h, with --version
# the ABI's version.
function squeeze(s) { gsub(/[ \t\n]+/, " ", s); sub(/^ /, "", s); sub(/ $/, "", s); return s }

function field(struct, declaration,    name) {
    name = declaration
    if (match(name, /\(BP_CALL\* ?[a-z_0-9]+\)/)) {
        name = substr(name, RSTART, RLENGTH); sub(/.*[* ]/, "", name); sub(/\)/, "", name)
    } else {
        sub(/\[[^\]]*\]$/, "", name); sub(/.*[* ]/, "", name)
    }
    print "  FIELD(" struct ", " name ", \"" declaration "\")"
}

function structure(name, body,    parts, n, i) {
    print "  STRUCT(" name ")"
    sizes = sizes "  SIZE(" name ")\n"
    n = split(body, parts, ";")
    for (i = 1; i <= n; i++) if (squeeze(parts[i]) != "") field(name, squeeze(parts[i]))
    print "  END(" name ")"
}

BEGIN {
    print "#include <stdio.h>\n#include <string.h>"
    print "static size_t end;\nstatic int holes;"
    print "#define TYPE(d) printf(\"%s\\n\", d);"
    print "#define CONSTANT(c) printf(\"constant %s %lld\\n\", #c, (long long)(c));"
    print "#define TEXT(c) printf(\"constant %s \\\"%s\\\"\\n\", #c, c);"
    print "#define FUNCTION(d) printf(\"function %s\\n\", d);"
    print "#define STRUCT(s) end = 0; printf(\"struct %s %zu\\n\", #s, sizeof(s));"
    print "#define FIELD(s, f, d) if (offsetof(s, f) != end) { fprintf(stderr, \"%s has a hole before %s\\n\", #s, #f); holes++; } \\"
    print "  end = offsetof(s, f) + sizeof(((s*)0)->f); \\"
    print "  printf(\"  %4zu %3zu  %s\\n\", offsetof(s, f), sizeof(((s*)0)->f), d);"
    print "#define SIZE(s) printf(\" \\\\\\n  X(%s, %zuu)\", #s, sizeof(s));"
    print "#define END(s) if (sizeof(s) != end) { fprintf(stderr, \"%s has a hole at its end\\n\", #s); holes++; }"
}
FNR == 1 { header = FILENAME; sub(/.*\/include\//, "", header); print "#include \"" header "\"" }

# Removes comments and preprocessor lines, after collecting constants from the preprocessor lines.
{
    line = $0
    while (1) {
        if (comment) {
            if (!match(line, /\*\//)) { line = ""; break }
            line = substr(line, RSTART + 2); comment = 0
        }
        if (!match(line, /\/\*/)) break
        rest = substr(line, RSTART + 2); kept = kept substr(line, 1, RSTART - 1)
        line = rest; comment = 1
    }
    line = kept line; kept = ""
}
continued { continued = line ~ /\\$/; next }
line ~ /^#/ {
    continued = line ~ /\\$/
    if (line ~ /^#define BP_[A-Z0-9_]+ +[^ ]/) {
        split(line, word, /[ ]+/)
        if (word[2] ~ /^BP_(CALL|EXPORT|EXTERN_C_BEGIN|EXTERN_C_END)$/) next
        constants = constants (word[3] ~ /^"/ ? "  TEXT(" : "  CONSTANT(") word[2] ")\n"
    }
    next
}
# A function with a body is compiled into its caller, so it is not part of the ABI.
line ~ /^static inline/ { inside = 1 }
inside { if (line ~ /^}/) inside = 0; next }
line ~ /^BP_EXTERN_C/ { next }
{ text = text "\n" line }

END {
    printf "static void print_layout(void) {\n%s", constants
    while (match(text, /struct bp_[a-z_0-9]+ \{[^}]*\}/)) {
        body = substr(text, RSTART, RLENGTH); text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH)
        name = body; sub(/^struct /, "", name); sub(/ \{.*/, "", name)
        sub(/^[^{]*\{/, "", body); sub(/\}$/, "", body)
        structure(name, body)
    }
    n = split(text, parts, ";")
    for (i = 1; i <= n; i++) {
        declaration = squeeze(parts[i])
        if (declaration ~ /^BP_EXPORT /) { sub(/^BP_EXPORT /, "", declaration); print "  FUNCTION(\"" declaration "\")" }
        if (declaration ~ /^typedef / && split(declaration, word, " ") > 2) print "  TYPE(\"" declaration "\")"
    }
    print "}"
    print "static void print_sizes(void) {"
    print "  puts(\"/* SPDX-License-Identifier: Apache-2.0\\n *\\n * The size of each struct in ABI 1.0, below which a reader refuses it. Made by\""
    print "       \"\\n * api/abi/layout_test.sh --renew; until 1.0 is tagged it follows the draft, then it never changes.\\n */\");"
    print "  puts(\"/* clang-format off */\");"
    print "  puts(\"#ifndef BACKPLANE_SIZES_H\\n#define BACKPLANE_SIZES_H\\n\\n#include <stdint.h>\\n\");"
    print "  printf(\"/* X(type, size in bytes) for each. */\\n#define BP_EACH_SIZE_1_0(X)\");"
    printf "%s", sizes
    print "  puts(\"\\n\\n/* BP_SIZE_1_0(bp_run_t) */\\n#define BP_SIZE_1_0(type) ((uint32_t)BP_SIZE_1_0_##type)\");"
    print "  puts(\"#define BP_SIZE_1_0_CONSTANT(type, size) BP_SIZE_1_0_##type = (size),\");"
    print "  puts(\"enum { BP_EACH_SIZE_1_0(BP_SIZE_1_0_CONSTANT) };\\n#undef BP_SIZE_1_0_CONSTANT\\n\\n#endif\");\n}"
    print "int main(int argc, char** argv) {"
    print "  if (argc > 1 && strcmp(argv[1], \"--version\") == 0)"
    print "    return printf(\"%u.%u\\n\", BP_VERSION_MAJOR(BP_ABI_VERSION), BP_VERSION_MINOR(BP_ABI_VERSION)) < 0;"
    print "  if (argc > 1) print_sizes();"
    print "  else print_layout();"
    print "  return holes != 0;\n}"
}
