# SPDX-License-Identifier: Apache-2.0
# backplane_add_manual(<program> <component>)
#
# Makes and installs the manual page and the shell completion of a program, as parts of the component. The program writes them itself, from
# its options. Does nothing in a cross build or with a sanitizer.
function(backplane_add_manual program component)
  if(CMAKE_CROSSCOMPILING OR BACKPLANE_SANITIZER)
    return()
  endif()
  set(rows "share/man/man1/${program}.1.gz --man | gzip -9nc" "share/bash-completion/completions/${program} --completion bash"
    "share/zsh/vendor-completions/_${program} --completion zsh" "share/fish/vendor_completions.d/${program}.fish --completion fish")
  set(files)
  foreach(row ${rows})
    string(REGEX MATCH "^([^ ]*) (.*)$" row "${row}")
    set(file ${CMAKE_MATCH_1})
    set(options ${CMAKE_MATCH_2})
    set(output ${CMAKE_BINARY_DIR}/${file})
    get_filename_component(folder ${output} DIRECTORY)
    add_custom_command(OUTPUT ${output} COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
      COMMAND sh -c "'$<TARGET_FILE:${program}>' ${options} >'${output}'" DEPENDS ${program} VERBATIM)
    list(APPEND files ${output})
    string(REGEX REPLACE "^share/" "" place ${file})
    get_filename_component(place ${place} DIRECTORY)
    install(FILES ${output} DESTINATION ${CMAKE_INSTALL_DATADIR}/${place} COMPONENT ${component})
  endforeach()
  add_custom_target(${program}_manual ALL DEPENDS ${files})
endfunction()

if(TARGET backplane)
  backplane_add_manual(backplane backplane-tools)
endif()
if(TARGET backplane-conform)
  backplane_add_manual(backplane-conform backplane-conform)
endif()
