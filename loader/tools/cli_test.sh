#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# cli_test.sh BACKPLANE MANIFEST MODEL: for each mistake, the program prints one line that names what is wrong, and with --json a
# JSON object, and returns the documented exit status. MANIFEST is that of backends/null, MODEL is y = Relu(Add(a, b)) over float[2,3].
set -u
program=$1
export BACKPLANE_BACKEND_FILES=$2
model=$3
unset BACKPLANE_ADD_BACKEND_FILES BACKPLANE_LOG
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
complain() { echo "FAILED: $*"; sed 's/^/    /' "$work/out" "$work/err"; failures=$((failures + 1)); }

cat >"$work/json.cmake" <<'CMAKE'
file(READ ${FILE} text)
string(JSON value GET "${text}" ${KEY})
message(STATUS "${value}")
CMAKE
json() { cmake -DFILE="$work/out" -DKEY="$1" -P "$work/json.cmake" 2>&1; } # the value of a key of the last output

# wrong STATUS TEXT WORD…: the command line ends with STATUS and prints TEXT, both with and without --json.
wrong() {
    local status=$1 text=$2 got said
    shift 2
    "$program" "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$status" ] || complain "exit status $got of: $*"
    [ -z "${SHOW-}" ] || cat "$work/err"
    [ "$(wc -l <"$work/err")" -eq 1 ] || complain "not one line: $*"
    grep -q "^backplane: .*$text" "$work/err" || complain "no '$text': $*"
    [ ! -s "$work/out" ] || complain "standard output of: $*"
    "$program" "$@" --json >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq "$status" ] || complain "exit status $got of: $* --json"
    said=$(json 'error;text' | sed 's/^-- //')
    [[ -n $said && $(<"$work/err") == *"$said"* ]] || complain "JSON of: $*"
}
# right STATUS TEXT WORD…: the command line ends with STATUS and prints TEXT.
right() {
    local status=$1 text=$2
    shift 2
    "$program" "$@" >"$work/out" 2>"$work/err"
    [ $? -eq "$status" ] || complain "exit status of: $*"
    grep -q -- "$text" "$work/out" || complain "no '$text': $*"
}

# ---- the command line ----
wrong 2 "a command is missing"
wrong 2 "'expain' (did you mean 'explain'?)" expain "$model"
wrong 2 "'--devcie' (did you mean '--device'?)" run "$model" --devcie null
wrong 2 "'--frobnicate'" info "$model" --frobnicate
wrong 2 "unexpected argument 'more.onnx'" info "$model" more.onnx
wrong 2 "model is required" info
wrong 2 "--runs" bench "$model" --runs 0
wrong 2 "--runs" bench "$model" --runs many
wrong 2 "fallback" run "$model" --fallback never
wrong 2 "there is no device 'cuda'; there is null" run "$model" --device cuda
printf '{"format_version": "1.0", "id": "com.acme.cuda", "library": "none.so", "interface": {"min": "99.0", "max": "99.0"}}' >"$work/cuda.json"
BACKPLANE_LOG=error BACKPLANE_BACKEND_FILES=$BACKPLANE_BACKEND_FILES:$work/cuda.json \
    wrong 2 "there is no device 'cuda': .*supports ABI 99.0.*install a build for this loader" run "$model" --device cuda
wrong 2 "there is no device 'null:1'; there is null" run "$model" --device null:1
wrong 2 "--pin op=Relu=null:1\|there is no device 'null:1'" explain "$model" --pin op=Relu=null:1
wrong 2 "--compute: .*bf16" run "$model" --compute bf17
wrong 2 "--set is 'threads'" list --set threads
wrong 2 "loader.isolate_sandbox is .foo.: it must be strict, drivers or off" list --set loader.isolate_sandbox=foo
wrong 2 "--pin is 'op': it must be PATTERN=DEVICE" explain "$model" --pin op
wrong 2 "no option loader.unknown" list --set loader.unknown=1
right 0 "Usage" run --help
wrong 2 "--output: the value is empty" run "$model" --output ''
wrong 2 "model: the value is empty" info ''
wrong 2 "id: the value is empty" why ''
wrong 2 "--seed: '-1' must be a whole number from 0" run "$model" --seed=-1
wrong 2 "--rtol: 'nan' must be a number" run "$model" --rtol nan
wrong 2 "loader.import_bytes is .lots" info "$model" --set loader.import_bytes=0 --set loader.import_bytes=lots # the last one counts

