#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes Debian packages of a release build, with a list of what is inside (SPDX).
set -euo pipefail

usage() {
    cat <<'END'
scripts/package.sh [--build FOLDER] [--out FOLDER] [--no-python]

Builds the preset `package` and makes its .deb packages, and backplane-VERSION.spdx.json, which lists what they were built from.
Packaging a build again gives the same bytes: times are those of the last commit, or $SOURCE_DATE_EPOCH.

  --build FOLDER  packages a build that is there and was configured with CMAKE_INSTALL_PREFIX=/usr
  --out FOLDER    where the packages go (build/package/packages); earlier packages in it are deleted
  --no-python     without python3-backplane, which needs nanobind (scripts/setup.sh installs it) and python3-dev

Needs dpkg-dev, which finds the packages that the libraries need.
Exit status: 0 if every package was made.
END
}

build='' out='' python=yes
while [[ $# -gt 0 ]]; do
    case $1 in
        --build) build=$(realpath "${2:?--build needs a folder}"); shift 2 ;;
        --out) out=$(realpath -m "${2:?--out needs a folder}"); shift 2 ;;
        --no-python) python=no; shift ;;
        --help | -h) usage; exit 0 ;;
        *) echo "package.sh: unknown option '$1'" >&2; usage >&2; exit 2 ;;
    esac
done

# Without dpkg-shlibdeps, cpack would make packages that do not depend on the libraries they need.
command -v dpkg-shlibdeps >/dev/null || { echo "package.sh: dpkg-shlibdeps is missing: apt-get install dpkg-dev" >&2; exit 1; }

cd "$(dirname "${BASH_SOURCE[0]}")/.."
data=$(realpath -m "${BACKPLANE_DATA:-${XDG_CACHE_HOME:-$HOME/.cache}/backplane}")
# shellcheck source=scripts/build.sh
source scripts/build.sh
umask 022
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export LC_ALL=C.UTF-8 TZ=UTC

if [[ -z $build ]]; then
    build=$PWD/build/package
    options=(-DBACKPLANE_PYTHON=OFF)
    if [[ $python == yes ]]; then
        nanobind=$("$data/venv/bin/python" -m nanobind --cmake_dir 2>/dev/null || true)
        if [[ -n $nanobind ]]; then
            options=(-DBACKPLANE_PYTHON=ON -DPython_EXECUTABLE=/usr/bin/python3 "-Dnanobind_DIR=$nanobind")
        else
            echo "package.sh: no python3-backplane: nanobind is missing (scripts/setup.sh installs it)"
        fi
    fi
    configure package "${options[@]}"
    build package
    build=$PWD/build/package
fi
: "${out:=$build/packages}"
mkdir -p "$out"
rm -rf "$out"/*.deb "$out"/*.spdx.json "$out/_CPack_Packages"
(cd "$build" && cpack -G DEB -B "$out") >"$build/cpack.txt" 2>&1 || { cat "$build/cpack.txt"; exit 1; }
rm -rf "$out/_CPack_Packages"
version=$(sed -nE 's/^set\(CPACK_PACKAGE_VERSION "(.*)"\)/\1/p' "$build/CPackConfig.cmake")
/usr/bin/python3 -B scripts/sbom.py "$build" "$out"/*.deb >"$out/backplane-$version.spdx.json"
(cd "$out" && sha256sum -- *.deb *.spdx.json)
