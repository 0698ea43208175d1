/* SPDX-License-Identifier: Apache-2.0
 *
 * The version of the ABI. api/README.md states what is promised.
 *
 * A version is one number: major in the high 16 bits, minor in the low 16. From 1.0 on, a minor version only adds:
 * fields and slots at the end of a struct, new codes, new extensions. A major version would be another library; none is
 * planned.
 */
#ifndef BACKPLANE_VERSION_H
#define BACKPLANE_VERSION_H

#include <stddef.h>
#include <stdint.h>

/* Padding is declared for 64-bit pointers, and numbers are little-endian. Targets with another layout would need
 * another ABI. */
#if UINTPTR_MAX != UINT64_MAX
#error "backplane: the ABI is laid out for 64-bit pointers; it has no layout for this target yet"
#elif defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "backplane: the ABI is little-endian; it has no layout for this target yet"
#endif

#define BP_MAKE_VERSION(major, minor) (((uint32_t)(major) << 16) | (uint32_t)(minor))
#define BP_VERSION_MAJOR(version) ((uint32_t)(version) >> 16)
#define BP_VERSION_MINOR(version) ((uint32_t)(version)&0xffffu)

/* The version that these headers declare, and the oldest version that code built with them supports. Versions 0.N are
 * drafts: each is compatible only with itself, and N grows with every change of a layout or of a documented meaning. */
#define BP_ABI_VERSION BP_MAKE_VERSION(0, 14)
#define BP_ABI_VERSION_MIN BP_ABI_VERSION

/* The calling convention of every function that crosses the ABI. */
#if defined(_WIN32)
#define BP_CALL __cdecl
#define BP_EXPORT __declspec(dllexport)
#else
#define BP_CALL
#define BP_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
#define BP_EXTERN_C_BEGIN extern "C" {
#define BP_EXTERN_C_END }
#else
#define BP_EXTERN_C_BEGIN
#define BP_EXTERN_C_END
#endif

/* File names. A plugin `x` is libbackplane_x.so, libbackplane_x.dylib or backplane_x.dll; the loader is
 * libbackplane.so.1, libbackplane.1.dylib or backplane-1.dll. */

#endif
