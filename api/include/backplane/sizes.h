/* SPDX-License-Identifier: Apache-2.0
 *
 * The size of each struct in ABI 1.0, below which a reader refuses it. Made by
 * api/abi/layout_test.sh --renew; until 1.0 is tagged it follows the draft, then it never changes.
 */
/* clang-format off */
#ifndef BACKPLANE_SIZES_H
#define BACKPLANE_SIZES_H

#include <stdint.h>

/* X(type, size in bytes) for each. */
#define BP_EACH_SIZE_1_0(X) \
  X(bp_type_t, 24u) \
  X(bp_value_t, 48u) \
  X(bp_use_t, 8u) \
  X(bp_node_t, 104u) \
  X(bp_attribute_t, 32u) \
  X(bp_weight_t, 64u) \
  X(bp_opset_t, 24u) \
  X(bp_graph_api_t, 40u) \
  X(bp_graph_t, 248u) \
  X(bp_host_offer_t, 32u) \
  X(bp_span_t, 80u) \
  X(bp_core_t, 56u) \
  X(bp_topology_t, 40u) \
  X(bp_loop_t, 40u) \
  X(bp_task_t, 24u) \
  X(bp_on_cancel_t, 24u) \
  X(bp_host_t, 168u) \
  X(bp_env_desc_t, 128u) \
  X(bp_candidate_t, 96u) \
  X(bp_named_tensor_t, 24u) \
  X(bp_model_source_t, 96u) \
  X(bp_node_desc_t, 120u) \
  X(bp_builder_desc_t, 48u) \
  X(bp_input_desc_t, 56u) \
  X(bp_pin_t, 32u) \
  X(bp_session_desc_t, 112u) \
  X(bp_placed_node_t, 40u) \
  X(bp_node_verdict_t, 56u) \
  X(bp_session_refit_t, 32u) \
  X(bp_exec_desc_t, 16u) \
  X(bp_symbol_extent_t, 16u) \
  X(bp_loader_api_t, 680u) \
  X(bp_space_t, 72u) \
  X(bp_buffer_t, 56u) \
  X(bp_tensor_t, 88u) \
  X(bp_container_api_t, 64u) \
  X(bp_external_t, 72u) \
  X(bp_device_info_t, 216u) \
  X(bp_allocate_t, 32u) \
  X(bp_device_open_t, 64u) \
  X(bp_device_api_t, 56u) \
  X(bp_range_t, 24u) \
  X(bp_verdict_t, 64u) \
  X(bp_group_t, 56u) \
  X(bp_coverage_sink_t, 32u) \
  X(bp_coverage_query_t, 64u) \
  X(bp_compile_t, 72u) \
  X(bp_review_t, 48u) \
  X(bp_infer_t, 48u) \
  X(bp_opsets_t, 24u) \
  X(bp_infer_sink_t, 24u) \
  X(bp_coverage_api_t, 56u) \
  X(bp_inplace_t, 16u) \
  X(bp_program_info_t, 48u) \
  X(bp_shape_query_t, 24u) \
  X(bp_shape_t, 264u) \
  X(bp_program_api_t, 40u) \
  X(bp_binding_t, 24u) \
  X(bp_slot_extents_t, 16u) \
  X(bp_instance_create_t, 16u) \
  X(bp_run_t, 104u) \
  X(bp_instance_api_t, 48u) \
  X(bp_release_t, 24u) \
  X(bp_map_t, 16u) \
  X(bp_copy_t, 40u) \
  X(bp_fill_t, 32u) \
  X(bp_import_t, 16u) \
  X(bp_export_t, 16u) \
  X(bp_memory_api_t, 88u) \
  X(bp_stream_create_t, 24u) \
  X(bp_semaphore_create_t, 32u) \
  X(bp_semaphore_export_t, 24u) \
  X(bp_sync_api_t, 88u) \
  X(bp_cache_api_t, 32u) \
  X(bp_refit_weight_t, 16u) \
  X(bp_refit_t, 24u) \
  X(bp_weights_api_t, 24u) \
  X(bp_backend_create_t, 40u) \
  X(bp_plugin_t, 208u) \
  X(bp_error_t, 64u) \
  X(bp_point_t, 32u) \
  X(bp_native_t, 24u) \
  X(bp_text_t, 16u) \
  X(bp_bytes_t, 16u) \
  X(bp_option_t, 32u) \
  X(bp_chain_t, 40u) \
  X(bp_dim_t, 16u) \
  X(bp_symbol_t, 32u)

/* BP_SIZE_1_0(bp_run_t) */
#define BP_SIZE_1_0(type) ((uint32_t)BP_SIZE_1_0_##type)
#define BP_SIZE_1_0_CONSTANT(type, size) BP_SIZE_1_0_##type = (size),
enum { BP_EACH_SIZE_1_0(BP_SIZE_1_0_CONSTANT) };
#undef BP_SIZE_1_0_CONSTANT

#endif
