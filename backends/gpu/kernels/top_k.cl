// SPDX-License-Identifier: Apache-2.0
// The k greatest (BEFORE is >) or smallest (<) elements of [outer][n][inner] along n, sorted, and their indices. TYPE is
// the element type. Each work item has one element, and counts the elements of the row that come before it in sorted order;
// the count is the element's position in the result.
kernel void top_k(GLOBAL const S(TYPE)* x, GLOBAL S(TYPE)* y, GLOBAL long* indices, int rows, int n, int inner, int k) {
  const int i = (int)get_global_id(0), row = (int)get_global_id(1);
  if (i >= n || row >= rows) return;
  x += (size_t)(row / inner) * n * inner + row % inner;
  const C(TYPE) mine = LOAD(TYPE, x, i * inner);
  int rank = 0;
  for (int j = 0; j < n; ++j) {
    const C(TYPE) v = LOAD(TYPE, x, j * inner);
    // NaN counts as the largest value.
    const bool equal = v == mine || (v != v && mine != mine);
    const bool before = equal ? j < i : v != v ? 1 BEFORE 0 : mine != mine ? 0 BEFORE 1 : v BEFORE mine;
    rank += before ? 1 : 0;
  }
  if (rank >= k) return;
  const size_t at = ((size_t)(row / inner) * k + rank) * inner + row % inner;
  STORE(TYPE, y, at, mine);
  indices[at] = i;
}
