#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# guide_test.sh BUILD SOURCE: the three commands of docs/guides/vendor.md, run as they are written there, must bring a
# new backend to L1, with an installed Backplane on the PATH and without its source. Every operator of its template must
# pass cases of the profile core.
set -euo pipefail
export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja} # which scripts/setup.sh installs; make may be missing
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[[ -z ${SANITIZER-} ]] || export CXXFLAGS="-fsanitize=$SANITIZER"
unset BACKPLANE_BACKEND_FILES BACKPLANE_ADD_BACKEND_FILES

cmake --install "$build" --prefix "$work/prefix" >/dev/null
export PATH=$work/prefix/bin:$PATH

awk '/guide_test.sh runs these lines/ { marked = 1 } marked && /^```$/ { exit } marked && inside { print } marked && /^```sh$/ { inside = 1 }' \
    "$source/docs/guides/vendor.md" >"$work/commands"
[[ $(wc -l <"$work/commands") -eq 3 ]] || { echo "the guide no longer has three commands:"; cat "$work/commands"; exit 1; }
mkdir "$work/vendor"
cd "$work/vendor"
bash -ex "$work/commands" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep -qx "L1 reached" "$work/log" || { cat "$work/log"; exit 1; }

# Each operator of the template must pass cases of the profile. The level L1 already shows that none fails.
backplane conform --plugin mine/build/libbackplane_mine.so --filter 'ops/*' --out run >/dev/null
operators=$(LC_ALL=C sed -n 's/^ *{"", "\([A-Za-z]*\)", .*/\1/p' mine/ops.cpp)
[[ $(wc -w <<<"$operators") -ge 4 ]] || { echo "operators of the template: '$operators'"; exit 1; }
for operator in $operators; do
    cases=$(grep "\"case\":\"ops/$operator/float/.*\"profile\":\"core\"" run/journal.jsonl)
    grep -q '"state":"pass"' <<<"$cases" || { echo "$operator passes nothing"; exit 1; }
    echo "$operator: $(grep -c '"state":"pass"' <<<"$cases") of $(wc -l <<<"$cases") cases of core pass"
done
