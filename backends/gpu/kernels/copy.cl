// SPDX-License-Identifier: Apache-2.0
// Copies n elements. TYPE is an unsigned integer of the elements' size.
kernel void copy(GLOBAL const S(TYPE)* x, GLOBAL S(TYPE)* y, int n) {
  const int i = (int)get_global_id(0);
  if (i < n) y[i] = x[i];
}
