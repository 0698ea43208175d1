/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the model of the samples' tests: y = Relu(Add(a, b)), all float[2, 3]. ONNX is protobuf, and so little of it
 * is needed here that the bytes are written by hand: a tag (field number and wire type), then a number or a length and
 * as many bytes. */
#include <stdio.h>
#include <string.h>

typedef struct {
  unsigned char bytes[500]; /* the whole model has fewer */
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

int main(int argc, char** argv) {
  Message model = {0}, graph = {0}, opset = {0};
  const Message add = node("Add", "a", "b", "sum"), relu = node("Relu", "sum", NULL, "y");
  const Message a = value_info("a"), b = value_info("b"), y = value_info("y");
  child(&graph, 1, &add);
  child(&graph, 1, &relu);
  text(&graph, 2, "sample");
  child(&graph, 11, &a);
  child(&graph, 11, &b);
  child(&graph, 12, &y);
  number(&opset, 2, 17);
  number(&model, 1, 8); /* IR version */
  child(&model, 7, &graph);
  child(&model, 8, &opset);
  FILE* file = argc == 2 ? fopen(argv[1], "wb") : NULL;
  if (file == NULL || fwrite(model.bytes, 1, model.size, file) != model.size || fclose(file) != 0) {
    fprintf(stderr, "make_model: cannot write %s\n", argc == 2 ? argv[1] : "without a file name");
    return 1;
  }
  return 0;
}
