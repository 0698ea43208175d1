# SPDX-License-Identifier: Apache-2.0
# backplane_add_backend(<id> SOURCES … [LIBRARIES …] [NAME "for people"])
#
# A plugin: libbackplane_<id>.so that exports bp_plugin_query alone, and its manifest. Target backplane_<id>. This file is
# installed: it works the same outside this tree after find_package(Backplane).
set(BACKPLANE_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/plugin.map)

function(backplane_add_backend id)
  cmake_parse_arguments(ARG "" "NAME" "SOURCES;LIBRARIES" ${ARGN})
  set(target backplane_${id})
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE Backplane::sdk ${ARG_LIBRARIES})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON LINK_DEPENDS ${BACKPLANE_PLUGIN_MAP})
  target_link_options(${target} PRIVATE -Wl,--version-script=${BACKPLANE_PLUGIN_MAP} -Wl,--exclude-libs,ALL)
  if(NOT BACKPLANE_PLUGIN_DIR)
    set(BACKPLANE_PLUGIN_DIR ${CMAKE_CURRENT_BINARY_DIR})
    set(BACKPLANE_MANIFEST_DIR ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${BACKPLANE_PLUGIN_DIR})
  # `library` is relative to the manifest's own folder.
  file(RELATIVE_PATH relative ${BACKPLANE_MANIFEST_DIR} ${BACKPLANE_PLUGIN_DIR}/libbackplane_${id}.so)
  file(CONFIGURE OUTPUT ${BACKPLANE_MANIFEST_DIR}/${id}.json CONTENT
    "{\n  \"manifest\": 1,\n  \"id\": \"${id}\",\n  \"name\": \"${ARG_NAME}\",\n  \"library\": \"${relative}\",\n  \"abi\": {\"min\": \"1.0\", \"max\": \"1.0\"}\n}\n")
  set_property(GLOBAL APPEND PROPERTY BACKPLANE_BACKENDS ${target})
endfunction()
