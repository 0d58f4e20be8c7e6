// What a .cu file sees in place of CUDA when g++ or clang++ builds it: the language's words, the built-in variables, the
// collectives and the number types. runtime.cpp runs the threads.
#pragma once

#include <cassert>
#include <math.h>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#define __global__
#define __device__ static  // internal linkage: its static arrays may then lie in a section of ours
#define __host__
#define __constant__ static const
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __trap __builtin_trap
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static __attribute__((section("cg_shared")))  // one block runs at a time

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

namespace cg {

struct Site {  // where a thread stands, for comparing and for reports
  const char* what;
  const char* file;
  int line;
};

struct Thread {
  dim3 index;
  int number, warp, lane;
  int state;
  void* stack_pointer;
  Site site;
  unsigned mask;       // of the collective it waits in
  void* posted;        // its operands there
  unsigned warp_epoch;  // of __syncwarp, for the checker
  unsigned passed;      // barriers and collectives that lie behind, likewise
};

extern Thread* self;
extern dim3 block_index, block_size, grid_size;
extern char* dynamic_shared;

using Execute = void (*)(unsigned mask, void** posted);

[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));
void barrier(Site site);
void collect(Site site, unsigned mask, void* posted, Execute execute);
void note_atomic(void* pc, void* at, size_t bytes);
void note_fence();

enum Kind { TO, UP, DOWN, XOR };

template <class V>
struct Shuffle {
  V value, result;
  Kind kind;
  int operand, width;
};

inline int source_lane(Kind kind, int lane, int operand, int width) {
  int first = lane / width * width, from = lane;
  if (kind == TO) from = first + (operand & (width - 1));
  if (kind == UP) from = lane - operand < first ? lane : lane - operand;
  if (kind == DOWN) from = lane + operand >= first + width ? lane : lane + operand;
  if (kind == XOR) from = (lane ^ operand) >= first + width ? lane : lane ^ operand;
  return from;
}

template <class V>
void shuffle_all(unsigned mask, void** posted) {
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    auto& mine = *(Shuffle<V>*)posted[lane];
    int from = source_lane(mine.kind, lane, mine.operand, mine.width);
    if (!(mask >> from & 1)) fail("lane %d shuffles from lane %d, which is not in the mask %08x", lane, from, mask);
    mine.result = ((Shuffle<V>*)posted[from])->value;
  }
}

template <class V>
V shuffle(Site site, Kind kind, unsigned mask, V value, int operand, int width = 32) {
  Shuffle<V> mine{value, value, kind, operand, width};
  collect(site, mask, &mine, shuffle_all<V>);
  return mine.result;
}

struct Vote {
  bool value;
  unsigned ballot;
};

inline void vote_all(unsigned mask, void** posted) {
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) ballot |= (unsigned)((Vote*)posted[lane])->value << lane;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) ((Vote*)posted[lane])->ballot = ballot;
}

inline unsigned ballot(Site site, unsigned mask, bool value) {
  Vote mine{value, 0};
  collect(site, mask, &mine, vote_all);
  return mine.ballot;
}

void sync_warp(Site site, unsigned mask);
inline unsigned mask_of(unsigned mask = 0xffffffff) { return mask; }

// The threads of the device take turns, so nothing can come between; the checker is told of one access, not of two.
template <class V, class Change>
__attribute__((noinline, no_sanitize("thread"))) V atomic(V* at, Change change) {
  note_atomic(__builtin_return_address(0), at, sizeof(V));
  V before = *at;
  *at = change(before);
  return before;
}

}  // namespace cg

