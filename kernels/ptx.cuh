// Every instruction that CUDA C++ leaves to chance or does not have, one function each. The emulated device's are in
// cudagrad/backend/emulator/special.h.
#pragma once

#ifdef CG_EMULATED
#include "special.h"
#else

#define CG_ARCH __CUDA_ARCH__

// 16 or 8 bytes in one instruction; the address is a multiple of as many. To global memory st16 is no plain store: of one
// that stands beside stores of single elements in another branch the compiler makes such as well. Which memory it is the
// compiler knows: of the two branches one is left.
__device__ inline uint4 ld16(const void* from) { return *(const uint4*)from; }
__device__ inline uint2 ld8(const void* from) { return *(const uint2*)from; }
__device__ inline void st16(void* to, uint4 v) {
  if (__isShared(to))
    *(uint4*)to = v;
  else
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(v.x), "r"(v.y),
                 "r"(v.z), "r"(v.w)
                 : "memory");
}
__device__ inline void st8(void* to, uint2 value) { *(uint2*)to = value; }

// e^x by the special function unit: within 2 + |x| / 100 units in the last place; 0 where it is below 2^-126, which spares
// the half of __expf's instructions that are for such.
__device__ inline float fast_exp(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
  return y;
}

// The larger of two; a nan wins, as in NumPy.
__device__ inline double larger(double a, double b) { return a > b || a != a ? a : b; }
__device__ inline float larger(float a, float b) {
#if CG_ARCH >= 800
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
#else
  return a > b || a != a ? a : b;
#endif
}

// ---- copies from global to shared memory that run on while the thread does (PTX ISA, cp.async)

__device__ inline unsigned shared_address(const void* at) { return (unsigned)__cvta_generic_to_shared(at); }

// Starts a copy of 16 bytes, past L1; of zeros where `valid` is false, when `from` is not read. Both addresses are
// multiples of 16, `from` where it is not read too. On sm_75 it is a load and a store that are done on return.
__device__ inline void cp_async16(void* to, const void* from, bool valid = true) {
#if CG_ARCH >= 800
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(valid ? 16 : 0)
               : "memory");
#else
  *(uint4*)to = valid ? ld16(from) : uint4{};
#endif
}

// As cp_async16, of 4 bytes: for rows that lie on no multiple of 16.
__device__ inline void cp_async4(void* to, const void* from, bool valid = true) {
#if CG_ARCH >= 800
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from), "r"(valid ? 4 : 0)
               : "memory");
#else
  *(unsigned*)to = valid ? *(const unsigned*)from : 0;
#endif
}

// Makes a group of this thread's copies since its last group; it may be empty.
__device__ inline void cp_async_commit() {
#if CG_ARCH >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until all of this thread's groups but the latest `groups` have landed. Only a barrier after it makes them
// visible to other threads. A thread waits for all its copies before it returns.
template <int groups>
__device__ inline void cp_async_wait() {
#if CG_ARCH >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
#endif
}

// ---- 8 x 8 matrices of 16-bit numbers from shared memory (PTX ISA, ldmatrix); all lanes of the warp call
//
// Lane 8 m + i gives the address of row i of matrix m, 16 bytes on a multiple of 16. A lane's register m gets elements
// 2 (lane % 4) and the next of row lane / 4 of matrix m; with _trans of its transpose. The lanes from 16 on give x2 no
// rows, but sm_75 demands an address in shared memory of them too.

#define CG_LDMATRIX(name, count, form, registers, ...)                                                 \
  __device__ inline void name(unsigned (&to)[count], const void* row) {                                \
    asm volatile("ldmatrix.sync.aligned.m8n8." form ".shared.b16 " registers : __VA_ARGS__             \
                 : "r"(shared_address(row))                                                            \
                 : "memory");                                                                          \
  }
CG_LDMATRIX(ldmatrix_x2, 2, "x2", "{%0, %1}, [%2];", "=r"(to[0]), "=r"(to[1]))
CG_LDMATRIX(ldmatrix_x2_trans, 2, "x2.trans", "{%0, %1}, [%2];", "=r"(to[0]), "=r"(to[1]))
CG_LDMATRIX(ldmatrix_x4, 4, "x4", "{%0, %1, %2, %3}, [%4];", "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]))
CG_LDMATRIX(ldmatrix_x4_trans, 4, "x4.trans", "{%0, %1, %2, %3}, [%4];", "=r"(to[0]), "=r"(to[1]), "=r"(to[2]),
            "=r"(to[3]))
#undef CG_LDMATRIX

// ---- matrix products on tensor cores (PTX ISA, mma); all lanes of the warp call

// Whether there is one for numbers of type S on this architecture: for half_t from sm_75 on, for bfloat16 from sm_80.
template <class S>
constexpr bool has_mma = false;
template <>
constexpr bool has_mma<__half> = true;
template <>
constexpr bool has_mma<__nv_bfloat16> = CG_ARCH >= 800;

// d[16][8] += a[16][16] b[16][8], where with g = lane / 4 and t = 2 (lane % 4) a lane holds
//   of a   register r: row g + 8 (r % 2), columns t + 8 (r / 2) and the next; one ldmatrix_x4 of a row-major a
//   of b   register r: rows t + 8 r and the next, column g; ldmatrix_x2_trans of a row-major b, ldmatrix_x2 of b^T
//   of d   d[0], d[1]: row g, columns t and t + 1; d[2], d[3]: row g + 8
// of which the first of two columns (rows of b) is in the register's low half.
template <class S>
__device__ inline void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]);

#define CG_MMA(shape, types, operands, ...)                                                    \
  asm volatile("mma.sync.aligned." shape ".row.col.f32." types ".f32 {%0, %1, %2, %3}, " operands \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                \
               : __VA_ARGS__)
#define CG_MMA_K16(types)                                                             \
  CG_MMA("m16n8k16", types, "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};", "r"(a[0]), "r"(a[1]), "r"(a[2]), \
         "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <>
__device__ inline void mma_m16n8k16<__half>(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if CG_ARCH >= 800
  CG_MMA_K16("f16.f16");
#else
  CG_MMA("m16n8k8", "f16.f16", "{%4, %5}, {%6}, {%0, %1, %2, %3};", "r"(a[0]), "r"(a[1]), "r"(b[0]));
  CG_MMA("m16n8k8", "f16.f16", "{%4, %5}, {%6}, {%0, %1, %2, %3};", "r"(a[2]), "r"(a[3]), "r"(b[1]));
#endif
}

template <>
__device__ inline void mma_m16n8k16<__nv_bfloat16>(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if CG_ARCH >= 800
  CG_MMA_K16("bf16.bf16");
#else
  __trap();  // a kernel asks has_mma first
#endif
}
#undef CG_MMA_K16
#undef CG_MMA

// Two 16-bit numbers in a register, as fragments hold them.
__device__ inline unsigned pack_two(__half low, __half high) {
  return __half_as_ushort(low) | (unsigned)__half_as_ushort(high) << 16;
}
__device__ inline unsigned pack_two(__nv_bfloat16 low, __nv_bfloat16 high) {
  return __bfloat16_as_ushort(low) | (unsigned)__bfloat16_as_ushort(high) << 16;
}

#endif

__device__ inline float infinity() { return __int_as_float(0x7f800000); }
__device__ inline float no_number() { return __int_as_float(0x7fc00000); }
