# SPDX-License-Identifier: Apache-2.0
# backplane_add_backend(<id> SOURCES … [LIBRARIES …] [NAME "for people"] [DOMAIN com.acme] [VENDOR "Acme"] [DEVICE_KINDS cpu …]
#                       [ISOLATION process])
# backplane_install_backend(backplane_<id> [COMPONENT <name>])
#
# backplane_add_backend() adds the target backplane_<id>: a plugin libbackplane_<id>.so that exports only bp_plugin_query, and its manifest,
# whose id is <DOMAIN>.<id> (without DOMAIN: BACKPLANE_BACKEND_DOMAIN or, if that is not set, "local"). This file is installed: it works
# the same outside this tree after find_package(Backplane).
set(BACKPLANE_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/plugin.map)

function(backplane_add_backend id)
  cmake_parse_arguments(ARG "" "NAME;DOMAIN;VENDOR;ISOLATION" "SOURCES;LIBRARIES;DEVICE_KINDS" ${ARGN})
  set(target backplane_${id})
  add_library(${target} MODULE ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE Backplane::sdk ${ARG_LIBRARIES})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON LINK_DEPENDS ${BACKPLANE_PLUGIN_MAP})
  target_link_options(${target} PRIVATE -Wl,--version-script=${BACKPLANE_PLUGIN_MAP} -Wl,--exclude-libs,ALL
    -Wl,-z,relro -Wl,-z,now)  # the loader binds all symbols at once anyway
  if(NOT BACKPLANE_SANITIZER AND NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")  # Clang links its sanitizer runtime only into programs
    target_link_options(${target} PRIVATE -Wl,-z,defs)  # undefined symbols fail here, not when the plugin is loaded
  endif()
  if(NOT BACKPLANE_PLUGIN_DIR)
    set(BACKPLANE_PLUGIN_DIR ${CMAKE_CURRENT_BINARY_DIR})
    set(BACKPLANE_MANIFEST_DIR ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${BACKPLANE_PLUGIN_DIR})
  if(NOT ARG_DOMAIN)
    set(ARG_DOMAIN local)
    if(BACKPLANE_BACKEND_DOMAIN)
      set(ARG_DOMAIN ${BACKPLANE_BACKEND_DOMAIN})
    endif()
  endif()
  # The keys of the manifest (docs/reference/manifest.md), except `library`.
  set(keys "\"format_version\": \"1.0\"" "\"id\": \"${ARG_DOMAIN}.${id}\"" "\"name\": \"${ARG_NAME}\"")
  if(ARG_VENDOR)
    list(APPEND keys "\"vendor\": \"${ARG_VENDOR}\"")
  endif()
  if(PROJECT_VERSION)
    list(APPEND keys "\"version\": \"${PROJECT_VERSION}\"")
  endif()
  if(CMAKE_SYSTEM_PROCESSOR)
    list(APPEND keys "\"arch\": \"${CMAKE_SYSTEM_PROCESSOR}\"")
  endif()
  list(APPEND keys "\"interface\": {\"min\": \"${BACKPLANE_ABI}\", \"max\": \"${BACKPLANE_ABI}\"}")
  if(ARG_DEVICE_KINDS)
    list(JOIN ARG_DEVICE_KINDS "\", \"" kinds)
    list(APPEND keys "\"device_kinds\": [\"${kinds}\"]")
  endif()
  if(ARG_ISOLATION)
    list(APPEND keys "\"isolation\": \"${ARG_ISOLATION}\"")
  endif()
  list(JOIN keys ",\n  " keys)
  set_target_properties(${target} PROPERTIES BACKPLANE_ID ${id} BACKPLANE_KEYS "${keys}")
  backplane_write_manifest(${target} ${BACKPLANE_MANIFEST_DIR}/${id}.json ${BACKPLANE_MANIFEST_DIR} ${BACKPLANE_PLUGIN_DIR})
  set_property(GLOBAL APPEND PROPERTY BACKPLANE_BACKENDS ${target})
endfunction()

# Writes to `file` the manifest of a plugin in `library_dir`. Its key `library` is the path relative to `manifest_dir`, where the manifest
# will be.
function(backplane_write_manifest target file manifest_dir library_dir)
  get_target_property(id ${target} BACKPLANE_ID)
  get_target_property(keys ${target} BACKPLANE_KEYS)
  file(RELATIVE_PATH relative ${manifest_dir} ${library_dir}/libbackplane_${id}.so)
  file(CONFIGURE OUTPUT ${file} CONTENT "{\n  ${keys},\n  \"library\": \"${relative}\"\n}\n")
endfunction()

# Installs the plugin to <libdir>/backplane, and its manifest to <datadir>/backplane/backends.d.
function(backplane_install_backend target)
  include(GNUInstallDirs)
  cmake_parse_arguments(ARG "" "COMPONENT" "" ${ARGN})
  set(component)
  if(ARG_COMPONENT)
    set(component COMPONENT ${ARG_COMPONENT})
  endif()
  get_target_property(id ${target} BACKPLANE_ID)
  set(manifest ${CMAKE_CURRENT_BINARY_DIR}/installed_manifests/${id}.json)
  backplane_write_manifest(${target} ${manifest} ${CMAKE_INSTALL_FULL_DATADIR}/backplane/backends.d
    ${CMAKE_INSTALL_FULL_LIBDIR}/backplane)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/backplane ${component})
  install(FILES ${manifest} DESTINATION ${CMAKE_INSTALL_DATADIR}/backplane/backends.d ${component})
endfunction()
