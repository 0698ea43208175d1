#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# packages_test.sh FOLDER: installs the packages of FOLDER (scripts/package.sh) into a fresh Debian root, builds and runs samples there, runs
# the programs, removes everything again, and compares the files. Needs root, mmdebstrap and Debian's archive; otherwise exit status 77.
# shellcheck disable=SC2016 # for the shell inside
set -euo pipefail
[[ $# == 1 && -d $1 ]] || { echo "usage: packages_test.sh FOLDER" >&2; exit 2; }
debs=$(realpath "$1")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
skip() { echo "packages: skipped: $*"; exit 77; }
[[ $(id -u) == 0 ]] || skip "only root can make a root file system"
command -v mmdebstrap >/dev/null || skip "mmdebstrap is missing; scripts/setup.sh --gates installs it"
# shellcheck disable=SC1091
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
ls "$debs"/backplane-tools_*.deb >/dev/null || { echo "packages: there is no package in $debs"; exit 1; }

work=$(mktemp -d)
root=$work/root
# Commands in the root run in a mount namespace that ends with them, so nothing is mounted there when the folder is deleted.
trap 'rm -rf --one-file-system "$work"' EXIT
inside() {
    unshare --mount --pid --fork bash -c 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount --rbind /sys "$1/sys" && cd / && exec chroot "$@"' _ "$root" \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}
step() { echo "packages: $* (after $SECONDS s)"; }

step "making a root of $release"
mmdebstrap --quiet --variant=apt --include=ca-certificates,gcc,libc6-dev,pkg-config,ocl-icd-opencl-dev,pocl-opencl-icd "$release" "$root" ||
    skip "Debian's archive cannot be reached"
cp /etc/resolv.conf "$root/etc/" 2>/dev/null || true
for file in /etc/apt/apt.conf.d/*proxy* /etc/apt/apt.conf; do [[ ! -f $file ]] || cp "$file" "$root/etc/apt/apt.conf.d/99host-$(basename "$file")"; done
mkdir "$root/debs" "$root/work"
cp "$debs"/*.deb "$root/debs"
cp "$here"/samples/{01_list/list.c,02_run/run.c,05_streams/streams.c,06_async/async.c,testing/make_model.c} "$root/work"
# Lists the files of the root, without caches, logs and the state of dpkg and apt, which belong to no package.
files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./tmp -o -path ./work -o -path ./debs -o -path ./var/cache -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./root/.cache \) -prune -o -print) | sort; }
inside apt-get -qq update
inside dpkg --get-selections | sort >"$work/packages.before"
files >"$work/files.before"

step "installing"
inside sh -c 'apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends /debs/*.deb' >"$work/install.txt" 2>&1 || { cat "$work/install.txt"; exit 1; }
for deb in "$debs"/*.deb; do
    name=$(dpkg-deb -f "$deb" Package)
    inside sh -c "test -s /usr/share/doc/$name/copyright && gzip -t /usr/share/doc/$name/changelog.gz" || { echo "packages: $name has no license or changelog"; exit 1; }
done

step "running"
inside sh -c '
set -eu
cd /work
flags=$(pkg-config --cflags --libs backplane)
cc -std=c11 -o make_model make_model.c && ./make_model add_relu.onnx
for sample in list run async; do cc -std=c11 -D_GNU_SOURCE -o $sample $sample.c $(pkg-config --cflags backplane) -ldl; done
cc -std=c11 -D_GNU_SOURCE -o streams streams.c $(pkg-config --cflags backplane) -lOpenCL -ldl
printf "#include <backplane/loader.h>\nint main(void) { return bp_get_api(BP_ABI_VERSION) == NULL; }\n" >linked.c
cc -o linked linked.c $flags && ./linked
expect() { text=$1; shift; "$@" >out.txt 2>&1 || { cat out.txt; echo "failed: $*"; exit 1; }; grep -qF -- "$text" out.txt || { cat out.txt; echo "no \"$text\" from: $*"; exit 1; }; echo "  $*: $text"; }
expect "device 1:" ./list
expect "y [2, 3]: 0 0 0 2 4 6" ./run add_relu.onnx
expect "frame 2: 0 0 0 10 20 30" ./streams add_relu.onnx
expect "run 1 [BP_OK]: 0 0 1 2 3 4" ./async add_relu.onnx
expect "libbackplane_cpu.so" backplane list
expect "complete -F _backplane backplane" cat /usr/share/bash-completion/completions/backplane
expect ".TH BACKPLANE-CONFORM 1" zcat /usr/share/man/man1/backplane-conform.1.gz
expect "float[2,3]" backplane run add_relu.onnx --device cpu
expect "L" backplane-conform --quick --plugin /usr/lib/$(uname -m)-linux-gnu/backplane/libbackplane_null.so
' || exit 1
if ls "$debs"/python3-backplane_*.deb >/dev/null 2>&1; then
    inside python3 -c '
import numpy, backplane
x = numpy.array([[-1, 0, 1], [2, 3, 4]], numpy.float32)
y = backplane.load("/work/add_relu.onnx").compile().run({"a": x, "b": x})["y"]
assert (y == numpy.maximum(2 * x, 0)).all(), y
print("  python3-backplane:", y.tolist())'
    inside python3 -m backplane run /work/add_relu.onnx --device cpu | grep -F "float[2,3]"
fi

step "purging"
inside sh -c 'apt-get -qq -o Dpkg::Use-Pty=0 purge -y $(for deb in /debs/*.deb; do dpkg-deb -f $deb Package; done) && apt-get -qq -o Dpkg::Use-Pty=0 -o APT::AutoRemove::SuggestsImportant=false -o APT::AutoRemove::RecommendsImportant=false autoremove --purge -y' >"$work/purge.txt" 2>&1 || { cat "$work/purge.txt"; exit 1; }
inside dpkg --get-selections | sort >"$work/packages.after"
files >"$work/files.after"
status=0
if ! diff "$work/packages.before" "$work/packages.after"; then echo "packages: the installed packages changed"; status=1; fi
if ! diff "$work/files.before" "$work/files.after" | head -50; then echo "packages: files were left behind (>) or are missing (<)"; status=1; fi
[[ $status -ne 0 ]] || echo "packages: $(find "$debs" -name '*.deb' | wc -l) packages installed, ran and left nothing behind, in $SECONDS s"
exit "$status"
