/* SPDX-License-Identifier: Apache-2.0
 *
 * Asynchronous runs: async MODEL.onnx. Submits two runs ahead of their data, ordered by a semaphore, then a run that is
 * canceled, and a run with a deadline. The model computes y from a and b, all float[2, 3] (make_model writes one).
 *
 * The semaphore `ready` counts the prepared inputs, `done` the finished runs. Of the first two runs, run i waits until
 * `ready` is i + 1, and sets `done` to i + 1 when it ends. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backplane/loader.h"

#define COUNT 6
#define RUNS 4

static const bp_loader_api_t* api;
static char text[1000];
static bp_error_t error = {.size = sizeof error, .text = text, .text_capacity = sizeof text};

static void check(bp_status_t status) {
  if (status == BP_OK) return;
  fprintf(stderr, "async: %.*s [%s]\n", (int)(error.text_size < sizeof text ? error.text_size : sizeof text), text,
          api->status_name(status));
  exit(1);
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

typedef struct {
  bp_exec_t* exec;
  float a[COUNT], b[COUNT], y[COUNT];
} Slot; /* each run in flight has its own exec and memory */

static void bind(bp_exec_t* exec, uint32_t slot, float* data) {
  const int64_t extents[] = {2, 3};
  const bp_tensor_t tensor = {.size = sizeof tensor,
                              .dtype = BP_DTYPE_FLOAT,
                              .rank = 2,
                              .layout = BP_LAYOUT_DENSE,
                              .extents = extents,
                              .buffer = {.address = data, .bytes = COUNT * sizeof(float)}};
  check(api->exec_bind(exec, slot, &tensor, &error));
}

/* Called once for each accepted run, from any thread. It must not call functions of the exec. */
static void BP_CALL ended(void* self, bp_status_t status, const bp_error_t* why) {
  (void)why;
  *(bp_status_t*)self = status;
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: async MODEL.onnx\n");
    return 2;
  }
  void* library = dlopen("libbackplane.so.1", RTLD_NOW);
  bp_get_api_t get_api = NULL;
  if (library != NULL) *(void**)&get_api = dlsym(library, BP_LOADER_SYMBOL);
  if (get_api == NULL || (api = get_api(BP_ABI_VERSION)) == NULL) {
    fprintf(
        stderr,
        "async: libbackplane.so.1 is missing or has another version; install Backplane or set LD_LIBRARY_PATH. %s\n",
        library == NULL ? dlerror() : "");
    return 1;
  }
  bp_env_t* env = NULL;
  check(api->env_create(NULL, &env, &error));
  const bp_model_source_t source = {.size = sizeof source, .descriptor = -1, .path = {argv[1], strlen(argv[1])}};
  bp_model_t* model = NULL;
  check(api->model_open(env, &source, &model, &error));
  bp_session_t* session = NULL;
  check(api->session_create(env, model, NULL, &session, &error));

  Slot slots[RUNS] = {0};
  bp_status_t status[RUNS] = {0};
  for (int i = 0; i < RUNS; ++i) {
    check(api->exec_create(session, NULL, &slots[i].exec, &error));
    bind(slots[i].exec, 0, slots[i].a);
    bind(slots[i].exec, 1, slots[i].b);
    bind(slots[i].exec, BP_SLOT_OUTPUT, slots[i].y);
  }
  bp_semaphore_t *ready = NULL, *done = NULL, *never = NULL;
  bp_cancel_t* cancel = NULL;
  check(api->semaphore_create(0, &ready, &error));
  check(api->semaphore_create(0, &done, &error));
  check(api->semaphore_create(0, &never, &error));
  check(api->cancel_create(&cancel, &error));

  /* Submits two runs before their data is ready. The second one also waits for the first. `run` and its arrays are
   * copied. */
  for (int i = 0; i < 2; ++i) {
    const bp_point_t waits[] = {bp_host_point(ready, (uint64_t)i + 1), bp_host_point(done, (uint64_t)i)};
    const bp_point_t signal = bp_host_point(done, (uint64_t)i + 1);
    const bp_run_t run = {.size = sizeof run,
                          .waits = waits,
                          .wait_count = 2,
                          .signals = &signal,
                          .signal_count = 1,
                          .self = &status[i],
                          .done = ended};
    check(api->exec_submit(slots[i].exec, &run, &error));
  }
  for (int i = 0; i < 2; ++i) { /* provides the data */
    for (int k = 0; k < COUNT; ++k) slots[i].a[k] = (float)(k + i), slots[i].b[k] = -2;
    check(api->semaphore_signal(ready, (uint64_t)i + 1, NULL, &error));
  }
  check(api->semaphore_wait(done, 2, BP_FOREVER, NULL, &error));
  for (int i = 0; i < 2; ++i) {
    printf("run %d [%s]:", i, api->status_name(status[i]));
    for (int k = 0; k < COUNT; ++k) printf(" %g", slots[i].y[k]);
    printf("\n");
  }

  /* Cancels a run that waits for a value that is never signaled. The value 3 of `done`, which the run would have
   * signaled, fails too. */
  const bp_point_t waits = bp_host_point(never, 1), third = bp_host_point(done, 3), fourth = bp_host_point(done, 4);
  bp_run_t run = {.size = sizeof run,
                  .waits = &waits,
                  .wait_count = 1,
                  .signals = &third,
                  .signal_count = 1,
                  .cancel = cancel,
                  .self = &status[2],
                  .done = ended};
  check(api->exec_submit(slots[2].exec, &run, &error));
  api->cancel_set(cancel); /* may also be called from a signal handler */
  bp_status_t waited = api->semaphore_wait(done, 3, BP_FOREVER, NULL, &error);
  printf("cancelled [%s], waiter [%s]\n", api->status_name(status[2]), api->status_name(waited));

  /* Submits a run with a deadline. The earlier failure does not affect it: later values of the semaphore still work. */
  run.cancel = NULL;
  run.deadline = now() + 20000000; /* 20 ms */
  run.signals = &fourth;
  run.self = &status[3];
  check(api->exec_submit(slots[3].exec, &run, &error));
  waited = api->semaphore_wait(done, 4, BP_FOREVER, NULL, &error);
  printf("late [%s], waiter [%s]\n", api->status_name(status[3]), api->status_name(waited));

  for (int i = 0; i < RUNS; ++i) api->exec_destroy(slots[i].exec);
  api->cancel_destroy(cancel);
  api->semaphore_destroy(never);
  api->semaphore_destroy(done);
  api->semaphore_destroy(ready);
  api->session_destroy(session);
  api->model_destroy(model);
  api->env_destroy(env);
  return 0;
}
