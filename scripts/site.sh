#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the site: the tree's pages by MkDocs, the headers by Doxygen. A browser that shows it fetches nothing from elsewhere.
set -euo pipefail

usage() {
    cat <<'END'
scripts/site.sh [--out FOLDER]

Builds the site in FOLDER (build/site/html) from the tracked pages and headers, and checks every link in it and, where Chromium is installed,
that the pages fit on a phone. index.html can be opened from the disk; only the search needs a server (python3 -m http.server). Needs mkdocs and doxygen (scripts/setup.sh --gates installs them).

Exit status: 0 if no link is broken and every page fits, 77 if a tool is missing.
END
}

out=''
while [[ $# -gt 0 ]]; do
    case $1 in
        --out) out=$(realpath -m "${2:?--out needs a folder}"); shift 2 ;;
        --help | -h) usage; exit 0 ;;
        *) echo "site.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
    esac
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for tool in mkdocs doxygen; do
    command -v "$tool" >/dev/null || { echo "site: skipped: $tool is missing; scripts/setup.sh --gates installs it"; exit 77; }
done
: "${out:=$PWD/build/site/html}"
rm -rf build/site "$out"
mkdir -p build/site
/usr/bin/python3 -B docs/site/stage.py "$PWD" build/site/pages
mkdocs --quiet build --config-file docs/site/mkdocs.yml --site-dir "$out" --strict
rm -f "$out/404.html" # works only in the root of a server

# Turns the headers' plain comments, before or after a declaration, into Doxygen's. Removes the lines that divide a header into sections.
filter='sed -E -e "/^ *(\/\*|\/\/) ---+/d" -e "s,^( *)/\* ,\1/** ," -e "s,([;{\,u)]) +/\* (.*),\1 /**< \2," -e "s,^( *)// ,\1/// ," -e "s,([;{\,]) +// (.*),\1 ///< \2,"'
printf '%s\n' 'PROJECT_NAME = "Backplane: C ABI, C++ client and SDK"' 'INPUT = api/include/backplane api/cpp/backplane build/site/main.md' 'RECURSIVE = YES' \
    'FILE_PATTERNS = *.h *.hpp' 'USE_MDFILE_AS_MAINPAGE = build/site/main.md' 'HTML_EXTRA_STYLESHEET = docs/site/headers.css' 'EXTRACT_ALL = YES' 'OPTIMIZE_OUTPUT_FOR_C = YES' 'GENERATE_LATEX = NO' "OUTPUT_DIRECTORY = $out" \
    'HTML_OUTPUT = headers' 'QUIET = YES' 'WARNINGS = NO' 'HAVE_DOT = NO' 'MACRO_EXPANSION = YES' 'EXPAND_ONLY_PREDEF = YES' \
    'PREDEFINED = BP_EXPORT= BP_CALL= BP_EXTERN_C_BEGIN= BP_EXTERN_C_END=' 'JAVADOC_AUTOBRIEF = YES' 'SEARCHENGINE = NO' 'HTML_TIMESTAMP = NO' \
    'STRIP_FROM_PATH = api/include api/cpp' 'INPUT_FILTER = build/site/filter.sh' >build/site/Doxyfile
# shellcheck disable=SC2016
printf '#!/bin/sh\n%s "$1"\n' "$filter" >build/site/filter.sh
chmod +x build/site/filter.sh
printf '%s\n' '# Headers' '' 'The C ABI, the C++ client and the vendor SDK, <a href="files.html">by file</a> and <a href="annotated.html">by type</a>.' '' \
    '<a href="../index.html">Back to the site</a>' >build/site/main.md
doxygen build/site/Doxyfile
/usr/bin/python3 -B docs/site/check.py "$out"

mapfile -t pages < <(find "$out" -name '*.html')
for ((i = 0; i < ${#pages[@]}; i += 100)); do
    status=0
    scripts/page_width.sh "${pages[@]:i:100}" >build/site/width.txt || status=$?
    if [[ $status == 77 ]]; then
        echo "site: no link is broken; the width of its pages is not checked, because no Chromium is installed"
        exit
    fi
    [[ $status == 0 ]] || { cat build/site/width.txt; exit 1; }
done
echo "site: no link is broken, and ${#pages[@]} pages fit on a phone"
