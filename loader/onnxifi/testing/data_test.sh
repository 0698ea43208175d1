#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# data_test.sh CLIENT LIBRARY BACKEND SUITE [-KNOWN…]: runs data_client on a folder of Debian's ONNX test data.
set -euo pipefail

data=/usr/share/libonnx-testdata/data/$4
if [[ ! -x $1 || ! -d $data ]]; then
    echo "skipped: ONNXIFI's own header and loader or $data are missing; scripts/setup.sh installs both"
    exit 77
fi
exec "$1" "$2" "$3" "$data" "${@:5}"
