# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where. Included last, when every target is known.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Backplane)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/cpp/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.hpp)

# Libraries, and the package that names them Backplane::api, Backplane::sdk and Backplane::loader.
set(libraries backplane_api backplane_sdk)
if(TARGET backplane_loader)
  list(APPEND libraries backplane_loader)
endif()
install(TARGETS ${libraries} EXPORT BackplaneTargets)
install(EXPORT BackplaneTargets NAMESPACE Backplane:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/BackplaneConfig.cmake.in BackplaneConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(BackplaneConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/BackplaneConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/BackplaneConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/Backend.cmake ${PROJECT_SOURCE_DIR}/cmake/plugin.map DESTINATION ${package_dir})
configure_file(${PROJECT_SOURCE_DIR}/cmake/backplane.pc.in backplane.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/backplane.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# For programs that were compiled for ONNXIFI.
if(TARGET backplane_libonnxifi)
  install(TARGETS backplane_libonnxifi)
endif()

# Programs find the loader relative to themselves.
file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
foreach(program backplane backplane-conform backplane-probe)
  if(TARGET ${program})
    if(NOT program STREQUAL backplane-probe)  # which opens no library of ours
      set_target_properties(${program} PROPERTIES INSTALL_RPATH $ORIGIN/${bin_to_lib})
    endif()
    install(TARGETS ${program})
  endif()
endforeach()

# Plugins and their manifests.
get_property(backends GLOBAL PROPERTY BACKPLANE_BACKENDS)
foreach(backend ${backends})
  backplane_install_backend(${backend})
endforeach()
