#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each form also requires that the library binds all symbols when it is loaded (-z now), unless a sanitizer is built in.
# exports_test.sh plugin FILE…           each exports bp_plugin_query and nothing else, apart from the symbols of coverage builds
# exports_test.sh onnxifi FILE HEADER    exports exactly the functions that HEADER declares, and is never unloaded
# exports_test.sh loader FILE GOLDEN ABI exports, under BACKPLANE_<ABI>, exactly the functions that GOLDEN lists, without
#                                    bp_plugin_query, and is never unloaded: a thread of its pool may still run its code
set -eu
export LC_ALL=C # the output of tools is parsed below
kind=$1
shift
exported() { nm -D --defined-only "$1" | grep -v ' __llvm_pr\| lprof\| __st[a-z]*___llvm_prf' | sed 's/^[0-9a-f]* *[A-Za-z] //' | sort; }

hardened() { # sanitized libraries are exempt
    if readelf -d "$1" | grep -q BIND_NOW || nm -D "$1" | grep -q ' U __[at]san_'; then return; fi
    echo "$1 is not linked with -z now"
    exit 1
}

if [ "$kind" = plugin ]; then
    for file in "$@"; do
        hardened "$file"
        [ "$(exported "$file")" = bp_plugin_query ] && continue
        echo "$file exports more or less than bp_plugin_query:"
        exported "$file"
        exit 1
    done
elif [ "$kind" = onnxifi ]; then
    hardened "$1"
    readelf -d "$1" | grep -q 'Flags:.*NODELETE' || { echo "$1 is not linked with -z nodelete"; exit 1; }
    wanted=$(sed -n 's/^ONNXIFI_EXPORT onnxStatus \(onnx[A-Za-z]*\)(.*/\1/p' "$2" | sort)
    [ -n "$wanted" ] && [ "$(exported "$1")" = "$wanted" ] && exit 0
    echo "$1 does not export exactly what $2 declares. Exported:"
    exported "$1"
    exit 1
else
    hardened "$1"
    readelf -d "$1" | grep -q 'Flags:.*NODELETE' || { echo "$1 is not linked with -z nodelete"; exit 1; }
    wanted=$(sed -n '/bp_plugin_query(/d; s/^function .*BP_CALL \(bp_[a-z_0-9]*\)(.*/\1@@BACKPLANE_'"$3"'/p' "$2")
    seen=$(exported "$1")
    [ "$seen" = "$(printf '%s\nBACKPLANE_%s\n' "$wanted" "$3" | sort)" ] && exit 0
    # The list has the version itself as a symbol too: without a version in newer binutils, with its own name as the version in older ones.
    [ "$seen" = "$(printf '%s\nBACKPLANE_%s@@BACKPLANE_%s\n' "$wanted" "$3" "$3" | sort)" ] && exit 0
    echo "$1 does not export exactly what $2 lists. Exported:"
    echo "$seen"
    exit 1
fi
