#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# on_instructions_test.sh INSTRUCTIONS TEST    runs a test program that may use no instruction set above
#                                              INSTRUCTIONS.
# Skipped on a processor that lacks that instruction set, where the limit would change nothing.
case $1 in
    AVX512) flag=avx512f ;;
    AVX2_VNNI) flag=avx_vnni ;;
    AVX2) flag=avx2 ;;
    SSE41) flag=sse4_1 ;;
    BASELINE) flag= ;;
    *) echo "on_instructions_test.sh: there are no instructions '$1'" >&2; exit 2 ;;
esac
[ -z "$flag" ] || grep -qw "$flag" /proc/cpuinfo || { echo "skipped: this processor lacks $1"; exit 77; }
BACKPLANE_CPU_INSTRUCTIONS=$1 exec "$2"
