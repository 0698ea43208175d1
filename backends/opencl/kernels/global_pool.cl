// SPDX-License-Identifier: Apache-2.0
// One work item a plane: GlobalAveragePool and GlobalMaxPool. TYPE; KIND 0 maximum, 1 average.
kernel void global_pool(global const S(TYPE)* x, global S(TYPE)* y, int planes, int size) {
  const int plane = (int)get_global_id(0);
  if (plane >= planes) return;
  x += (size_t)plane * size;
  C(TYPE) result = LOAD(TYPE, x, 0);
  for (int i = 1; i < size; ++i) {
    const C(TYPE) v = LOAD(TYPE, x, i);
#if KIND == 0
    result = v > result || v != v ? v : result;
#else
    result += v;
#endif
  }
#if KIND == 1
  result /= size;
#endif
  STORE(TYPE, y, plane, result);
}
