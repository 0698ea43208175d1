// SPDX-License-Identifier: Apache-2.0
// TYPE: a word of the elements' size.
kernel void copy(global const S(TYPE)* x, global S(TYPE)* y, int n) {
  const int i = (int)get_global_id(0);
  if (i < n) y[i] = x[i];
}