wrong 2 "--timeout is 'soon'" info "$model" --timeout soon
wrong 2 "--timeout is '0'" info "$model" --timeout 0
wrong 2 "--max-memory is '4X'" info "$model" --max-memory 4X
wrong 2 "--max-memory is '99999999999T'" info "$model" --max-memory 99999999999T
wrong 2 "loader.import_bytes is .lots.* 0 for no limit" info "$model" --set loader.import_bytes=lots
wrong 2 "loader.import_seconds is .-1" info "$model" --set loader.import_seconds=-1

# ---- why: lists the folders that discovery searches, including the system's and two relative to the loader: ../share and ../../share ----
unset BACKPLANE_BACKEND_FILES
right 1 "system  */.*etc/backplane/backends.d" why nothing
right 1 "system  */.*share/backplane/backends.d" why nothing
XDG_DATA_HOME=relative XDG_DATA_DIRS=relative:$work right 1 "XDG_DATA_DIRS  *$work/backplane/backends.d" why nothing
grep -q relative "$work/out" && complain "a folder that is not searched"
[ "$(grep -c "loader  */.*share/backplane/backends.d" "$work/out")" -eq 2 ] || complain "the folders next to the loader"
BACKPLANE_BACKEND_FILES='' right 1 "were searched" why nothing # set but empty, it still replaces all folders
grep -q backends.d "$work/out" && complain "folders that are not searched"
BACKPLANE_BACKEND_FILES='' right 1 "No backend was found: backplane why" list
BACKPLANE_BACKEND_FILES=$2 BACKPLANE_SELECT=other right 1 "not selected by BACKPLANE_SELECT" list
grep -q "No backend was found" "$work/out" && complain "no backend, though one was found"
export BACKPLANE_BACKEND_FILES=$2

right 0 "Devices" why null
right 0 "Devices" why libbackplane_null.so
right 0 "Devices" why "$BACKPLANE_BACKEND_FILES"
printf 'no library' >"$work/refused.so"
for name in refused refused.so "$work/refused.so"; do
    BACKPLANE_BACKEND_FILES=$work/refused.so right 0 "BP_REFUSED.*" why "$name"
done

# ---- limits ----
right 0 "Relu" info "$model" --timeout 60 --max-memory 4G
wrong 1 "reading the file takes more memory than the 100 bytes.*loader.import_bytes" info "$model" --set loader.import_bytes=100
right 0 "Relu" info "$model" --set loader.import_bytes=0 --set loader.import_seconds=0
wrong 1 "longer than --timeout 0.1" bench "$model" --runs 1000000 --timeout 0.1
[ "$(json 'error;status')" = "-- BP_TIMED_OUT" ] || complain "the status of a timeout"

# ---- models ----
printf 'random bytes, no model at all: \377\376\001\002' >"$work/random.onnx"
head -c 60 "$model" >"$work/truncated.onnx"
: >"$work/empty.onnx"
perl -0777 -pe 's/\n\x01a\n\x01b/\n\x01a\n\x01y/' "$model" >"$work/cycle.onnx"
perl -0777 -pe 's/Relu/Rely/g' "$model" >"$work/unknown.onnx"
perl -0777 -pe 's/Relu/Ceil/g' "$model" >"$work/uncovered.onnx"
for command in info explain run bench; do
    wrong 1 "missing.onnx" $command "$work/missing.onnx"
    wrong 1 "$work" $command "$work"
    wrong 1 "random.onnx" $command "$work/random.onnx"
    wrong 1 "truncated.onnx" $command "$work/truncated.onnx"
    wrong 1 "empty.onnx" $command "$work/empty.onnx"
    wrong 1 "cycle.onnx" $command "$work/cycle.onnx"
    wrong 1 "Rely" $command "$work/unknown.onnx"
