#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs every gate: the quick ones of scripts/test.sh, and the ones that take minutes. The last lines summarize each result.
set -euo pipefail

usage() {
    cat <<'END'
scripts/gates.sh [GATE…]

Runs scripts/setup.sh --gates --with torch,spark, then these gates, or only those named:

  quick     build with g++ (warnings are errors), then the gates that are tests: format, shell, spelling, readmes, files, docs,
            choices of backends, names in changed sources, includes, definitions, planted violations
  long      the tests that scripts/test.sh leaves out without --all (scripts/long_tests.txt)
  headers   every header compiles on its own; one that its own source includes first is left to tidy
  tidy      clang-tidy over all sources, including its naming rules
  asan      Clang builds everything (warnings are errors) with address, leak and undefined-behavior sanitizers; all tests but those
            that only repeat what others run, compile what a vendor would, or wait for PoCL's compiler
  coverage  line coverage by folder, from the tests that asan ran
  tsan      thread sanitizer: build with g++, and the tests of what threads share
  grown     build with one more field in every struct of the ABI that may grow; each build's tests, but those that take long, with the
            other's libraries
  cuda      the CUDA backend on its stand-in for a GPU: level 3 of core, networks, scripts/gpu_check.sh, and NVRTC compiles every kernel; skipped
            without CUDA's headers
  fuzzers   build with Clang, and 20 seconds per fuzzer
  blocks    the commands and programs in README.md, docs/, samples/ and other READMEs, as they stand there (scripts/readme.py)
  site      MkDocs and Doxygen build the site, no link in it is broken, and its pages fit on a phone where Chromium is installed
  packages  Debian packages of a release build: the same bytes twice; installed, used and purged in a fresh root;
            the image for vendors' CI where Docker or Podman works
  aarch64   cross build for 64-bit Arm, and the unit tests of api, loader and backends in QEMU

Exit status: 0 if none fails, 1 if one does, 2 for wrong usage.
END
}

all=(quick long headers tidy asan coverage tsan grown cuda fuzzers blocks site packages aarch64)
chosen=()
for word in "$@"; do
    case $word in
        --help | -h) usage; exit 0 ;;
        *)
            [[ " ${all[*]} " == *" $word "* ]] || { echo "gates.sh: there is no gate '$word'; there are: ${all[*]}" >&2; exit 2; }
            chosen+=("$word")
            ;;
    esac
