// SPDX-License-Identifier: Apache-2.0
// CLONES in front of a plain function compiles its loops for each instruction set; the loader of the library picks one.
#pragma once

#if defined(__x86_64__) && defined(__has_attribute) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if __has_attribute(target_clones) && !defined(__clang__)  // Clang's clones take no arch= before release 17
#define CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("O3", "no-math-errno")))
#endif
#endif
#ifndef CLONES
#define CLONES
#endif
