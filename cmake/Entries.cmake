# SPDX-License-Identifier: Apache-2.0
# backplane_write_entries(<file> <name>…)
#
# Writes a file of lines `BACKPLANE_ENTRY(name)`, which C++ code includes after defining the macro. A build file that lists the parts of
# something (a program's commands, a harness's case families) is then the only place that names each part.
function(backplane_write_entries file)
  list(TRANSFORM ARGN REPLACE "(.+)" "BACKPLANE_ENTRY(\\1)\n" OUTPUT_VARIABLE lines)
  string(CONCAT text "// Written by CMake.\n" ${lines})
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
endfunction()

# backplane_add_verbs(<program> <verb>…)
#
# Adds commands to a program: each is a source <verb>.cpp that defines <verb>_verb. Writes verbs.inc with an entry for each.
function(backplane_add_verbs program)
  list(TRANSFORM ARGN APPEND .cpp OUTPUT_VARIABLE sources)
  target_sources(${program} PRIVATE ${sources})
  backplane_write_entries(${CMAKE_CURRENT_BINARY_DIR}/verbs/verbs.inc ${ARGN})
  target_include_directories(${program} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/verbs)
endfunction()