done
[[ ${#chosen[@]} -gt 0 ]] || chosen=("${all[@]}")

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/build.sh
source scripts/build.sh

step "packages and data"
scripts/setup.sh --gates --with torch,spark
python=/usr/bin/python3
results=()
failed=0

# suite PRESET [ctest arguments…]: runs the tests of a build. The last line that it prints has their numbers.
suite() {
    local preset=$1
    shift
    ctest --preset "$preset" -j "$(($(cores) + 1))" -LE gate --no-tests=error "$@" | tee "build/$preset/tests.txt" |
        grep -vE '^ *(Start|[0-9]+/[0-9]+ .* Passed )' || true
    summary "build/$preset/tests.txt" "build/$preset/Testing/Temporary/LastTest.log"
}

# Tests that are left out with the address sanitizer:
# - those that run the harness or its judge again on cases that other tests run;
# - those of the CPU backend on instruction sets for which it chooses the same kernels as for another one;
# - those that build a backend as a vendor would;
# - those that mostly wait for the compilers of PoCL and NVRTC, or run their kernels, whose code no sanitizer instruments.
repeated='^(cpu_on_(AVX2_VNNI|AVX512|BASELINE)$|sensitivity_test|conform_(guide|quick_null|quick_complete|slots|replay|resume|noop|cluster|page|hang_.*|crash_.*)$|conform_onnx_cpu\.node$|tools\.new_backend|sample\.04|opencl_(models|tiles|oclgrind)|cuda_(models|nvrtc)|docs\.guides|locale)'
# The programs whose tests use threads: runs, streams, sessions, discovery, processes, caches, the CPU backend's team, ONNXIFI's events.
threaded=(cache_test client_test decode_test discover_test host_test isolate_test null_test onnxifi_events_test random_graphs_test run_test
    sdk_test session_test team_test)

# summary FILE [LOG]: summarizes the output of ctest in FILE; fails if a test failed or none was executed. With LOG, ctest's own file, it
# also counts the tests within whole programs.
summary() {
    local skipped executed
    skipped=$(grep -cE '\*\*\*Skipped|Not Run' "$1" || true)
    executed=$(($(grep -cE '^ *[0-9]+/[0-9]+ Test' "$1" || true) - skipped))
    echo "$(sed -nE 's/^([0-9]+% tests passed, .*)/\1/p' "$1"); $executed executed, $skipped skipped$(in_programs "${2-}")"
    [[ $executed -gt 0 ]] && grep -q '^100% tests passed' "$1"
}

gate_quick() {
    rm -f build/dev/gates.xml
    configure dev && build dev || return 1
    ctest --preset dev -L gate --no-tests=error --output-junit "$PWD/build/dev/gates.xml" | tee build/dev/gates.txt || true
    summary build/dev/gates.txt
}
gate_long() { need_dev && suite dev -R "$(long_tests)"; }
gate_headers() { need_dev && "$python" -B scripts/gates/headers.py build/dev; }
gate_tidy() { need_dev && "$python" -B scripts/gates/tidy.py build/dev --all; }
gate_cuda() {
    need_dev || return 1
    [[ -x build/dev/tests/nvrtc_check ]] || { echo "skipped: CUDA's headers are missing; scripts/setup.sh --cuda installs them"; return 77; }
    backends/cuda/testing/standin_test.sh build/dev/bin/backplane-conform build/dev/lib/backplane/libbackplane_cuda.so \
        build/dev/tests/standin build/dev/cuda_core_kernels | tail -3 || return 1
    # The tests run the smaller networks. Exit status 77: the network is not there.
    # shellcheck disable=SC2016 # for the shell that xargs starts
    printf 'light/%s\n' vgg19 densenet121 inception_v2 resnet50 inception_v1 zfnet512 alexnet |
        LD_LIBRARY_PATH=build/dev/tests/standin BACKPLANE_CACHE_DIR=$PWD/build/dev/cuda_models_cache xargs -P "$(cores)" -n 1 \
            bash -c '"$0" "$@" || [[ $? -eq 77 ]]' backends/gpu/testing/models_test.sh build/dev/bin/backplane cuda 95 || return 1
    scripts/gpu_check/gpu_check_test.sh build/dev | tail -20 || return 1
    # No kernel branches on the architecture; what CUDA's headers do for fp16 and bfloat16 changes with 8.0 and 9.0.
    local status=0
    build/dev/tests/nvrtc_check build/dev/cuda_core_kernels sm_75 sm_90 sm_100 || status=$?
    [[ $status -eq 0 || $status -eq 77 ]]
}
gate_fuzzers() { scripts/fuzz.sh --seconds 20; }
gate_asan() { export BACKPLANE_WHOLE_PROGRAMS=1 && configure asan && build asan && rm -rf build/asan/profiles && suite asan -E "$repeated"; }
gate_coverage() { "$python" -B scripts/gates/coverage.py build/asan; }
gate_tsan() { export BACKPLANE_WHOLE_PROGRAMS=1 && configure tsan && build tsan "${threaded[@]}" && suite tsan -R "^($(IFS='|' && echo "${threaded[*]}"))$"; }
gate_grown() {
    export BACKPLANE_WHOLE_PROGRAMS=1
    need_dev && configure grown && build grown || return 1
    # Runs the tests of everything that crosses the ABI. Left out are tests that take long, tests with further models, those of the harness
    # itself and those of Python's types and libraries, which would add nothing, and tests that install, because that rewrites the folders in
    # which libraries are searched.
    GTEST_FILTER=$(long_tests_in_programs) api/abi/grown_test.sh build/dev build/grown -j "$(($(cores) + 1))" -E "$(long_tests)|"'^(abi\.layout|cpu_on_|(opencl|cuda)_models|opencl_tiles|opencl_oclgrind|models\.|sample\.04_out_of_tree|tools\.new_backend|conform_(guide|replay|resume|cheats|slots|noop|cluster|page|hang_.*|crash_.*)$|sample\.20_spark|python\.(torch|guide|types))'
}
gate_blocks() { need_dev && "$BACKPLANE_DATA/venv/bin/python" -B scripts/readme.py; }
gate_site() { scripts/site.sh; }
gate_packages() {
    scripts/package.sh && scripts/package.sh --build build/package --out build/package/again || return 1
    diff -rq build/package/packages build/package/again || { echo "packages: two runs made different packages"; return 1; }
    local status=0
    conformance/container/container_test.sh build/package/packages || status=$?
    [[ $status -eq 0 || $status -eq 77 ]] || return 1
    scripts/packages_test.sh build/package/packages
}
gate_aarch64() { scripts/gates/aarch64.sh; }
need_dev() { configure dev && build dev; } # fast if everything is built already; after the demo, only a part is

# Runs a gate. Its output goes to the terminal and to a file, from which the summary takes the last line.
run_gate() {
    local name=$1 log status=0 start=$SECONDS
    mkdir -p build/gates
    log=build/gates/$name.txt
    step "$name"
    set +e
    ( set -e; "gate_$name" ) 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    set -e
    if [[ $name == quick && -f build/dev/gates.xml ]]; then mapfile -t -O "${#results[@]}" results < <(gate_lines build/dev/gates.xml | sed 's/^  //'); fi
    case $status in
        0) results+=("passed   $name ($(minutes $((SECONDS - start)))): $(tail -n 1 "$log")") ;;
        77) results+=("skipped  $name: $(tail -n 1 "$log")") ;;
        *)
            results+=("FAILED   $name ($(minutes $((SECONDS - start)))): $(tail -n 1 "$log"); all of it: $log")
            failed=$((failed + 1))
            ;;
    esac
}

for gate in "${chosen[@]}"; do run_gate "$gate"; done
printf '\n'
printf '%s\n' "${results[@]}"
echo "gates: ${#chosen[@]} run, $failed failed, after $(minutes $((SECONDS - script_start)))"
[[ $failed -eq 0 ]]
