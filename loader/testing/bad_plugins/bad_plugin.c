/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin with one fault. It is compiled once for each value of FAULT; without its fault every one of them would be
 * taken.
 */
#include <stdlib.h>
#include <unistd.h>

#include "backplane/plugin.h"

enum fault {
  NO_SYMBOL = 1,
  NULL_DESCRIPTOR,
  SMALL_DESCRIPTOR,
  VERSION_NEW,
  VERSION_ZERO,
  REFUSES,
  REFUSES_MUTELY,
  WRONG_ID,
  ILLEGAL_ID,
  LONG_ID,
  NO_COVERAGE,
  SMALL_TABLE,
  NO_RUN,
  NO_CREATE,
  CREATE_FAILS,
  CREATE_MUTE,
  CREATE_NOTHING,
  COUNT_FAILS,
  NO_DEVICES,
  MANY_DEVICES,
  INFO_FAILS,
  SANITIZER,
  UNDEFINED,
  CRASH_ON_LOAD,
  EXIT_ON_LOAD,
  CRASH_IN_QUERY,
  HANG_IN_QUERY,
  CRASH_IN_CREATE
};
static const enum fault kFault = FAULT;

#if defined(__SANITIZE_ADDRESS__)
#define OWN_SANITIZER BP_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define OWN_SANITIZER BP_SANITIZER_THREAD
#else
#define OWN_SANITIZER BP_SANITIZER_NONE
#endif

#define TEXT(literal) \
  { (literal), sizeof(literal) - 1 }

static void tell(bp_error_t* error, const char* text, uint64_t size) {
  if (!error) return;
  error->text_size = size;
  for (uint64_t i = 0; i < size && i < error->text_capacity; ++i) error->text[i] = text[i];
}

static void crash(void) {
  abort();
}

__attribute__((constructor)) static void on_load(void) {
  if (kFault == CRASH_ON_LOAD) crash();
  if (kFault == EXIT_ON_LOAD) _exit(0);
}

static char instance;

static bp_status_t create(const bp_backend_create_t* how, bp_backend_t** out_backend, bp_error_t* error) {
  (void)how;
  if (kFault == CRASH_IN_CREATE) crash();
  if (kFault == CREATE_FAILS) tell(error, "the moon is in the wrong house", 30);
  if (kFault == CREATE_FAILS || kFault == CREATE_MUTE) return BP_UNSUPPORTED;
  *out_backend = kFault == CREATE_NOTHING ? NULL : (bp_backend_t*)&instance;
  return BP_OK;
}

static void destroy(bp_backend_t* backend) {
  (void)backend;
}

static bp_status_t count(bp_backend_t* backend, uint32_t* out_count, bp_error_t* error) {
  (void)backend;
  if (kFault == COUNT_FAILS) return BP_PERMISSION_DENIED;
  if (kFault == NO_DEVICES) tell(error, "nothing is plugged in", 21);
  *out_count = kFault == NO_DEVICES ? 0 : kFault == MANY_DEVICES ? 4000000000u : 1;
  return BP_OK;
}

static bp_status_t info(bp_backend_t* backend, uint32_t index, bp_device_info_t* out_info, bp_error_t* error) {
  (void)backend, (void)index, (void)out_info, (void)error;
  return kFault == INFO_FAILS ? BP_INTERNAL : BP_OK;
}

static bp_status_t open_device(bp_backend_t* backend, uint32_t index, const bp_device_open_t* how,
                               bp_device_t** out_device, bp_error_t* error) {
  (void)backend, (void)index, (void)how, (void)out_device, (void)error;
  return BP_UNSUPPORTED;
}

static void close_device(bp_device_t* device) {
  (void)device;
}

static bp_status_t query(bp_device_t* device, const bp_coverage_query_t* asked, const bp_coverage_sink_t* sink,
                         bp_error_t* error) {
  (void)device, (void)asked, (void)sink, (void)error;
  return BP_OK;
}

static bp_status_t compile(bp_device_t* device, const bp_compile_t* what, bp_program_t** out_program,
                           bp_error_t* error) {
  (void)device, (void)what, (void)out_program, (void)error;
  return BP_UNSUPPORTED;
}

