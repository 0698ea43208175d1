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

# Build type Dev: optimized like a release, with line numbers and assertions of libstdc++. Builds with a sanitizer, or with the longer
# structs of BACKPLANE_GROWN, are optimized less, which takes two thirds of the time. Most debug information is in .dwo files next to the
# objects: it would be half of a plugin's file, which the loader hashes before it opens it.
set(optimization -O2)
if(BACKPLANE_SANITIZER OR BACKPLANE_GROWN)
  set(optimization -O1)
endif()
set(CMAKE_C_FLAGS_DEV "${optimization} -g1 -gsplit-dwarf")
set(CMAKE_CXX_FLAGS_DEV "${optimization} -g1 -gsplit-dwarf -D_GLIBCXX_ASSERTIONS")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(BACKPLANE_PLUGIN_DIR ${CMAKE_BINARY_DIR}/lib/backplane)
set(BACKPLANE_MANIFEST_DIR ${CMAKE_BINARY_DIR}/share/backplane/backends.d)
set(BACKPLANE_BACKEND_DOMAIN org.backplane)

# Binaries use full RELRO; the loader binds a plugin's symbols at once anyway. Release builds check buffer sizes at run
# time and protect the stack, and on x86-64 returns and indirect jumps.
if(NOT BACKPLANE_SANITIZER)
  add_link_options(-Wl,-z,relro -Wl,-z,now)
endif()
if(CMAKE_BUILD_TYPE STREQUAL Release AND NOT BACKPLANE_SANITIZER)
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    add_compile_options(-fcf-protection)
  endif()
endif()

add_compile_options(-Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # Clang would warn about, in this order: GCC's pragmas ivdep and unroll; arguments of vector types wider than the
  # baseline's; loops that -O1 does not vectorize although a pragma requests it.
  add_compile_options(-Wno-unknown-pragmas -Wno-psabi -Wno-pass-failed)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC 12 reports these wrongly in std::string's operator+ (its bug 105651). It hides warnings in system headers, but not in
  # precompiled ones. The builds with sanitizers find real errors of these kinds.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds> $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overflow> $<$<COMPILE_LANGUAGE:CXX>:-Wno-stringop-overread>)
endif()

# In a unity build, sources of a target are compiled several at a time, as one file that includes them. There GCC treats a
# type in an unnamed namespace as if a header declared it.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

# Warnings are errors in the build type Dev, with the compilers that the gates use; other compilers may have more warnings.
string(REGEX MATCH "^[0-9]+" major ${CMAKE_CXX_COMPILER_VERSION})
if(CMAKE_BUILD_TYPE STREQUAL Dev AND "${CMAKE_CXX_COMPILER_ID} ${major}" MATCHES "^(GNU 12|Clang 14)$")
  set(CMAKE_COMPILE_WARNING_AS_ERROR ON)
endif()

# Linked by targets whose speed does not matter, such as commands, reports and discovery: it lowers the optimization, which
# halves their compile time.
add_library(backplane_cold INTERFACE)
target_compile_options(backplane_cold INTERFACE $<$<CONFIG:Dev>:-O1> -fPIC)
# Linked by tests, which spend most of their time in the code under test: they are not optimized.
add_library(backplane_test_code INTERFACE)
target_compile_options(backplane_test_code INTERFACE $<$<CONFIG:Dev>:-O0> -fPIC)

if(BACKPLANE_SANITIZER STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(BACKPLANE_SANITIZER STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT BACKPLANE_SANITIZER STREQUAL "")
  message(FATAL_ERROR "BACKPLANE_SANITIZER is '${BACKPLANE_SANITIZER}': it must be address, thread or empty")
endif()

if(BACKPLANE_SANITIZER AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  string(TOUPPER ${BACKPLANE_SANITIZER} upper)
  add_compile_definitions(__SANITIZE_${upper}__)  # which GCC defines by itself
  if(BACKPLANE_SANITIZER STREQUAL "address")
    add_link_options(-fsanitize-link-c++-runtime)  # because C programs open C++ libraries
    link_libraries($<$<LINK_LANGUAGE:C>:stdc++>)
  endif()
endif()

if(BACKPLANE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "BACKPLANE_FUZZ needs Clang's libFuzzer: configure with -DCMAKE_CXX_COMPILER=clang++")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)  # instruments the fuzzed code, so that it reports its coverage
endif()

if(BACKPLANE_COVERAGE)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "BACKPLANE_COVERAGE needs Clang: configure with cmake --preset asan")
  endif()
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate)
endif()

# Looked for once in a build folder, so that installing it later does not compile everything again.
if(NOT DEFINED CCACHE)
  find_program(CCACHE ccache)
endif()
if(CCACHE)
  # ccache handles precompiled headers only with this setting, and g++ only with -fpch-preprocess, which keeps their use in the
  # preprocessed source. Clang embeds timestamps of the headers unless told not to, so a fresh checkout would get no cache hits.
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options(-fpch-preprocess)
  elseif(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
