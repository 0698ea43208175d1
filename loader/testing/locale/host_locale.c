// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that sets the locale from the environment, as graphical frameworks do.
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void set(void) {
  if (setlocale(LC_ALL, "") != NULL) return;
  fputs("the locale of the environment does not exist\n", stderr);
  _Exit(1);
}
