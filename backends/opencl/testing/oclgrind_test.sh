#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# oclgrind_test.sh CONFORM PLUGIN [SANITIZER]: runs ONNX's node tests in Oclgrind, which checks that no memory access of a kernel is
# invalid or races with another. First runs a damaged kernel, to check that Oclgrind reports it.
set -euo pipefail
conform=$1 plugin=$2 sanitizer=${3-}
data=/usr/share/libonnx-testdata/data/node

if [[ -n $sanitizer ]]; then
    echo "skipped: Oclgrind cannot be loaded into programs that are built with the $sanitizer sanitizer"
    exit 77
fi
if ! command -v oclgrind >/dev/null; then
    echo "skipped: oclgrind is missing; scripts/setup.sh installs it"
    exit 77
fi
if [[ ! -d $data ]]; then
    echo "skipped: $data is missing; scripts/setup.sh installs it"
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export BACKPLANE_CACHE_DIR=$work
one=$(taskset -cp $$ | grep -o '[0-9]*' | tail -1) # Oclgrind's compiler does not work with several threads

# checked PLUGIN OUT SECONDS [OPTION…]: runs the node tests, each limited to SECONDS. OPTIONs are passed on to the harness. All output
# goes to the file OUT.
checked() {
    local plugin=$1 out=$2 seconds=$3
    shift 3
    taskset -c "$one" oclgrind --check-api --data-races --num-threads 1 --max-errors 20 \
        "$conform" onnx --plugin "$plugin" --device opencl --data $data --jobs 1 --timeout "$seconds" "$@" >"$out" 2>&1
}
reports='^(plugin: )?(Invalid|Oclgrind|Work-group divergence|.*data race|OCLGRIND)'

# Damages a kernel: one work item too many writes in each line of a pool.
sed 's/if (ox >= ow || oy >= oh) return;/if (ox >  ow || oy >= oh) return;/' "$plugin" >"$work/libbackplane_opencl.so"
if cmp -s "$plugin" "$work/libbackplane_opencl.so"; then
    echo "kernels/pool.cl is not as this test expects it: choose another check to damage"
    exit 1
fi
started=$SECONDS
checked "$work/libbackplane_opencl.so" "$work/damaged" 600 --filter test_maxpool_with_argmax_2d_precomputed_pads || true
if ! grep -qE "$reports" "$work/damaged"; then
    cat "$work/damaged"
    echo "a kernel that writes beyond its buffer was not noticed"
    exit 1
fi

# The case above took as long as any process's first case, in which the simulator starts and kernels are compiled. A case that takes
# four times as long on this machine, plus 20 s, is considered hung.
limit=$((4 * (SECONDS - started) + 20))
echo "one case took $((SECONDS - started)) s here: each of the others may take $limit s"
checked "$plugin" "$work/out" "$limit" || true # cases that Oclgrind does not support fail; the passed ones are counted below
if grep -E -m 10 -A8 "$reports" "$work/out"; then
    echo "Oclgrind found faults"
    exit 1
fi
grep -E '^crash|passed' "$work/out"
passed=$(sed -n 's/^\([0-9]*\) of [0-9]* passed.*/\1/p' "$work/out")
if [[ ${passed:-0} -lt 780 ]]; then
    echo "only ${passed:-0} cases passed; at least 780 must pass"
    exit 1
fi
