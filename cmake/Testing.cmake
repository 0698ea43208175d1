# SPDX-License-Identifier: Apache-2.0
# backplane_add_test(<name> SOURCES … [LIBRARIES …] [DEPENDS …] [TIMEOUT …] [OPTIMIZED])
#
# Adds a GoogleTest program; every TEST in it becomes a ctest test, and a skipped test is reported as skipped. TIMEOUT is in seconds, by
# default 300. The target api-unit-tests builds the programs of api/ and `ctest -L api-unit-tests` runs them; likewise for each top-level
# folder. Tests are compiled without optimization, which halves their compile time; OPTIMIZED is for tests that compute much themselves.
# In a unity build, sources that define the same names need namespaces of their own.
#
# If the environment variable BACKPLANE_WHOLE_PROGRAMS is set, ctest runs each program once, with all of its tests in one process, which
# takes a third of the time. The scripts set it where they run all tests.
if(BACKPLANE_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

function(backplane_add_test name)
  if(NOT BACKPLANE_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "OPTIMIZED" "TIMEOUT" "SOURCES;LIBRARIES;DEPENDS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} GTest::gmock GTest::gtest_main)
  if(NOT ARG_OPTIMIZED)
    target_link_libraries(${name} PRIVATE backplane_test_code)
  endif()
  target_compile_definitions(${name} PRIVATE BACKPLANE_BUILD_DIR="${CMAKE_BINARY_DIR}"
    BACKPLANE_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  string(REGEX REPLACE "/.*" "" folder ${folder})
  set(label ${folder}-unit-tests)
  if(NOT TARGET ${label})
    add_custom_target(${label})
  endif()
  add_dependencies(${label} ${name})
  gtest_discover_tests(${name} TEST_PREFIX "${name}." NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60
    PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS ${label})

  # Replaces the file that lists the program's tests by one that includes it or, with BACKPLANE_WHOLE_PROGRAMS, adds the
  # whole program as one test.
  get_property(lists DIRECTORY PROPERTY TEST_INCLUDE_FILES)
  list(POP_BACK lists tests)
  set(choice ${CMAKE_CURRENT_BINARY_DIR}/${name}_choice.cmake)
  math(EXPR whole_timeout "6 * ${ARG_TIMEOUT}")
  file(CONFIGURE OUTPUT ${choice} @ONLY CONTENT [=[
if(NOT DEFINED ENV{BACKPLANE_WHOLE_PROGRAMS})
  include("@tests@")
elseif(EXISTS "@CMAKE_BINARY_DIR@/tests/@name@")
  add_test(@name@ @CMAKE_CROSSCOMPILING_EMULATOR@ "@CMAKE_BINARY_DIR@/tests/@name@")
  set_tests_properties(@name@ PROPERTIES TIMEOUT @whole_timeout@ LABELS @label@)
endif()
]=])
  set_property(DIRECTORY PROPERTY TEST_INCLUDE_FILES ${lists} ${choice})
endfunction()

# backplane_add_fuzzer(<name> SOURCES … LIBRARIES …)
#
# Adds a libFuzzer program if BACKPLANE_FUZZ is on; CONTRIBUTING.md says how to run it.
function(backplane_add_fuzzer name)
  if(NOT BACKPLANE_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()
