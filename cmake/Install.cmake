# SPDX-License-Identifier: Apache-2.0
# The rules of `cmake --install`. Included when every target is known. Components are named after the packages that hold them,
# which Packages.cmake describes.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Backplane)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT backplane-dev
  FILES_MATCHING PATTERN *.h)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/cpp/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT backplane-dev
  FILES_MATCHING PATTERN *.hpp)

# The libraries, and the CMake package that exports them as Backplane::api, Backplane::sdk and Backplane::loader.
set(libraries backplane_api backplane_sdk)
if(TARGET backplane_loader)
  list(APPEND libraries backplane_loader)
endif()
install(TARGETS ${libraries} EXPORT BackplaneTargets
  LIBRARY COMPONENT libbackplane1 NAMELINK_COMPONENT backplane-dev
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT BackplaneTargets NAMESPACE Backplane:: DESTINATION ${package_dir} COMPONENT backplane-dev)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/BackplaneConfig.cmake.in BackplaneConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(BackplaneConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/BackplaneConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/BackplaneConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/cmake/Backend.cmake ${PROJECT_SOURCE_DIR}/cmake/plugin.map DESTINATION ${package_dir} COMPONENT backplane-dev)
# backplane.pc finds the installation's prefix by its own location.
file(RELATIVE_PATH pkgconfig_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/backplane.pc.in backplane.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/backplane.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT backplane-dev)

# Programs and libraries find the loader relative to themselves. Below /usr the dynamic linker finds it without that.
file(RELATIVE_PATH bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
foreach(program backplane backplane-conform)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH $ORIGIN/${bin_to_lib})
    if(CMAKE_INSTALL_PREFIX STREQUAL /usr)
      set_target_properties(${program} PROPERTIES INSTALL_RPATH "")
    endif()
  endif()
endforeach()
if(TARGET backplane)
  install(TARGETS backplane RUNTIME COMPONENT backplane-tools)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/loader/tools/schemas DESTINATION ${CMAKE_INSTALL_DATADIR}/backplane COMPONENT backplane-tools)
endif()
if(TARGET backplane-conform)
  install(TARGETS backplane-conform RUNTIME COMPONENT backplane-conform)
endif()
if(TARGET backplane-probe)  # the loader runs both programs; users do not run them
  install(TARGETS backplane-probe backplane-isolated RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/backplane COMPONENT libbackplane1)
endif()

# For programs that were compiled for ONNXIFI.
if(TARGET backplane_libonnxifi)
  if(CMAKE_INSTALL_PREFIX STREQUAL /usr)
    set_target_properties(backplane_libonnxifi PROPERTIES INSTALL_RPATH "")
  endif()
  install(TARGETS backplane_libonnxifi LIBRARY COMPONENT libonnxifi1)
endif()

# Plugins and their manifests.
get_property(backends GLOBAL PROPERTY BACKPLANE_BACKENDS)
foreach(backend ${backends})
  get_target_property(id ${backend} BACKPLANE_ID)
  backplane_install_backend(${backend} COMPONENT backplane-backend-${id})
endforeach()

# The Python package, for the system's Python; `pip install` makes a wheel instead.
if(TARGET _core)
  set(python_dir lib/python3/dist-packages/backplane)
  install(TARGETS _core LIBRARY DESTINATION ${python_dir} COMPONENT python3-backplane EXCLUDE_FROM_ALL)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/api/python/backplane/ DESTINATION ${python_dir} COMPONENT python3-backplane EXCLUDE_FROM_ALL
    FILES_MATCHING PATTERN *.py PATTERN py.typed PATTERN __pycache__ EXCLUDE)
  install(FILES ${CMAKE_BINARY_DIR}/python/backplane/_core.pyi DESTINATION ${python_dir} COMPONENT python3-backplane EXCLUDE_FROM_ALL)
endif()
