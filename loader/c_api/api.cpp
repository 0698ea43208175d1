// SPDX-License-Identifier: Apache-2.0
// The functions of loader.h as one table.
#include <cstring>

#include "backplane/loader.h"
#include "base/release.h"
#include "base/status.h"

const char* bp_status_name(bp_status_t status) {
  return backplane::status_name(status).data();
}

const bp_loader_api_t* bp_get_api(uint32_t version) {
  // A draft version (0.N) must match exactly. From 1.0 on, one table serves all programs of its major version; programs
  // check its size.
  const bool draft = BP_VERSION_MAJOR(BP_ABI_VERSION) == 0;
  if (draft && version != BP_ABI_VERSION) return nullptr;
  if (version < BP_ABI_VERSION_MIN || BP_VERSION_MAJOR(version) != BP_VERSION_MAJOR(BP_ABI_VERSION)) return nullptr;
  static const bp_loader_api_t kTable = {
      sizeof(bp_loader_api_t),
      BP_ABI_VERSION,
      {backplane::kRelease, std::strlen(backplane::kRelease)},
      {backplane::kBuildId, std::strlen(backplane::kBuildId)},
      bp_env_create,
      bp_env_destroy,
      bp_env_candidate_count,
      bp_env_candidate,
      bp_env_device_count,
      bp_env_device,
      bp_env_open_device,
      bp_env_abandon_device,
      bp_env_report,
      bp_env_get_extension,
      bp_model_open,
      bp_model_destroy,
      bp_model_graph,
      bp_model_report,
      bp_builder_create,
      bp_builder_create_body,
      bp_builder_destroy,
      bp_builder_input,
      bp_builder_weight,
      bp_builder_node,
      bp_builder_output,
      bp_builder_finish,
      bp_session_create,
      bp_session_destroy,
      bp_session_node,
      bp_session_verdict,
      bp_session_graph,
      bp_session_report,
      bp_session_refit,
      bp_session_read_weight,
      bp_exec_create,
      bp_exec_destroy,
      bp_exec_bind,
      bp_exec_bind_container,
      bp_exec_unbind,
      bp_exec_extents,
      bp_exec_symbol,
      bp_exec_run,
      bp_exec_submit,
      bp_exec_output,
      bp_exec_output_container,
      bp_stream_create,
      bp_stream_destroy,
      bp_stream_wait,
      bp_stream_export,
      bp_native_semaphore_create,
      bp_native_semaphore_destroy,
      bp_native_semaphore_wait,
      bp_native_semaphore_signal,
      bp_native_semaphore_query,
      bp_native_semaphore_export,
      bp_semaphore_create,
      bp_semaphore_destroy,
      bp_semaphore_signal,
      bp_semaphore_reset,
      bp_semaphore_wait,
      bp_semaphore_query,
      bp_cancel_create,
      bp_cancel_destroy,
      bp_cancel_set,
      bp_container_create,
      bp_container_destroy,
      bp_container_api,
      bp_memory_space,
      bp_memory_allocate,
      bp_memory_import,
      bp_memory_export,
      bp_memory_release,
      bp_memory_map,
      bp_memory_unmap,
      bp_memory_fill,
      bp_memory_copy,
      bp_trace_start,
      bp_trace_stop,
      bp_status_name,
      bp_env_plugin_device,
      bp_session_plugin_program,
      bp_exec_symbols,
      bp_stream_plugin_stream,
      bp_native_semaphore_plugin_semaphore,
  };
  return &kTable;
}
