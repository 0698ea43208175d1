#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# files.sh [--root DIR] [FILE…]: every file that may have a comment names the license in its first three lines, no file has a name that a shell
# would split or expand, every option of CMake is read somewhere, no source but loader.h and plugin.h has more than 600 lines, no file is opened
# in a way that can wait or read without end, the runtime of the CPU backend names no operator, and its kernels have at most 24 families of at most 30 files.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
read_arguments "$@"
mapfile -t names < <(tracked '*')
some "${#names[@]}"
bad=0
finding() {
    echo "$1"
    bad=1
}

for name in "${names[@]}"; do
    [[ $name =~ ^[A-Za-z0-9._/+-]+$ ]] || finding "$name: use letters, digits, '.', '_', '+' and '-' in names"
done

# Files that need not name the license: JSON, the license itself and lists that a program reads; data of tests and samples, in which every
# byte counts; templates, from which a vendor's files are made.
mapfile -t texts < <(printf '%s\n' "${names[@]}" |
    grep -vE '(^LICENSE|^cmake/copyright|\.json|(lists|schemas|sentences|stub|words)\.txt|/(testdata|golden|new_backend)/.*\.(in|txt))$' | tr '\n' '\0' |
    xargs -0 -r grep -Il . || true)
if [[ ${#texts[@]} -gt 0 ]]; then
    while IFS= read -r name; do finding "$name:1: put 'SPDX-License-Identifier: Apache-2.0' into a comment"; done < <(
        printf '%s\0' "${texts[@]}" | xargs -0 awk '
            FNR == 1 { if (NR > 1 && !found) print last; found = 0; last = FILENAME }
            FNR <= 3 && /SPDX-License-Identifier: Apache-2\.0/ { found = 1 }
            END { if (!found) print last }')
fi

# An option that is declared and nowhere else mentioned does nothing.
mapfile -t lists < <(printf '%s\n' "${names[@]}" | grep -E '(^|/)CMakeLists\.txt$|\.cmake$' || true)
if [[ ${#lists[@]} -gt 0 && ${#files[@]} -eq 0 ]]; then
    while IFS=: read -r name line option; do
        uses=$(printf '%s\0' "${lists[@]}" | xargs -0 cat | grep -v '^ *#' | grep -cw -- "$option")
        [[ $uses -gt 1 ]] || finding "$name:$line: nothing reads the option $option"
    done < <(printf '%s\0' "${lists[@]}" | xargs -0 grep -HnoE '^ *(option\([A-Z_0-9]+|set\([A-Z_0-9]+ [^)]* CACHE )' | sed -E 's/: *(option|set)\(([A-Z_0-9]+).*/:\2/')
fi
# loader.h and plugin.h may be longer: they are tables of functions, the loader's and a plugin's, each with its contract.
mapfile -t sources < <(printf '%s\n' "${names[@]}" | grep -E '\.(c|h|cc|cpp|hpp|cu|cl|py|sh)$' | grep -vxE 'api/include/backplane/(loader|plugin)\.h' || true)
if [[ ${#sources[@]} -gt 0 ]]; then
    while read -r name count; do finding "$name: has $count lines, more than 600: move one of the things that it defines into a file of its own"; done < <(
        printf '%s\0' "${sources[@]}" | xargs -0 awk 'FNR > 600 { lines[FILENAME] = FNR } END { for (name in lines) print name, lines[name] }')
fi

# Opening a named pipe waits, and a device or a sparse file has no end. So the programs read files through cli/whole_file.h, the loader through
# discover/file.h, and other descriptors for reading have O_NONBLOCK. Files of the system may be read as streams: those whose names are
# literals, and those that these sources read, as listed. Tests and samples may do as they like.
streams='api/cpp/backplane/sdk/file_cache.hpp   a regular file that no other user can write to or replace
backends/onnxifi/search.cpp            /etc/ld.so.conf, and what it includes
conformance/certify/machine.cpp         /proc/cpuinfo, /etc/os-release
conformance/sandbox/cpu_starvation.cpp  /proc/PID/task/*/schedstat
loader/host/cgroup.cpp                  /sys/fs/cgroup
loader/tools/command_limits.cpp         /proc/self/task/*/children'
mapfile -t readers < <(printf '%s\n' "${names[@]}" | grep -E '\.(c|h|cpp|hpp)$' | grep -vE '^samples/|(^|/)testing(/|\.h$)|_(test|fuzz|bench)\.' || true)
if [[ ${#readers[@]} -gt 0 ]]; then
    found=$(printf '%s\0' "${readers[@]}" | xargs -0 grep -HnE '\b(ifstream|fstream|filebuf|fopen|freopen)\b|\bO_RD(ONLY|WR)\b' |
        grep -vE '# *include|"/(dev/null|proc/|sys/|etc/)|O_(NONBLOCK|PATH|DIRECTORY|CREAT)\b|: *//' || true)
    while IFS=: read -r name line _; do
        [[ -z $name ]] || grep -q "^$name " <<<"$streams" ||
            finding "$name:$line: opens a file in a way that can wait or read without end: use cli/whole_file.h or loader/discover/file.h"
    done <<<"$found"
    while read -r name _; do
        [[ ! -f $name || ${#files[@]} -gt 0 ]] || grep -q "^$name:" <<<"$found" ||
            finding "$name: reads no stream any more: delete it from the list in scripts/gates/files.sh"
    done <<<"$streams"
fi

# The runtime of the CPU backend works with rows, kernels and steps of any operators. Names of operators that are also other words there: classes
# (Loop, Shape), and words that begin a sentence (If, Not, Where).
homonyms='If|Loop|Not|Shape|Where'
schemas=loader/ops/schema/schemas.txt
mapfile -t runtime < <(printf '%s\n' "${names[@]}" | grep -E '^backends/cpu/runtime/.*\.(h|cpp)$' || true)
if [[ -f $schemas && ${#runtime[@]} -gt 0 ]]; then
    operators=$(awk '$1 == "op" { print $2 }' "$schemas" | sort -u | grep -vxE "$homonyms")
    while IFS= read -r found; do finding "$found is an operator, and the runtime names none: move the code, or say what holds for any operator"; done < <(
        grep -HnowF -e "$operators" -- "${runtime[@]}" | sed -E 's/:(\w+)$/: \1/')
fi

# A reader should be able to take in a family of kernels, and the list of families: at most 30 files and 24 folders.
kernels=backends/cpu/kernels
if [[ ${#files[@]} -eq 0 ]]; then
    families=$(printf '%s\n' "${names[@]}" | sed -nE "s|^($kernels/[^/]+)/.*|\1|p" | sort | uniq -c)
    while read -r count family; do
        [[ ${count:-0} -le 30 ]] || finding "$family: has $count files, more than 30: move some into a family of their own"
    done <<<"$families"
    count=$(grep -c . <<<"$families" || true)
    [[ $count -le 24 ]] || finding "$kernels: has $count folders, more than 24: merge two families"
fi
echo "files: ${#names[@]} files, $([[ $bad -eq 0 ]] && echo "no finding" || echo "findings above")"
exit "$bad"
