# SPDX-License-Identifier: Apache-2.0
# Sets BACKPLANE_ABI: the version that the headers declare, such as "0.1". Manifests contain it, and so does the symbol version of the
# loader's functions.
set(header ${PROJECT_SOURCE_DIR}/api/include/backplane/version.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
file(STRINGS ${header} line REGEX "^#define BP_ABI_VERSION BP_MAKE_VERSION")
if(NOT line MATCHES "\\(([0-9]+), ([0-9]+)\\)$")
  message(FATAL_ERROR "${header} does not define BP_ABI_VERSION as BP_MAKE_VERSION(MAJOR, MINOR)")
endif()
set(BACKPLANE_ABI ${CMAKE_MATCH_1}.${CMAKE_MATCH_2})
