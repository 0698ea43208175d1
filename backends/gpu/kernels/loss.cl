// SPDX-License-Identifier: Apache-2.0
// Negative log-likelihood losses. TYPE is the type of scores and results, INDEX that of labels. WEIGHTED: each class
// has a weight. IGNORED: the label to ignore (ignore_index); its loss and weight are 0. MEAN: the total is the weighted
// mean. LANES: work items that compute the total.

// Computes the losses values[n][d] and their weights from the log-probabilities x[n][classes][d]. A label out of range
// sets fault[0] to `node`.
kernel void loss(GLOBAL const S(TYPE)* x, GLOBAL const S(INDEX)* labels, GLOBAL const S(TYPE)* class_weights,
                 GLOBAL S(TYPE)* values, GLOBAL C(TYPE)* weights, int total, int classes, int inner,
                 GLOBAL int* fault, int node) {
  const int i = (int)get_global_id(0);
  if (i >= total) return;
  const long label = (long)labels[i];
  bool counts = label >= 0 && label < classes;
#ifdef IGNORED
  if (!counts && label != IGNORED) fault[0] = node;
  counts = counts && label != IGNORED;
#else
  if (!counts) fault[0] = node;
#endif
  C(TYPE) value = 0, weight = 0;
  if (counts) {
#ifdef WEIGHTED
    weight = LOAD(TYPE, class_weights, (int)label);
#else
    weight = 1;
#endif
    value = -LOAD(TYPE, x, (i / inner * classes + (int)label) * inner + i % inner) * weight;
  }
  STORE(TYPE, values, i, value);
  weights[i] = weight;
}

// Computes the sum of the losses, or with MEAN their weighted mean, with one group of LANES work items.
#if LANES > 1
JOINED(sum_of, C(TYPE), a + b)
#endif
kernel void loss_total(GLOBAL const S(TYPE)* values, GLOBAL const C(TYPE)* weights, GLOBAL S(TYPE)* y, int total) {
  const int lane = (int)get_global_id(0);
  if (lane >= LANES) return;
  C(TYPE) value = 0, weight = 0;
  for (int i = lane; i < total; i += LANES) {
    value += LOAD(TYPE, values, i);
    weight += weights[i];
  }
#if LANES > 1
  SHARED(C(TYPE), shared, LANES);
  value = sum_of(value, shared);
  weight = sum_of(weight, shared);
  if (lane != 0) return;
#endif
#ifdef MEAN
  value /= weight;
#endif
  STORE(TYPE, y, 0, value);
}
