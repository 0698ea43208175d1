# SPDX-License-Identifier: Apache-2.0
# backplane_precompile_targets()
#
# Gives every C++ target below the current folder the precompiled headers of its kind (library, cold or test): parsing the headers of the
# standard library and of other libraries takes a third of a build. Programs that are neither cold nor tests get none, nor do targets
# whose property BACKPLANE_PRECOMPILED is none. Called when every target is known. Sources still include what they use: the cross build
# and clang-tidy run without precompiled headers.

set(BACKPLANE_STANDARD_HEADERS <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <condition_variable> <cstdint> <cstdio>
  <cstdlib> <cstring> <deque> <filesystem> <fstream> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <random>
  <set> <span> <sstream> <stdexcept> <string> <string_view> <thread> <tuple> <type_traits> <unordered_map> <unordered_set>
  <utility> <variant> <vector>)

# Compilers accept a precompiled header only with the flags that it was made with, so there is a kind for each set of flags.
function(add_precompiled kind)
  set(source ${CMAKE_BINARY_DIR}/precompiled/${kind}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "// The headers of this kind are precompiled with this file.\n")
  add_library(backplane_precompiled_${kind} OBJECT ${source})
  target_precompile_headers(backplane_precompiled_${kind} PRIVATE ${ARGN})
endfunction()

# Sets `out` to the targets of a folder and of the folders below it.
function(collect_targets folder out)
  get_property(all DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(each ${folders})
    collect_targets(${each} below)
    list(APPEND all ${below})
  endforeach()
  set(${out} ${all} PARENT_SCOPE)
endfunction()

function(backplane_precompile_targets)
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS OR BACKPLANE_FUZZ)
    return()
  endif()
  find_package(fmt REQUIRED)
  find_package(nlohmann_json REQUIRED)
  collect_targets(${CMAKE_CURRENT_SOURCE_DIR} targets)
  add_precompiled(library ${BACKPLANE_STANDARD_HEADERS})
  add_precompiled(cold ${BACKPLANE_STANDARD_HEADERS} <fmt/format.h> <fmt/ranges.h> <nlohmann/json.hpp>)
  target_link_libraries(backplane_precompiled_cold PRIVATE backplane_cold fmt::fmt nlohmann_json::nlohmann_json)
  if(BACKPLANE_TESTS)
    add_precompiled(test ${BACKPLANE_STANDARD_HEADERS} <gmock/gmock.h> <gtest/gtest.h>)
    target_link_libraries(backplane_precompiled_test PRIVATE backplane_test_code GTest::gmock)
  endif()
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(sources ${target} SOURCES)
    get_target_property(kind ${target} BACKPLANE_PRECOMPILED)
    if(NOT type MATCHES "LIBRARY|EXECUTABLE" OR type STREQUAL "INTERFACE_LIBRARY" OR NOT "${sources}" MATCHES "\\.cpp" OR kind STREQUAL "none")
      continue()
    endif()
    if(NOT kind)
      get_target_property(libraries ${target} LINK_LIBRARIES)
      if("backplane_test_code" IN_LIST libraries)
        set(kind test)
      elseif("backplane_cold" IN_LIST libraries)
        set(kind cold)
      elseif(type MATCHES "LIBRARY")
        set(kind library)
      else()
        continue()  # a program of a few files, for which none is worthwhile
      endif()
    endif()
    target_precompile_headers(${target} REUSE_FROM backplane_precompiled_${kind})
  endforeach()
endfunction()
