// SPDX-License-Identifier: Apache-2.0
// The prelude for OpenCL C, the language of the kernels. It defines these additional names, as kernels/cuda.cl does:
//   GLOBAL, LOCAL                the address space that a pointer points to (`global` is reserved in CUDA)
//   SHARED(type, name, count)    an array in a work group's local memory
//   FLOATS(n)                    a vector of n floats
//   FLOATS_OF(n, p)              a vector read from p
//   FLOATS_TO(n, v, p)           writes vector v to p
#pragma OPENCL FP_CONTRACT OFF
#ifdef HAS_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

#define GLOBAL global
#define LOCAL local
#define SHARED(type, name, count) local type name[count]
#define FLOATS(n) CAT(float, n)
#define FLOATS_OF(n, p) CAT(vload, n)(0, p)
#define FLOATS_TO(n, v, p) CAT(vstore, n)(v, 0, p)

