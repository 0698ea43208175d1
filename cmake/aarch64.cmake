# SPDX-License-Identifier: Apache-2.0
# Cross-compiles to 64-bit Arm with Debian's g++-aarch64-linux-gnu, and runs what it built in QEMU. BACKPLANE_SYSROOT is a folder with
# the libraries of that architecture: scripts/gates/aarch64.sh makes it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(BACKPLANE_SYSROOT $ENV{BACKPLANE_SYSROOT})
if(NOT IS_DIRECTORY "${BACKPLANE_SYSROOT}/usr/include")
  message(FATAL_ERROR "BACKPLANE_SYSROOT is '${BACKPLANE_SYSROOT}': scripts/gates/aarch64.sh makes one and sets it")
endif()

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT ${BACKPLANE_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${BACKPLANE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${BACKPLANE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${BACKPLANE_SYSROOT}/usr/share/pkgconfig)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${BACKPLANE_SYSROOT})
