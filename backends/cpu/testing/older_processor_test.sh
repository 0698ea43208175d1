#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# older_processor_test.sh PROCESSOR TEST    runs a test program on an emulated processor. Instructions that PROCESSOR
#                                           lacks trap there, so code that uses them by mistake is found.
# Skips ConvolutionsOfManyChannels, which would take as long as all other tests; ConvolutionsInTiles executes the same
# kernels.
command -v qemu-x86_64 >/dev/null || { echo "skipped: no qemu-x86_64 (package qemu-user)"; exit 77; }
exec qemu-x86_64 -cpu "$1" "$2" --gtest_filter=-*/ConvolutionsOfManyChannels
