/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists the backends that the loader finds and their devices. It opens the loader with dlopen and links no library
 * of Backplane. */
#include <dlfcn.h>
#include <stdio.h>

#include "backplane/loader.h"

static const char* kind_name(uint32_t kind) {
  switch (kind) {
    case BP_DEVICE_CPU:
      return "CPU";
    case BP_DEVICE_GPU:
      return "GPU";
    case BP_DEVICE_NPU:
      return "NPU";
    case BP_DEVICE_FPGA:
      return "FPGA";
    default:
      return "other";
  }
}

static void print(const char* label, bp_text_t text) {
  printf("  %-9s%.*s\n", label, (int)text.size, text.size == 0 ? "" : text.data);
}

int main(void) {
  /* The loader is one shared library. bp_get_api returns a table of all its functions. */
  void* library = dlopen("libbackplane.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "list: %s; install Backplane or set LD_LIBRARY_PATH\n", dlerror());
    return 1;
  }
  bp_get_api_t get_api;
  *(void**)&get_api = dlsym(library, BP_LOADER_SYMBOL);
  const bp_loader_api_t* api = get_api == NULL ? NULL : get_api(BP_ABI_VERSION);
  if (api == NULL) {
    fprintf(stderr, "list: libbackplane.so.1 does not support ABI %u.%u: install a loader of that version\n",
            BP_VERSION_MAJOR(BP_ABI_VERSION), BP_VERSION_MINOR(BP_ABI_VERSION));
    return 1;
  }

  char text[500];
  bp_error_t error = {.size = sizeof error, .text = text, .text_capacity = sizeof text};
  bp_env_t* env;
  if (api->env_create(NULL, &env, &error) != BP_OK) {
    fprintf(stderr, "list: %.*s\n", (int)(error.text_size < sizeof text ? error.text_size : sizeof text), text);
    return 1;
  }

  /* Lists every file that was considered, including refused files. */
  for (uint32_t i = 0; i < api->env_candidate_count(env); ++i) {
    bp_candidate_t candidate = {.size = sizeof candidate};
    if (api->env_candidate(env, i, &candidate, NULL) != BP_OK) continue;
    printf("candidate %u: %s\n", i, candidate.refusal == BP_REFUSED_NONE ? "taken" : "refused");
    print("id", candidate.id);
    print("library", candidate.library);
    print("story", candidate.text);
  }

  /* Devices of all backends are numbered consecutively from 1. */
  for (uint32_t i = 1; i <= api->env_device_count(env); ++i) {
    bp_device_info_t info = {.size = sizeof info};
    bp_text_t name;
    if (api->env_device(env, i, &info, &name, NULL) != BP_OK) continue;
    printf("device %u: %s\n", i, kind_name(info.kind));
    print("name", name);
    print("what", info.name);
    print("driver", info.driver);
  }
  api->env_destroy(env);
  return 0;
}