#define CG_SITE(what) (cg::Site{what, __FILE__, __LINE__})
#define threadIdx (cg::self->index)
#define blockIdx (cg::block_index)
#define blockDim (cg::block_size)
#define gridDim (cg::grid_size)
#define __syncthreads() cg::barrier(CG_SITE("__syncthreads"))
#define __syncwarp(...) cg::sync_warp(CG_SITE("__syncwarp"), cg::mask_of(__VA_ARGS__))
#define __shfl_sync(...) cg::shuffle(CG_SITE("__shfl_sync"), cg::TO, __VA_ARGS__)
#define __shfl_up_sync(...) cg::shuffle(CG_SITE("__shfl_up_sync"), cg::UP, __VA_ARGS__)
#define __shfl_down_sync(...) cg::shuffle(CG_SITE("__shfl_down_sync"), cg::DOWN, __VA_ARGS__)
#define __shfl_xor_sync(...) cg::shuffle(CG_SITE("__shfl_xor_sync"), cg::XOR, __VA_ARGS__)
#define __ballot_sync(mask, p) cg::ballot(CG_SITE("__ballot_sync"), mask, p)
#define __any_sync(mask, p) (cg::ballot(CG_SITE("__any_sync"), mask, p) != 0)
#define __all_sync(mask, p) (cg::ballot(CG_SITE("__all_sync"), mask, !(p)) == 0)

template <class V>
inline V atomicAdd(V* at, V value) {
  return cg::atomic(at, [=](V v) { return v + value; });
}
template <class V>
inline V atomicMax(V* at, V value) {
  return cg::atomic(at, [=](V v) { return v < value ? value : v; });
}

template <class V>
inline V atomicMin(V* at, V value) {
  return cg::atomic(at, [=](V v) { return value < v ? value : v; });
}
template <class V>
inline V atomicExch(V* at, V value) {
  return cg::atomic(at, [=](V) { return value; });
}
template <class V>
inline V atomicCAS(V* at, V compare, V value) {
  return cg::atomic(at, [=](V v) { return v == compare ? value : v; });
}
inline void __threadfence() { cg::note_fence(); }
inline void __threadfence_block() {}
const int warpSize = 32;

#define CG_LEAST_AND_MOST(type)                                  \
  inline type min(type a, type b) { return b < a ? b : a; }      \
  inline type max(type a, type b) { return a < b ? b : a; }
CG_LEAST_AND_MOST(int)
CG_LEAST_AND_MOST(unsigned)
CG_LEAST_AND_MOST(long)
CG_LEAST_AND_MOST(unsigned long)
CG_LEAST_AND_MOST(long long)
CG_LEAST_AND_MOST(unsigned long long)
#undef CG_LEAST_AND_MOST
inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

// ---- number types

namespace cg {
inline float of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}
uint16_t to_half(float value);
float from_half(uint16_t bits);
inline uint16_t to_bfloat16(float value) {
  uint32_t bits = bits_of(value);
  if (value != value) return 0x7fff;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;  // to nearest, ties to even
}
}  // namespace cg

struct __half {
  uint16_t bits;
  __half() = default;
  __half(float value) : bits(cg::to_half(value)) {}
  operator float() const { return cg::from_half(bits); }
};

struct __nv_bfloat16 {
  uint16_t bits;
  __nv_bfloat16() = default;
  __nv_bfloat16(float value) : bits(cg::to_bfloat16(value)) {}
  operator float() const { return cg::of_bits((uint32_t)bits << 16); }
};

using half = __half;

inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float __int_as_float(int bits) { return cg::of_bits((uint32_t)bits); }
inline int __float_as_int(float x) { return (int)cg::bits_of(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1 : 0; }
inline float __half2float(__half x) { return x; }
inline __half __float2half(float x) { return x; }
inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline __nv_bfloat16 __float2bfloat16(float x) { return x; }
template <class V>
inline V __ldg(const V* at) {
  return *at;
}
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
inline float __uint_as_float(unsigned bits) { return cg::of_bits(bits); }
inline unsigned __float_as_uint(float x) { return cg::bits_of(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (uint64_t)a * b >> 32; }

// The launch's dynamic shared memory as an array of `type`, which CUDA spells with extern.
#define CG_DYNAMIC_SHARED(type, name) type* name = (type*)cg::dynamic_shared
