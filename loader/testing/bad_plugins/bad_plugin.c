/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin with one fault. It is compiled once for each value of FAULT. Without the fault, the loader would accept it.
 * raise.cpp throws the exceptions, which need C++.
 */
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
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
  CRASH_IN_CREATE,
  EATS_STACK,
  EXIT_IN_CREATE,
  HANG_IN_CREATE,
  HANG_IN_INFO,
  HANG_IN_OPEN,
  HANG_IN_COVERAGE,
  CRASH_IN_COUNT,
  CRASH_IN_INFO,
  CRASH_IN_OPEN,
  CRASH_IN_COVERAGE,
  CRASH_IN_CLOSE,
  CRASH_IN_DESTROY,
  THROW_IN_QUERY,
  THROW_IN_CREATE,
  THROW_IN_COUNT,
  THROW_IN_INFO,
  THROW_IN_OPEN,
  THROW_IN_OPSETS,
  THROW_IN_COVERAGE,
  THROW_IN_CLOSE,
  THROW_IN_DESTROY,
  LONG_NAME,
  MANY_PEERS,
  WRONG_STRIDE,
  MANY_OPSETS,
  OPEN_NOTHING,
  CHANGES_SIGNALS,
  CHANGES_ROUNDING,
  LEAKS_THREAD,
  CLOSES_DESCRIPTORS,
  WRITES_TO_OTHERS,
  FORGES_WORDS,
  FORGES_REPORT,
  LEAVES_PROCESS,
  KILLS_ITSELF,
  IS_TERMINATED,
  EATS_MEMORY,
  NO_OPSET_STRIDE,
  CRASH_AT_EXIT,
  CRASH_IN_HANDLER,
  HANG_AT_EXIT,
  ENDS_AT_EXIT,
  LOWERS_LIMIT,
  SETS_ALARM,
  CHANGES_UMASK,
  CHANGES_FOLDER,
  IGNORES_CHILDREN,
  EXECUTABLE_STACK,
  OPENS_STACK
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

static void report(bp_error_t* error, const char* text, uint64_t size) {
  if (!error) return;
  error->text_size = size;
  for (uint64_t i = 0; i < size && i < error->text_capacity; ++i) error->text[i] = text[i];
}

static void crash(void) {
  abort();
}

static void hang(void) {
  for (;;) pause();
}

void raise_exception(void);

/* Forges the probe's report, like a plugin that knows the report's format but not its key. */
static void forge(const char* words, size_t size) {
  if (write(3, words, size) < 0) _exit(1);
  _exit(0);
}

static void forge_report(void) {
  char report[34 * 9];
  memset(report, 0x5a, sizeof report);
  for (int step = 1; step <= 9; ++step) {
    report[(step - 1) * 34] = (char)step;
    report[(step - 1) * 34 + 1] = 0;
  }
  forge(report, sizeof report);
}

/* Leaves a process behind that outlives its parent and holds a lock on the file in BACKPLANE_TEST_LOCK. */
static void leave_process(void) {
  const char* name = getenv("BACKPLANE_TEST_LOCK");
  if (!name) return;
  if (fork() != 0) {
    for (int i = 0; i < 1000 && access(name, F_OK) != 0; ++i) usleep(1000);
    return;
  }
  const int file = open(name, O_RDWR | O_CREAT, 0600);
  if (file < 0 || lockf(file, F_LOCK, 0) != 0) _exit(1);
  sleep(60);
  _exit(0);
}

static int eat_stack(volatile int depth) {
  volatile char piece[4096];
  if (depth < 0) return 0;
  memset((char*)piece, depth, sizeof piece);
  return eat_stack(depth + 1) + piece[0];
}

/* Reserves address space without touching it, so that the result does not depend on the machine's memory. */
static void eat_memory(void) {
  while (mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
    continue;
  abort();
}

static void* sleep_long(void* unused) {
  (void)unused;
  hang();
  return NULL;
}

static void misbehave(void) {
  sigset_t all;
  pthread_t thread;
  struct rlimit limit;
  switch (kFault) {
    case CHANGES_SIGNALS:
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, NULL);
      break;
    case CHANGES_ROUNDING:
      fesetround(FE_UPWARD);
      break;
    case LEAKS_THREAD:
      pthread_create(&thread, NULL, sleep_long, NULL);
      break;
    case CLOSES_DESCRIPTORS:
      for (int i = 0; i < 64; ++i) close(i);
      break;
    case WRITES_TO_OTHERS:
      for (int i = 3; i < 64; ++i)
        if (write(i, "hello", 5) < 0) continue;
      break;
    case KILLS_ITSELF:
      kill(getpid(), SIGKILL);
      break;
    case IS_TERMINATED: /* as if its service were being stopped */
      kill(getpid(), SIGTERM);
      break;
    case EATS_STACK:
      eat_stack(0);
      break;
    case EATS_MEMORY:
      eat_memory();
      break;
    case EXIT_IN_CREATE:
      exit(0);
    case LOWERS_LIMIT:
      getrlimit(RLIMIT_AS, &limit);
      limit.rlim_cur = 1 << 20;
      setrlimit(RLIMIT_AS, &limit);
      break;
    case SETS_ALARM:
      alarm(1);
      break;
    case CHANGES_UMASK:
      umask(0777);
      break;
    case CHANGES_FOLDER:
      if (chdir("/proc") != 0) abort();
      break;
    case IGNORES_CHILDREN:
      signal(SIGCHLD, SIG_IGN);
      break;
    case OPENS_STACK: /* as the dynamic linker does for a needed library that has no mark */
      if (mprotect((void*)((uintptr_t)&all & -(uintptr_t)sysconf(_SC_PAGESIZE)), 1, 7) != 0) abort();
      break;
    default:
      break;
  }
}