done
right 1 "Ceil since 13" info "$work/uncovered.onnx"
right 1 "null: operator Ceil is not known" info "$work/uncovered.onnx"
right 0 '"null": 1.0' explain "$model" --device null --json # device null does all of the arithmetic
right 1 "uncovered" explain "$work/uncovered.onnx"
right 1 '"uncovered": \[' explain "$work/uncovered.onnx" --json
[ "$(json 'nodes;0;device')" = "-- null" ] || complain "the device of a covered node"
[ "$(json 'uncovered;0')" = "-- 1" ] || complain "the index of the uncovered node"
wrong 1 "Ceil" run "$work/uncovered.onnx"
# y = Add(a, a) over int64[1], z = Add(b, b) over double[1]
perl -e 'sub f { my ($n, $b) = @_; chr($n << 3 | 2) . chr(length $b) . $b } sub t { f(1, "\x08" . chr($_[0]) . f(2, f(1, "\x08\x01"))) }
    print "\x08\x08" . f(7, f(1, f(1, "a") . f(1, "a") . f(2, "y") . f(4, "Add")) . f(1, f(1, "b") . f(1, "b") . f(2, "z") . f(4, "Add")) . f(2, "g")
    . f(11, f(1, "a") . f(2, t(7))) . f(11, f(1, "b") . f(2, t(11))) . f(12, f(1, "y") . f(2, t(7))) . f(12, f(1, "z") . f(2, t(11)))) . f(8, f(1, "") . "\x10\x0d")' >"$work/types.onnx"
for command in info explain; do
    right 1 "Add since 14  node 0  null: .*int64" $command "$work/types.onnx"
    grep -q "Add since 14  node 1  null: .*double" "$work/out" || complain "the reason of another node: $command"
done
"$program" explain "$work/uncovered.onnx" >"$work/out" 2>"$work/err"
grep -q expected "$work/out" && complain "an expected time of what cannot run"
wrong 2 "there is no device 'cuda'" explain "$model" --pin op=Relu=cuda
right 0 "Relu" explain "$model"
right 0 " 2 nodes  2 inputs, 1 output " explain "$model"
wrong 2 "--costs" explain "$model" --costs guessed
right 0 '"device": "null"' explain "$model" --device null:0 --pin op=Relu=null:0 --json

