/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a model for the samples' tests; all tensors are float[2, 3]. By default, y = Relu(Add(a, b)). If the second
 * argument is "weights", b is a weight of ones instead of an input. If it is "custom", y = Relu(Shift(Twice(a))) with
 * the operator com.acme.Shift and the function com.acme.Twice, which adds its input to itself.
 *
 * The protobuf bytes are written by hand, because few fields are needed. A field is a tag (field number and wire type),
 * followed by a number, or by a length and that many bytes. */
#include <stdio.h>
#include <string.h>

typedef struct {
  unsigned char bytes[700]; /* the whole model is smaller */
  size_t size;
} Message;

static void put(Message* m, unsigned value) {
  for (; value >= 128; value >>= 7) m->bytes[m->size++] = (unsigned char)(value | 128);
  m->bytes[m->size++] = (unsigned char)value;
}
static void number(Message* m, unsigned field, unsigned value) {
  put(m, field << 3);
  put(m, value);
}
static void bytes(Message* m, unsigned field, const void* data, size_t size) {
  put(m, field << 3 | 2);
  put(m, (unsigned)size);
  memcpy(m->bytes + m->size, data, size);
  m->size += size;
}
static void text(Message* m, unsigned field, const char* s) {
  bytes(m, field, s, strlen(s));
}
static void child(Message* m, unsigned field, const Message* c) {
  bytes(m, field, c->bytes, c->size);
}

static Message value_info(const char* name) {
  Message value = {0}, type = {0}, tensor = {0}, shape = {0};
  for (unsigned extent = 2; extent <= 3; ++extent) {
    Message dim = {0};
    number(&dim, 1, extent);
    child(&shape, 1, &dim);
  }
  number(&tensor, 1, 1); /* FLOAT */
  child(&tensor, 2, &shape);
  child(&type, 1, &tensor);
  text(&value, 1, name);
  child(&value, 2, &type);
  return value;
}

static Message node(const char* op, const char* a, const char* b, const char* y) {
  Message n = {0};
  text(&n, 1, a);
  if (b != NULL) text(&n, 1, b);
  text(&n, 2, y);
  text(&n, 3, op);
  text(&n, 4, op);
  return n;
}

static void custom(Message* graph, Message* model, Message* opset) {
  static const char domain[] = "com.acme";
  Message shift = node("Shift", "twice", NULL, "sum"), twice = node("Twice", "a", NULL, "twice");
  Message by = {0}, function = {0};
  const float three = 3;
  unsigned char raw[4];
  memcpy(raw, &three, 4);
  text(&by, 1, "by");
  put(&by, 2 << 3 | 5); /* field f, a float of four bytes */
  memcpy(by.bytes + by.size, raw, 4);
  by.size += 4;
  number(&by, 20, 1); /* FLOAT */
  child(&shift, 5, &by);
  text(&shift, 7, domain);
  text(&twice, 7, domain);
  child(graph, 1, &twice);
  child(graph, 1, &shift);
  const Message body = node("Add", "x", "x", "z");
  text(&function, 1, "Twice");
  text(&function, 4, "x");
  text(&function, 5, "z");
  child(&function, 7, &body);
  child(&function, 9, opset);
  text(&function, 10, domain);
  child(model, 25, &function);
  Message acme = {0};
  text(&acme, 1, domain);
  number(&acme, 2, 1);
  child(model, 8, &acme);
}

static Message ones(const char* name) {
  Message tensor = {0};
  float data[6];
  for (int i = 0; i < 6; ++i) data[i] = 1;
  number(&tensor, 1, 2); /* dims */
  number(&tensor, 1, 3);
  number(&tensor, 2, 1); /* FLOAT */
  text(&tensor, 8, name);
  bytes(&tensor, 9, data, sizeof data);
  return tensor;
}

int main(int argc, char** argv) {
  Message model = {0}, graph = {0}, opset = {0};
  const Message add = node("Add", "a", "b", "sum"), relu = node("Relu", "sum", NULL, "y");
  const Message a = value_info("a"), b = value_info("b"), y = value_info("y"), weight = ones("b");
  const int has_weight = argc == 3 && strcmp(argv[2], "weights") == 0;
  const int is_custom = argc == 3 && strcmp(argv[2], "custom") == 0;
  number(&opset, 2, 17);
  if (is_custom) {
    custom(&graph, &model, &opset);
  } else {
    child(&graph, 1, &add);
  }
  child(&graph, 1, &relu);
  text(&graph, 2, "sample");
  if (has_weight) child(&graph, 5, &weight);
  child(&graph, 11, &a);
  if (!has_weight && !is_custom) child(&graph, 11, &b);
  child(&graph, 12, &y);
  number(&model, 1, 8); /* IR version */
  child(&model, 7, &graph);
  child(&model, 8, &opset);
  FILE* file = argc >= 2 ? fopen(argv[1], "wb") : NULL;
  if (file == NULL || fwrite(model.bytes, 1, model.size, file) != model.size || fclose(file) != 0) {
    fprintf(stderr, "make_model: cannot write %s\n", argc >= 2 ? argv[1] : "without a file name");
    return 1;
  }
  return 0;
}