static void destroy_program(bp_program_t* program) {
  (void)program;
}

static bp_status_t program_info(const bp_program_t* program, bp_program_info_t* out_info, bp_error_t* error) {
  (void)program, (void)out_info, (void)error;
  return BP_UNSUPPORTED;
}

static bp_status_t create_instance(const bp_program_t* program, const bp_instance_create_t* how,
                                   bp_instance_t** out_instance, bp_error_t* error) {
  (void)program, (void)how, (void)out_instance, (void)error;
  return BP_UNSUPPORTED;
}

static void destroy_instance(bp_instance_t* i) {
  (void)i;
}

static bp_status_t bind(bp_instance_t* i, const bp_binding_t* binding, bp_error_t* error) {
  (void)i, (void)binding, (void)error;
  return BP_UNSUPPORTED;
}

static bp_status_t run(bp_instance_t* i, const bp_run_t* how, bp_error_t* error) {
  (void)i, (void)how, (void)error;
  return BP_UNSUPPORTED;
}

static bp_device_api_t devices = {
    .size = sizeof(bp_device_api_t), .count = count, .info = info, .open = open_device, .close = close_device};
static bp_coverage_api_t coverage = {.size = sizeof(bp_coverage_api_t), .query = query};
static bp_program_api_t programs = {
    .size = sizeof(bp_program_api_t), .compile = compile, .destroy = destroy_program, .info = program_info};
static bp_instance_api_t instances = {.size = sizeof(bp_instance_api_t),
                                      .create = create_instance,
                                      .destroy = destroy_instance,
                                      .bind = bind,
                                      .run = run};

/* Good, until a fault is put into it. */
static bp_plugin_t plugin = {
    .size = sizeof(bp_plugin_t),
    .version = BP_ABI_VERSION,
    .version_min = BP_ABI_VERSION,
    .version_max = BP_ABI_VERSION,
    .sanitizer = OWN_SANITIZER,
    .id = TEXT("bad"),
    .name = TEXT("a plugin with a fault"),
    .vendor = TEXT("Backplane tests"),
    .create = create,
    .destroy = destroy,
    .device = &devices,
    .coverage = &coverage,
    .program = &programs,
    .instance = &instances,
};

static void refuse(const char* text, uint64_t size) {
  plugin.version = 0;
  plugin.refusal = BP_INCOMPATIBLE;
  plugin.refusal_text.data = text;
  plugin.refusal_text.size = size;
}

static void rename_to(const char* id, uint64_t size) {
  plugin.id.data = id;
  plugin.id.size = size;
}

BP_EXPORT const bp_plugin_t* BP_CALL bp_plugin_query(const bp_host_offer_t* offer) {
  (void)offer;
  switch (kFault) {
    case NULL_DESCRIPTOR:
      return NULL;
    case SMALL_DESCRIPTOR:
      plugin.size = 4;
      break;
    case VERSION_NEW:
      plugin.version = plugin.version_min = plugin.version_max = BP_MAKE_VERSION(9, 0);
      break;
    case VERSION_ZERO:
      plugin.version = 0;
      break;
    case REFUSES:
      refuse("only on Sundays", 15);
      break;
    case REFUSES_MUTELY:
      refuse(NULL, 0);
      break;
    case WRONG_ID:
      rename_to("other", 5);
      break;
    case ILLEGAL_ID:
      rename_to("../Bad", 6);
      break;
    case LONG_ID:
      rename_to("a23456789_123456789_123456789_123", 33);
      break;
    case NO_COVERAGE:
      plugin.coverage = NULL;
      break;
    case SMALL_TABLE:
      devices.size = 16;
      break;
    case NO_RUN:
      instances.run = NULL;
      break;
    case NO_CREATE:
      plugin.create = NULL;
      break;
    case SANITIZER:
      plugin.sanitizer = BP_SANITIZER_MEMORY;
      break;
    case CRASH_IN_QUERY:
      crash();
      break;
    case HANG_IN_QUERY:
      for (;;) pause();
    default:
      break;
  }
#ifdef CALLS_NOBODY
  extern void backplane_nobody_has_this(void);
  backplane_nobody_has_this();
#endif
  return &plugin;
}