__attribute__((constructor)) static void on_load(void) {
  if (kFault == CRASH_ON_LOAD) crash();
  if (kFault == EXIT_ON_LOAD) _exit(0);
  if (kFault == FORGES_WORDS) forge("loaded\nsurvived\n", 16);
  if (kFault == FORGES_REPORT) forge_report();
  if (kFault == CHANGES_ROUNDING) fesetround(FE_UPWARD);
  if (kFault == LEAVES_PROCESS) leave_process();
  if (kFault == CRASH_IN_HANDLER) atexit(crash);
}

__attribute__((destructor)) static void at_exit(void) {
  if (kFault == CRASH_AT_EXIT) crash();
  if (kFault == HANG_AT_EXIT) hang();
  if (kFault == ENDS_AT_EXIT) _exit(0);
}

static char instance;

static bp_status_t create(const bp_backend_create_t* how, bp_backend_t** out_backend, bp_error_t* error) {
  (void)how;
  if (kFault == CRASH_IN_CREATE) crash();
  if (kFault == HANG_IN_CREATE) hang();
  if (kFault == THROW_IN_CREATE) raise_exception();
  misbehave();
  if (kFault == CREATE_FAILS) report(error, "the device refuses to start", 27);
  if (kFault == CREATE_FAILS || kFault == CREATE_MUTE) return BP_UNSUPPORTED;
  *out_backend = kFault == CREATE_NOTHING ? NULL : (bp_backend_t*)&instance;
  return BP_OK;
}

static void destroy(bp_backend_t* backend) {
  (void)backend;
  if (kFault == CRASH_IN_DESTROY) crash();
  if (kFault == THROW_IN_DESTROY) raise_exception();
}

static bp_status_t count(bp_backend_t* backend, uint32_t* out_count, bp_error_t* error) {
  (void)backend;
  if (kFault == COUNT_FAILS) return BP_PERMISSION_DENIED;
  if (kFault == CRASH_IN_COUNT) crash();
  if (kFault == THROW_IN_COUNT) raise_exception();
  if (kFault == NO_DEVICES) report(error, "nothing is plugged in", 21);
  *out_count = kFault == NO_DEVICES ? 0 : kFault == MANY_DEVICES ? 4000000000u : 1;
  return BP_OK;
}

static bp_status_t info(bp_backend_t* backend, uint32_t index, bp_device_info_t* out_info, bp_error_t* error) {
  (void)backend, (void)index, (void)error;
  if (kFault == CRASH_IN_INFO) crash();
  if (kFault == HANG_IN_INFO) hang();
  if (kFault == THROW_IN_INFO) raise_exception();
  static const bp_option_t property = {TEXT("a"), TEXT("b")};
  out_info->kind = BP_DEVICE_OTHER;
  out_info->name.data = "a device";
  out_info->name.size = kFault == LONG_NAME ? UINT64_MAX / 2 : 8;
  if (kFault == MANY_PEERS) out_info->peers = &out_info->index;
  if (kFault == MANY_PEERS) out_info->peer_count = 4000000000u;
  if (kFault == WRONG_STRIDE) out_info->properties = &property;
  if (kFault == WRONG_STRIDE) out_info->property_count = 1000;
  if (kFault == WRONG_STRIDE) out_info->property_stride = 4000000000u;
  return kFault == INFO_FAILS ? BP_INTERNAL : BP_OK;
}

static bp_status_t open_device(bp_backend_t* backend, uint32_t index, const bp_device_open_t* how,
                               bp_device_t** out_device, bp_error_t* error) {
  (void)backend, (void)index, (void)how, (void)error;
  if (kFault == CRASH_IN_OPEN) crash();
  if (kFault == HANG_IN_OPEN) hang();
  if (kFault == THROW_IN_OPEN) raise_exception();
  *out_device = kFault == OPEN_NOTHING ? NULL : (bp_device_t*)&instance;
  return BP_OK;
}

static void close_device(bp_device_t* device) {
  (void)device;
  if (kFault == CRASH_IN_CLOSE) crash();
  if (kFault == THROW_IN_CLOSE) raise_exception();
}

static bp_status_t query(bp_device_t* device, const bp_coverage_query_t* asked, const bp_coverage_sink_t* sink,
                         bp_error_t* error) {
  (void)device, (void)asked, (void)sink, (void)error;
  if (kFault == CRASH_IN_COVERAGE) crash();
  if (kFault == HANG_IN_COVERAGE) hang();
  if (kFault == THROW_IN_COVERAGE) raise_exception();
  return BP_OK;
}

static bp_status_t opsets(bp_device_t* device, bp_opsets_t* out_opsets, bp_error_t* error) {
  (void)device, (void)error;
  static const bp_opset_t known = {TEXT(""), 1, 0};
  if (kFault == THROW_IN_OPSETS) raise_exception();
  out_opsets->opsets = &known;
  out_opsets->opset_count = kFault == MANY_OPSETS ? 4000000000u : 1;
  out_opsets->opset_stride = kFault == NO_OPSET_STRIDE ? 0 : sizeof known;
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
static bp_coverage_api_t coverage = {.size = sizeof(bp_coverage_api_t), .query = query, .opsets = opsets};
static bp_program_api_t programs = {
    .size = sizeof(bp_program_api_t), .compile = compile, .destroy = destroy_program, .info = program_info};
static bp_instance_api_t instances = {.size = sizeof(bp_instance_api_t),
                                      .create = create_instance,
                                      .destroy = destroy_instance,
                                      .bind = bind,
                                      .run = run};

/* A valid description; bp_plugin_query changes it as FAULT requires. */
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
    case THROW_IN_QUERY:
      raise_exception();
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
