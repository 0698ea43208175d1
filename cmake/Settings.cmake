# SPDX-License-Identifier: Apache-2.0
# The language, warnings and build types of every target.
set(CMAKE_C_STANDARD 11)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

# Dev: as fast as it ships, with line numbers and assertions.
set(CMAKE_C_FLAGS_DEV "-O2 -g1")
set(CMAKE_CXX_FLAGS_DEV "-O2 -g1 -D_GLIBCXX_ASSERTIONS")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(BACKPLANE_PLUGIN_DIR ${CMAKE_BINARY_DIR}/lib/backplane)
set(BACKPLANE_MANIFEST_DIR ${CMAKE_BINARY_DIR}/share/backplane/backends.d)

add_compile_options(-Wall -Wextra -Wno-missing-field-initializers)

if(BACKPLANE_SANITIZER STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(BACKPLANE_SANITIZER STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT BACKPLANE_SANITIZER STREQUAL "")
  message(FATAL_ERROR "BACKPLANE_SANITIZER is '${BACKPLANE_SANITIZER}': it must be address, thread or empty")
endif()

if(BACKPLANE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "BACKPLANE_FUZZ needs Clang's libFuzzer: configure with -DCMAKE_CXX_COMPILER=clang++")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)  # what is fuzzed reports its coverage
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
