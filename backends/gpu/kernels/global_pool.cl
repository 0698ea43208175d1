// SPDX-License-Identifier: Apache-2.0
// GlobalAveragePool, GlobalMaxPool and GlobalLpPool, with one work item per plane. TYPE is the element type. KIND: 0
// maximum, 1 average, 3 the P-norm.
kernel void global_pool(GLOBAL const S(TYPE)* x, GLOBAL S(TYPE)* y, int planes, int size) {
  const int plane = (int)get_global_id(0);
  if (plane >= planes) return;
  x += (size_t)plane * size;
#if KIND == 0
  C(TYPE) result = LOAD(TYPE, x, 0);
#else
  C(TYPE) result = 0;
#endif
  for (int i = 0; i < size; ++i) {
    const C(TYPE) v = LOAD(TYPE, x, i);
#if KIND == 0
    result = v > result || v != v ? v : result;
#elif KIND == 3
    result += pow(fabs(v), (C(TYPE))P);
#else
    result += v;
#endif
  }
#if KIND == 1
  result /= size;
#elif KIND == 3
  result = pow(result, (C(TYPE))1 / P);
#endif
  STORE(TYPE, y, plane, result);
}
