# SPDX-License-Identifier: Apache-2.0
# Packages for Debian, one for each component of Install.cmake: scripts/package.sh makes them, from a build configured for /usr.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME backplane)
set(CPACK_PACKAGE_VENDOR "The Backplane authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package sets its own, see DOES below
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${BACKPLANE_PACKAGE_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})  # where SHLIBDEPS finds the loader's library
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_COMPONENTS_ALL)

# Debian's policy requires a copyright file and a changelog in each package. `gzip -n` stores no time, so that builds are reproducible.
set(changelog ${CMAKE_BINARY_DIR}/changelog.gz)
add_custom_command(OUTPUT ${changelog} COMMAND sh -c "gzip -9nc '${PROJECT_SOURCE_DIR}/CHANGELOG.md' >'${changelog}'"
  DEPENDS ${PROJECT_SOURCE_DIR}/CHANGELOG.md VERBATIM)
add_custom_target(backplane_changelog ALL DEPENDS ${changelog})

# backplane_add_package(<component> SECTION <section> DOES <one line> TEXT <line>…
#   [NEEDS <package>…] [RECOMMENDS <package>…] [SCRIPTS <file>…])
#
# Makes a package of a component, with the component's name. NEEDS names packages of Backplane, which are required in the same version,
# and other packages. The packages of shared libraries are found by SHLIBDEPS.
function(backplane_add_package component)
  cmake_parse_arguments(ARG "" "SECTION;DOES" "TEXT;NEEDS;RECOMMENDS;SCRIPTS" ${ARGN})
  string(TOUPPER ${component} key)
  set(needs)
  foreach(package ${ARG_NEEDS})
    if(package MATCHES "backplane")
      list(APPEND needs "${package} (= ${PROJECT_VERSION})")
    else()
      list(APPEND needs "${package}")
    endif()
  endforeach()
  list(JOIN needs ", " needs)
  list(JOIN ARG_RECOMMENDS ", " recommends)
  list(JOIN ARG_TEXT "\n" text)
  set(doc ${CMAKE_INSTALL_DATADIR}/doc/${component})
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/copyright DESTINATION ${doc} COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${CMAKE_BINARY_DIR}/changelog.gz DESTINATION ${doc} COMPONENT ${component} EXCLUDE_FROM_ALL)
  set(values
    PACKAGE_NAME ${component}
    PACKAGE_SECTION ${ARG_SECTION}
    PACKAGE_DEPENDS "${needs}"
    PACKAGE_RECOMMENDS "${recommends}")
  while(values)
    list(POP_FRONT values name value)
    set(CPACK_DEBIAN_${key}_${name} "${value}" PARENT_SCOPE)
  endwhile()
  set(CPACK_DEBIAN_${key}_PACKAGE_CONTROL_EXTRA "${ARG_SCRIPTS}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${ARG_DOES}\n${text}" PARENT_SCOPE)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
endfunction()

backplane_add_package(libbackplane1 SECTION libs DOES "loader of hardware backends for ONNX models"
  TEXT "libbackplane finds hardware backends at run time, places an ONNX model on their" "devices and runs it. It does nothing without a backend."
  RECOMMENDS backplane-backend-cpu)
backplane_add_package(backplane-dev SECTION libdevel DOES "headers of Backplane, for frameworks and hardware vendors"
  TEXT "The C ABI, the C++ client and the SDK of backends, with packages for CMake and" "pkg-config."
  NEEDS libbackplane1 RECOMMENDS backplane-tools backplane-conform)
if(TARGET backplane_cpu)
  # The packages of the libraries that the backend opens for images: SHLIBDEPS sees only those that it is linked with.
  get_target_property(opened backplane_cpu BACKPLANE_OPENED)
  set(image_packages)
  foreach(library IN LISTS opened)
    execute_process(COMMAND dpkg-query -S ${library} OUTPUT_VARIABLE owner ERROR_QUIET)
    if(owner MATCHES "^([^:]+):")
      list(APPEND image_packages ${CMAKE_MATCH_1})
    endif()
  endforeach()
  backplane_add_package(backplane-backend-cpu SECTION libs DOES "Backplane's backend for processors"
    TEXT "Runs every operator of ONNX on x86-64, with oneDNN and kernels of its own." NEEDS libbackplane1 ${image_packages})
endif()
if(TARGET backplane_opencl)
  backplane_add_package(backplane-backend-opencl SECTION libs DOES "Backplane's backend for OpenCL devices"
    TEXT "Runs ONNX models on every device with OpenCL 1.2 or newer." NEEDS libbackplane1
    RECOMMENDS "pocl-opencl-icd | opencl-icd")
endif()
if(TARGET backplane_cuda)
  backplane_add_package(backplane-backend-cuda SECTION libs DOES "Backplane's backend for NVIDIA GPUs"
    TEXT "Runs ONNX models on NVIDIA GPUs. It opens the driver and NVRTC, which come from" "NVIDIA, when they are there."
    NEEDS libbackplane1)
endif()
if(TARGET backplane_null)
  backplane_add_package(backplane-backend-null SECTION libs DOES "Backplane's smallest backend, for trying things out"
    TEXT "The skeleton that hardware vendors start from. It runs a few operators, slowly:" "install it to try Backplane's tools, not to run models."
    NEEDS libbackplane1)
endif()
backplane_add_package(backplane-tools SECTION utils DOES "command-line program of Backplane"
  TEXT "Lists devices, shows where the nodes of an ONNX model are placed and why, runs" "and measures models, and writes a vendor's first backend project."
  NEEDS libbackplane1 RECOMMENDS backplane-backend-cpu)
backplane_add_package(backplane-conform SECTION utils DOES "conformance tests for Backplane's backends"
  TEXT "Tests a backend through the ABI alone, and makes and verifies certificates." NEEDS libbackplane1)
if(TARGET backplane_onnxifi)
  backplane_add_package(backplane-backend-onnxifi SECTION libs DOES "Backplane's backend for ONNXIFI libraries"
    TEXT "Runs ONNX models on libraries that hardware vendors wrote for ONNXIFI, in a" "process of their own." NEEDS libbackplane1)
endif()
if(TARGET backplane_libonnxifi)
  backplane_add_package(libonnxifi1 SECTION libs DOES "ONNXIFI 1.0 over Backplane"
    TEXT "libonnxifi.so for programs that were written for ONNXIFI: they run on the" "devices that Backplane finds." NEEDS libbackplane1)
endif()
if(TARGET _core)
  get_target_property(version _core BACKPLANE_PYTHON_VERSION)  # N of Python 3.N, the only version with which the module works
  math(EXPR next "${version} + 1")
  backplane_add_package(python3-backplane SECTION python DOES "Backplane for Python 3"
    TEXT "Runs ONNX models from Python, with NumPy arrays and DLPack." NEEDS libbackplane1 "python3 (>= 3.${version})" "python3 (<< 3.${next})" python3-numpy
    RECOMMENDS backplane-backend-cpu backplane-tools SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/python/prerm ${PROJECT_SOURCE_DIR}/cmake/python/postinst)
endif()
include(CPack)
