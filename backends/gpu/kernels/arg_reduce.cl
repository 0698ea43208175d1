// SPDX-License-Identifier: Apache-2.0
// The index of the largest (BETTER is >) or smallest (BETTER is <) element of x[outer][n][inner] along n. NaN beats any
// number. TYPE is the type of x. Of equal elements, the first wins; with LAST, the last. A row is the n elements of one
// (outer, inner). A work item compares WIDE adjacent elements of one row at a time: WIDE is 1, or inner is 1 and n is at
// least WIDE. With ACROSS, it instead compares WIDE adjacent rows at a time, and inner is at least WIDE.
#ifdef LAST
#define BEATS(v, best) (v BETTER best || v == best || v != v)
#else
#define BEATS(v, best) ((v BETTER best || v != v) && best == best)
#endif

kernel void arg_reduce(GLOBAL const S(TYPE)* restrict x, GLOBAL long* restrict y, int items, int n, int inner) {
  const int item = (int)get_global_id(0);
  if (item >= items) return;
#ifdef ACROSS
  const int blocks = (inner + WIDE - 1) / WIDE;
  const int first = min(item % blocks * WIDE, inner - WIDE);  // the last block is moved back to end at `inner`
  x += (size_t)(item / blocks) * n * inner + first;
  y += (size_t)(item / blocks) * inner + first;
  const int step = inner, whole = n;
#else
  x += (size_t)(item / inner) * n * inner + item % inner;
  y += item;
  const int step = WIDE == 1 ? inner : WIDE, whole = n / WIDE;
#endif
  C(TYPE) best[WIDE];
  int positions[WIDE];
  for (int l = 0; l < WIDE; ++l) {
    best[l] = LOAD(TYPE, x, l);
    positions[l] = 0;
  }
  for (int i = 1; i < whole; ++i) {
    for (int l = 0; l < WIDE; ++l) {
      const C(TYPE) v = LOAD(TYPE, x, i * step + l), before = best[l];
      const bool beats = BEATS(v, before);
      positions[l] = beats ? i : positions[l];
      best[l] = beats ? v : before;
    }
  }
#if defined(ACROSS) || WIDE == 1
  for (int l = 0; l < WIDE; ++l) y[l] = positions[l];
#else
  // Combines the WIDE partial results: of equal values, the smaller index wins, or the larger with LAST.
  C(TYPE) winner = best[0];
  int position = positions[0] * WIDE;
  for (int l = 1; l < WIDE; ++l) {
    const C(TYPE) v = best[l];
    const int at = positions[l] * WIDE + l;
    const bool equal = v == winner || (v != v && winner != winner);
#ifdef LAST
    const bool beats = equal ? at > position : BEATS(v, winner) && winner == winner;
#else
    const bool beats = equal ? at < position : BEATS(v, winner);
#endif
    position = beats ? at : position;
    winner = beats ? v : winner;
  }
  for (int i = whole * WIDE; i < n; ++i) {
    const C(TYPE) v = LOAD(TYPE, x, i);
    const bool beats = BEATS(v, winner);
    position = beats ? i : position;
    winner = beats ? v : winner;
  }
  y[0] = position;
#endif
}
