// Every instruction that CUDA C++ leaves to chance or does not have, one function each, and its emulation beside it.
#pragma once

// 16 bytes in one instruction; the address is a multiple of 16.
#ifdef CG_EMULATED
#define ld16(from) cg::load16(from)
#define st16(to, value) cg::store16(to, value)
#else
__device__ inline uint4 ld16(const void* from) { return *(const uint4*)from; }
__device__ inline void st16(void* to, uint4 value) { *(uint4*)to = value; }
#endif

__device__ inline float infinity() { return __int_as_float(0x7f800000); }
