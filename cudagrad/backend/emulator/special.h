// The functions of kernels/ptx.cuh, which says what they do, for the emulated device.
#pragma once

#include <type_traits>

#include "cuda_emulated.h"

#ifndef CG_ARCH
#define CG_ARCH 900
#endif

namespace cg {

uint4 load16(const void* from);
uint2 load8(const void* from);
void store16(void* to, uint4 value);
void store8(void* to, uint2 value);
void copy_async(void* to, const void* from, size_t bytes, bool valid);
void copies_commit();
void copies_wait(unsigned most);
void load_matrices(Site site, unsigned* to, const void* row, int matrices, bool transposed);
void multiply(Site site, float* d, const unsigned* a, const unsigned* b, bool half, int k);

// As a default argument: where the function that has it is called.
inline Site here(const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return {what, file, line};
}

}  // namespace cg

#define CG_SPECIAL __forceinline__  // the code address in the kernel is then that of its caller

CG_SPECIAL uint4 ld16(const void* from) { return cg::load16(from); }
CG_SPECIAL uint2 ld8(const void* from) { return cg::load8(from); }
CG_SPECIAL void st16(void* to, uint4 value) { cg::store16(to, value); }
CG_SPECIAL void st8(void* to, uint2 value) { cg::store8(to, value); }

CG_SPECIAL float fast_exp(float x) {
  const float y = expf(x);
  return y < 0x1p-126f ? 0 : y;
}
CG_SPECIAL float larger(float a, float b) { return a > b || a != a ? a : b; }
CG_SPECIAL double larger(double a, double b) { return a > b || a != a ? a : b; }

#if CG_ARCH >= 800
CG_SPECIAL void cp_async16(void* to, const void* from, bool valid = true) { cg::copy_async(to, from, 16, valid); }
CG_SPECIAL void cp_async4(void* to, const void* from, bool valid = true) { cg::copy_async(to, from, 4, valid); }
CG_SPECIAL void cp_async_commit() { cg::copies_commit(); }
template <int groups>
CG_SPECIAL void cp_async_wait() {
  cg::copies_wait(groups);
}
#else
CG_SPECIAL void cp_async16(void* to, const void* from, bool valid = true) { st16(to, valid ? ld16(from) : uint4{}); }
CG_SPECIAL void cp_async4(void* to, const void* from, bool valid = true) {
  *(unsigned*)to = valid ? *(const unsigned*)from : 0;
}
CG_SPECIAL void cp_async_commit() {}
template <int groups>
CG_SPECIAL void cp_async_wait() {}
#endif

CG_SPECIAL void ldmatrix_x4(unsigned (&to)[4], const void* row, cg::Site site = cg::here("ldmatrix_x4")) {
  cg::load_matrices(site, to, row, 4, false);
}
CG_SPECIAL void ldmatrix_x2(unsigned (&to)[2], const void* row, cg::Site site = cg::here("ldmatrix_x2")) {
  cg::load_matrices(site, to, row, 2, false);
}
CG_SPECIAL void ldmatrix_x4_trans(unsigned (&to)[4], const void* row, cg::Site site = cg::here("ldmatrix_x4_trans")) {
  cg::load_matrices(site, to, row, 4, true);
}
CG_SPECIAL void ldmatrix_x2_trans(unsigned (&to)[2], const void* row, cg::Site site = cg::here("ldmatrix_x2_trans")) {
  cg::load_matrices(site, to, row, 2, true);
}

template <class S>
constexpr bool has_mma = false;
template <>
inline constexpr bool has_mma<__half> = true;
template <>
inline constexpr bool has_mma<__nv_bfloat16> = CG_ARCH >= 800;

template <class S>
CG_SPECIAL void mma_m16n8k16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                             cg::Site site = cg::here("mma_m16n8k16")) {
  constexpr bool half = std::is_same_v<S, __half>;
  static_assert(half || std::is_same_v<S, __nv_bfloat16>, "mma_m16n8k16 multiplies half_t or bfloat16");
  if (!has_mma<S>) cg::fail("%s at %s:%d: the tensor cores of sm_75 know no bfloat16", site.what, site.file, site.line);
#if CG_ARCH >= 800
  cg::multiply(site, d, a, b, half, 16);
#else
  cg::multiply(site, d, a, b, half, 8);
  cg::multiply(site, d, a + 2, b + 1, half, 8);
#endif
}

CG_SPECIAL unsigned pack_two(__half low, __half high) { return low.bits | (unsigned)high.bits << 16; }
CG_SPECIAL unsigned pack_two(__nv_bfloat16 low, __nv_bfloat16 high) { return low.bits | (unsigned)high.bits << 16; }