# ---- measured costs ----
XDG_CACHE_HOME=$work/cache right 0 "null  *2 of 2 nodes measured" profile "$model"
XDG_CACHE_HOME=$work/cache right 0 "Relu.*, measured" explain "$model"
XDG_CACHE_HOME=$work/cache right 0 "Relu.* 1.0 us$" explain "$model" --compute bf16 # measured without bf16 only
XDG_CACHE_HOME=$work/cache right 0 "null  *2 of 2 nodes measured" profile "$model" --compute tf32,bf16
grep -q "compute 3" "$work"/cache/backplane/profile/* || complain "no measurement with compute types"
XDG_CACHE_HOME=$work/cache right 0 "Relu.* 1.0 us$" explain "$model" --costs reported
for file in "$work"/cache/backplane/profile/*; do head -c 300 /dev/urandom >"$file"; done
XDG_CACHE_HOME=$work/cache right 0 "Relu.* 1.0 us$" explain "$model"
wrong 1 "the time limit of 1e-07 s has passed" info "$model" --set loader.import_seconds=0.0000001
wrong 1 "missing.onnx" profile "$work/missing.onnx"
# A model with a named dimension: y = Relu(x) over float[n], which the null backend refuses.
printf '\010\010:\064\012\014\012\001x\022\001y"\004Relu\022\000Z\020\012\001x\022\013\012\011\010\001\022\005\012\003\022\001nb\020\012\001y\022\013\012\011\010\001\022\005\012\003\022\001nB\004\012\000\020\015' >"$work/named.onnx"
right 1 "null  *0 of 0 nodes measured" profile "$work/named.onnx" --dim n=7
wrong 2 "no dimension 'batch'; they have: n" profile "$work/named.onnx" --dim batch=2
wrong 2 "\-\-dim n is given more than once" run "$work/named.onnx" --dim n=2 --dim n=3
wrong 2 "\-\-dim n is given more than once" explain "$work/named.onnx" --dim n=2 --dim n=2
right 0 "a  *float\[2,3\]" info "$model"

# ---- inputs and outputs ----
printf '\223NUMPY\001\000v\000{"descr": "<f4", "shape": (2, 3' >"$work/broken.npy"
printf 'text' >"$work/text.npy"
npy() { printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"; head -c "$3" /dev/zero; }
npy '<f4' '2, 3' 24 >"$work/right.npy"
npy '<f4' '2, 4' 32 >"$work/shape.npy"
npy '<i8' '2, 3' 48 >"$work/dtype.npy"
npy '<f4' '2, 3' 20 >"$work/short.npy"
wrong 2 "no input 'x'; it has: a, b" run "$model" --input x="$work/right.npy"
wrong 2 "--input is 'a': it must be NAME=FILE" run "$model" --input a
wrong 1 "missing.npy" run "$model" --input a="$work/missing.npy"
wrong 1 "broken.npy" run "$model" --input a="$work/broken.npy"
wrong 1 "text.npy" run "$model" --input a="$work/text.npy"
wrong 1 "short.npy" run "$model" --input a="$work/short.npy"
wrong 1 "model.onnx\|extension" run "$model" --input a="$model"
wrong 1 "/dev/zero.: the extension must be .npy" run "$model" --input a=/dev/zero --max-memory 1G
wrong 1 "missing.npy' cannot be opened: No such file" run "$model" --input a="$work/missing.npy"
wrong 2 "input 'a' must be float\[2,3\], but the file has float\[2,4\]" run "$model" --input a="$work/shape.npy"
wrong 2 "input 'a' must be float\[2,3\], but the file has int64\[2,3\]" run "$model" --input a="$work/dtype.npy"
wrong 2 "no dimension 'batch'" run "$model" --dim batch=2
wrong 2 "--dim batch is 'two'" run "$model" --dim batch=two
wrong 2 "--dim is 'batch': it must be NAME=EXTENT" run "$model" --dim batch
wrong 2 "no dimension 'batch'" explain "$model" --dim batch=2
wrong 1 "/proc/nowhere" run "$model" --output /proc/nowhere
wrong 1 "$model" run "$model" --output "$model"
wrong 1 "/proc/nowhere/page.html' cannot be written: No such file" explain "$model" --html /proc/nowhere/page.html
wrong 1 "/proc/nowhere" trace "$model" --out /proc/nowhere/trace.json
wrong 2 "--output is 'y=$work/y.npy': it takes a folder" run "$model" --output y="$work/y.npy"
(cd "$work" && "$program" run "$model" --output=--own >/dev/null 2>&1 && [ -s ./--own/y.npy ]) || complain "a folder named --own"
mkdir "$work/a=b"
right 0 "a=b/y.npy" run "$model" --output "$work/a=b"
right 0 "float\[2,3\]" run "$model" --input a="$work/right.npy" --output "$work/results"
[ -s "$work/results/y.npy" ] || complain "no results/y.npy"
# "a/b" = Relu(x), a_b = Neg(x), over float[1]
printf '\010\010:Y\012\016\012\001x\022\003a/b"\004Relu\012\015\012\001x\022\003a_b"\003Neg\022\001gZ\017\012\001x\022\012\012\010\010\001\022\004\012\002\010\001b\021\012\003a/b\022\012\012\010\010\001\022\004\012\002\010\001b\021\012\003a_b\022\012\012\010\010\001\022\004\012\002\010\001B\004\012\000\020\015' >"$work/names.onnx"
right 0 "written to $work/names/a_b-2.npy" run "$work/names.onnx" --input x=1xf32=-3 --output "$work/names"
right 0 "^  0$" run "$work/names.onnx" "$work/names/a_b.npy"
right 0 "^  -3$" run "$work/names.onnx" "$work/names/a_b-2.npy"

# y = Relu(x), where the name of y is too long for a file
perl -e 'sub f { my ($n, $b) = @_; my ($l, $v) = (length $b, ""); while ($l > 127) { $v .= chr($l & 127 | 128); $l >>= 7 } chr($n << 3 | 2) . $v . chr($l) . $b }
    my $y = "y" x 300; my $t = f(1, "\x08\x01" . f(2, f(1, "\x08\x01")));
    print "\x08\x08" . f(7, f(1, f(1, "x") . f(2, $y) . f(4, "Relu")) . f(2, "g") . f(11, f(1, "x") . f(2, $t)) . f(12, f(1, $y) . f(2, $t))) . f(8, f(1, "") . "\x10\x0d")' >"$work/long.onnx"
right 0 "written to" run "$work/long.onnx" --input x=1xf32=1 --output "$work/long"

# ---- files that are none, or have no end ----
mkfifo "$work/pipe" "$work"/pipe.{npy,npz,pb}
truncate -s 1T "$work"/large.{npy,npz,pb}
patient=$program
in_time() { timeout 20 "$patient" "$@"; }
program=in_time
for type in npy npz pb; do
    wrong 1 "pipe.$type' is a pipe, not a regular file" run "$model" --input a="$work/pipe.$type"
    wrong 1 "large.$type' has 1099511627776 bytes, more than the" run "$model" --input a="$work/large.$type"
    wrong 1 "pipe.$type' is a pipe" run "$model" --expect y="$work/pipe.$type"
done
wrong 1 "results' is a folder, not a regular file\|the extension" run "$model" --input a="$work/results"
logs_to() { # WHAT FILE: a warning that names the file, and the command works
    BACKPLANE_LOG_FILE=$2 right 0 "null" list
    [ "$(grep -c "warning: BACKPLANE_LOG_FILE is .* and is ignored: it $1" "$work/err")" -eq 1 ] || complain "no warning: BACKPLANE_LOG_FILE=$2"
}
logs_to "is a pipe or socket, not a file" "$work/pipe"
logs_to "is a folder" "$work"
logs_to "is a symbolic link" /proc/self/exe
logs_to "cannot be opened: File name too long" "$(printf 'a%.0s' {1..300})"
logs_to "cannot be opened: No such file" "$work/none/log"
BACKPLANE_LOG_FILE=/dev/null right 0 "null" list
[ ! -s "$work/err" ] || complain "a word on a log that works"
program=$patient

# ---- what is read is not overwritten ----
# keeps FILE TEXT WORD…: wrong usage, and the file stays as it is.
keeps() {
    local file=$1 before
    before=$(sha256sum "$file")
    wrong 2 "$2" "${@:3}"
    [ "$(sha256sum "$file")" = "$before" ] || complain "overwritten: ${*:3}"
}
cp "$model" "$work/own.onnx"
ln -s own.onnx "$work/link.html"
ln "$work/own.onnx" "$work/hard.json"
cp "$work/right.npy" "$work/y.npy"
overwrites="which the command reads: name another file"
keeps "$work/own.onnx" "--out would overwrite '.*own.onnx', $overwrites" trace "$work/own.onnx" --out "$work/own.onnx"
keeps "$work/own.onnx" "hard.json', the same file as '.*own.onnx', $overwrites" trace "$work/own.onnx" --out "$work/hard.json"
keeps "$work/own.onnx" "--html would overwrite '.*link.html', the same" explain "$work/own.onnx" --html "$work/link.html"
keeps "$work/right.npy" "--out would overwrite" trace "$model" --input a="$work/right.npy" --out "$work/right.npy"
cp "$BACKPLANE_BACKEND_FILES" "$work/backend.json"
keeps "$work/backend.json" "--html would overwrite" list --backend "$work/backend.json" --html "$work/backend.json"
keeps "$work/y.npy" "--output would overwrite '.*y.npy'" run "$model" --input a="$work/y.npy" --output "$work"
keeps "$work/y.npy" "--output would overwrite '.*y.npy'" run "$model" --expect y="$work/y.npy" --output "$work"
# y = Add(x, w) over float[1], with w in the file weights.npz
perl -e 'sub f { my ($n, $b) = @_; chr($n << 3 | 2) . chr(length $b) . $b } my $t = f(1, "\x08\x01" . f(2, f(1, "\x08\x01")));
    print "\x08\x08" . f(7, f(1, f(1, "x") . f(1, "w") . f(2, "y") . f(4, "Add")) . f(2, "g")
    . f(5, "\x08\x01\x10\x01" . f(8, "w") . f(13, f(1, "location") . f(2, "weights.npz")) . "\x70\x01")
    . f(11, f(1, "x") . f(2, $t)) . f(12, f(1, "y") . f(2, $t))) . f(8, f(1, "") . "\x10\x0d")' >"$work/weights.onnx"
head -c 4 /dev/zero >"$work/weights.npz"
keeps "$work/weights.npz" "--out would overwrite '.*weights.npz'" trace "$work/weights.onnx" --out "$work/weights.npz" --input x=1xf32=1
keeps "$work/weights.npz" "--html would overwrite '.*weights.npz'" explain "$work/weights.onnx" --html "$work/weights.npz"
keeps "$work/weights.npz" "--output would overwrite '.*weights.npz'" run "$work/weights.onnx" --output "$work/weights.npz" --input x=1xf32=1
right 0 "written to" run "$model" --output "$work/kept.npz"
keeps "$work/kept.npz" "--output would overwrite '.*kept.npz'" run "$model" --expect "$work/kept.npz" --output "$work/kept.npz"

# ---- a file that cannot be replaced keeps its content, and its permissions ----
printf 'precious' >"$work/precious.html"
chmod 604 "$work/precious.html"
(trap '' XFSZ; ulimit -f 1; "$program" explain "$model" --html "$work/precious.html") >"$work/out" 2>"$work/err"
grep -q "precious.html' cannot be written: File too large" "$work/err" || complain "no error for a file that does not fit"
[ "$(cat "$work/precious.html")" = precious ] || complain "a file that does not fit took the place of another"
right 0 "precious.html written" explain "$model" --html "$work/precious.html"
[ "$(stat -c %a "$work/precious.html")" = 604 ] || complain "other permissions"
[ -z "$(find "$work" -name '.backplane-*')" ] || complain "a file was left"
"$program" trace "$model" --out /dev/stdout 2>/dev/null | grep -q '"traceEvents"' || complain "no timeline on standard output"

# ---- values on the command line, archives, conversion ----
both=(--input "a=2x3xf32=-1,0,1,2,3,4" --input b=2x3xf32=1)
right 0 "  0  1  2  3  4  5" run "$model" "${both[@]}" --output "$work/y.npz"
[ ! -s "$work/err" ] || complain "a line on standard error without random inputs"
right 0 "  0  1  2  3  4  5" run "$model" --input a="$work/y.npz" --input b=2x3xf32=0
right 0 "written to" run "$model" "${both[@]}" --output "$work/own"
right 0 "  1  2  3  4  5  6" run "$model" "$work/own/y.npy" --input b=2x3xf32=1
wrong 2 "y.npz.*no input 'y'\|no input 'y'" run "$model" --input "$work/y.npz"
wrong 2 "could be any of 2 inputs, a, b: write --input NAME=" run "$model" "$work/right.npy"
wrong 2 "right.npy' is not used: every input of the model has an --input" run "$model" "${both[@]}" "$work/right.npy"
wrong 2 "--input a: it has 2 values, but 6 elements" run "$model" --input a=2x3xf32=1,2
wrong 2 "--input a: 'x' is not a valid float" run "$model" --input a=2x3xf32=x
wrong 2 "--input a: '2x3xf33=1' is neither a file nor a value such as" run "$model" --input a=2x3xf33=1
wrong 2 "--input a: '' is neither a file nor a value such as" run "$model" --input a=
wrong 2 "input 'a' must be float\[2,3\], but the value has int32\[2,3\]; --cast converts numbers" run "$model" --input a=2x3xi32=1
right 0 "  2  2  2  2  2  2" run "$model" --input a=2x3xi32=1 --input b=2x3xu8=1 --cast
right 0 "y " run "$model" --input a=2x3xi32=1 --input b="$work/dtype.npy" --cast
wrong 2 "input 'a' is given twice: by '.*right.npy' and by '2x3xf32=1'" run "$model" --input a="$work/right.npy" --input a=2x3xf32=1
printf 'PK\005\006' >"$work/broken.npz"
wrong 1 "broken.npz" run "$model" --input a="$work/broken.npz"
wrong 1 "/proc/nowhere" run "$model" --output /proc/nowhere.npz
right 0 "" run "$model" --seed 7 --input a="$work/right.npy"
grep -q "^backplane: input b: random numbers, from --seed 7$" "$work/err" || complain "no word on random inputs"
right 0 "" bench "$model" --runs 1 --input a="$work/right.npy"
grep -q "^backplane: input b: random numbers, from --seed 0$" "$work/err" || complain "bench has no word on random inputs"
right 0 "" trace "$model" --out "$work/trace.json"
grep -q "^backplane: inputs a, b: random numbers, from --seed 0$" "$work/err" || complain "trace has no word on random inputs"

# ---- expected results ----
right 0 "y as expected: all 6 elements match" run "$model" "${both[@]}" --expect "$work/y.npz"
right 0 "y as expected" run "$model" "${both[@]}" --expect y="$work/y.npz"
wrong_type=(run "$model" --input a=2x3xf32=0 --input b=2x3xf32=0 --expect "$work/dtype.npy")
right 1 "y not as expected: float\[2,3\], expected int64\[2,3\]" "${wrong_type[@]}"
right 0 "y as expected" "${wrong_type[@]}" --cast
right 1 "y not as expected: 5 of 6 elements differ, the first is 1" run "$model" "${both[@]}" --expect "$work/right.npy"
right 1 '"outside": 5' run "$model" "${both[@]}" --expect "$work/right.npy" --json
right 0 "y as expected" run "$model" "${both[@]}" --expect "$work/right.npy" --atol 5
right 1 "y not as expected: float\[2,3\], expected float\[2,4\]" run "$model" "${both[@]}" --expect "$work/shape.npy"
wrong 2 "no output 'z'; it has: y" run "$model" --expect z="$work/right.npy"
wrong 1 "missing.npy" run "$model" --expect "$work/missing.npy"

# ---- two devices ----
right 0 "null and null agree on all 2 values" diff "$model" --device null,null
right 0 '"differences": \[\]' diff "$model" --device null,null --json
right 0 '"nodes_judged": 2' diff "$model" --device null:0,null:0 --json
wrong 2 "--device needs two names" diff "$model" --device null
wrong 1 "missing.onnx" diff "$work/missing.onnx" --device null,null
cpu=$(dirname "$BACKPLANE_BACKEND_FILES")/cpu.json
if [ -f "$cpu" ]; then
    right 0 "null and cpu agree on all 2 values" diff "$model" --backend "$cpu" --device null,cpu --input a=2x3xf32=1
    both_devices=(--backend "$cpu" --device "null:0,cpu:0")
    right 0 "null and cpu agree on all 2 values; 2 of 2 nodes ran on cpu" diff "$model" "${both_devices[@]}" --pin op=Relu=cpu
    right 0 "null and cpu agree on all 2 values; 1 of 2 nodes ran on cpu" diff "$model" "${both_devices[@]}" --pin op=Relu=null
    wrong 2 "--pin op=Relu=cpu: the device is not among those of --device, null" run "$model" --backend "$cpu" --device null --pin op=Relu=cpu
    right 0 "1 of 2 nodes ran on null" diff "$work/uncovered.onnx" --backend "$cpu" --device cpu,null
    wrong 1 "Ceil" diff "$work/uncovered.onnx" --backend "$cpu" --device cpu,null --fallback forbid
    # s = SequenceConstruct(x)
    printf '\010\010:D\012\031\012\001x\022\001s"\021SequenceConstruct\022\001gZ\017\012\001x\022\012\012\010\010\001\022\004\012\002\010\001b\023\012\001s\022\016"\014\012\012\012\010\010\001\022\004\012\002\010\001B\004\012\000\020\015' >"$work/sequence.onnx"
    right 1 "nothing to compare: no node has a tensor" diff "$work/sequence.onnx" --backend "$cpu" --device cpu,cpu
    # y = Identity(x) over int64[1]; the two numbers are the same as doubles
    printf '\010\010:7\012\020\012\001x\022\001y"\010Identity\022\001gZ\017\012\001x\022\012\012\010\010\007\022\004\012\002\010\001b\017\012\001y\022\012\012\010\010\007\022\004\012\002\010\001B\004\012\000\020\015' >"$work/wide.onnx"
    exact=(--backend "$cpu" --device cpu --rtol 0 --atol 0)
    right 0 "9007199254740993" run "$work/wide.onnx" "${exact[@]}" --input x=1xi64=9007199254740993 --output "$work/wide.npz"
    right 0 "y as expected" run "$work/wide.onnx" "${exact[@]}" --input x=1xi64=9007199254740993 --expect "$work/wide.npz"
    right 1 "y not as expected" run "$work/wide.onnx" "${exact[@]}" --input x=1xi64=9007199254740992 --expect "$work/wide.npz"
fi

# ---- measuring ----
right 0 "runs/s, 2 at once" bench "$model" --streams 2 --runs 20
right 0 "^1 island on " bench "$model" --runs 3
right 0 "^1 island on " bench "$model" --runs 3 --memory null
wrong 2 "there is no device 'nothing'" bench "$model" --memory nothing
right 0 '"runs_per_second": ' bench "$model" --runs 3 --json
right 0 "ran on null" run "$model" --verbose
grep -q "info" "$work/err" || complain "nothing on standard error with --verbose"

# ---- lists ----
right 0 "^null  *other" list --summary
right 0 "list.html written" list --html "$work/list.html"
grep -q '<td class="device">null</td>' "$work/list.html" || complain "the list's page has no device"
wrong 1 "/proc/nowhere" list --html /proc/nowhere/list.html

# ---- a standard output that cannot be written ----
# full STATUS WORD…: on a full disk, the command line ends with STATUS and one line.
full() {
    local status=$1
    shift
    "$program" "$@" >/dev/full 2>"$work/err"
    [ $? -eq "$status" ] || complain "exit status on a full disk of: $*"
    [ "$(wc -l <"$work/err")" -eq 1 ] || complain "not one line on a full disk: $*"
}
: >"$work/out"
for command in "list" "list --json" "--help" "--version" "--man" "explain $model" "info $model --json"; do
    # shellcheck disable=SC2086
    full 1 $command
    grep -q "^backplane: standard output cannot be written: No space left" "$work/err" || complain "no reason: $command"
done
full 2 info --json
full 1 info "$work/missing.onnx" --json
"$program" explain "$model" --html "$work/closed.html" >&- 2>"$work/err"
[ $? -eq 1 ] || complain "exit status with a closed standard output"
head -c 20 "$work/closed.html" | grep -qi "<!doctype html>" || complain "the page took the place of the standard output"

# ---- a standard error that cannot be written ----
"$program" info "$work/missing.onnx" 2>/dev/full
[ $? -eq 1 ] || complain "exit status with a full standard error"
"$program" info "$work/missing.onnx" <&- >&- 2>&-
[ $? -eq 1 ] || complain "exit status with closed standard streams"
"$program" run "$model" --output "$work/silent" >/dev/null 2>&- || complain "random inputs cannot be noted"

# ---- what has no effect is noted ----
right 0 "Relu" info "$model" --set nowhere.x=1
grep -q "^backplane: --set nowhere.x is ignored: there is no backend 'nowhere'; .*null" "$work/err" || complain "no note on a setting"
right 0 "ran on null" run "$model" --backend "$work/missing.json"
grep -q "^backplane: --backend is ignored: .*missing.json" "$work/err" || complain "no note on a backend"

# ---- files generated from the options ----
right 0 "^complete -F _backplane backplane" --completion bash
bash -n "$work/out" || complain "the completion of bash is no script"
grep -qF -- '--output) files=yes' "$work/out" || complain "the completion of bash has no files for --output"
! grep -qF -- '--device) files=yes' "$work/out" || complain "the completion of bash has files for --device"
right 0 "complete -c backplane" --completion fish
right 0 "^#compdef backplane" --completion zsh
wrong 2 "--completion" --completion tcsh
right 0 '^\.SS explain' --man
grep -qxF '\fB\-\-json\fR' "$work/out" || complain "a flag with a value in the manual page"
if command -v man >/dev/null; then
    man --warnings -E UTF-8 -l -Tutf8 -Z "$work/out" 2>"$work/err" >/dev/null
    [ ! -s "$work/err" ] || complain "the manual page has mistakes"
fi

# ---- colors, on terminals only ----
if command -v script >/dev/null; then
    TERM=xterm script -qec "'$program' list" /dev/null >"$work/out" 2>"$work/err" </dev/null
    grep -q "$(printf '\033\[1m')Devices" "$work/out" || complain "no color on a terminal"
    NO_COLOR=1 TERM=xterm script -qec "'$program' list" /dev/null >"$work/out" 2>"$work/err" </dev/null
    grep -q "$(printf '\033')" "$work/out" && complain "color in spite of NO_COLOR"
fi
right 0 "^Devices$" list

# ---- the picture ----
right 0 "page.html written" explain "$model" --html "$work/page.html"
grep -q '"op_type":"Relu"' "$work/page.html" || complain "the page has no data"
if grep -qE 'BACKPLANE_REPORT"<|src=|href=|https?://' "$work/page.html"; then complain "the page is not self-contained"; fi

# ---- other programs ----
cp "$program" "$work/alone"
LD_LIBRARY_PATH=$(dirname "$program")/../lib "$work/alone" conform onnx >"$work/out" 2>"$work/err"
{ [ $? -eq 1 ] && grep -q "backplane-conform' cannot be run" "$work/err"; } || complain "conform without the harness"

[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
echo "all as documented"
