// What the kernels share: number types, loads and stores of packs, sums over a warp and over a row's threads.
//
// The loader gives the types as macros: CG_T of the data, CG_W of weights, CG_A of what is accumulated (float; double for
// double). Written for NVRTC with -default-device; g++ builds the same text for the emulated device.
#pragma once

#ifdef CG_EMULATED
#include "cuda_emulated.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
// The launch's dynamic shared memory as an array of `type`.
#define CG_DYNAMIC_SHARED(type, name)                    \
  extern __shared__ __align__(16) char cg_dynamic_shared[]; \
  type* name = (type*)cg_dynamic_shared
#endif

#include "ptx.cuh"

#ifndef CG_V  // elements a pack, and packs a thread holds: letters of the entry's header; here for entries without
#define CG_V 1
#endif
#ifndef CG_K
#define CG_K 0
#endif
#ifndef CG_E  // choices of an entry, by its header
#define CG_E 0
#endif
#ifndef CG_L
#define CG_L 0
#endif
#ifndef CG_B  // threads a block, which bounds the registers a thread may have
#define CG_B 1024
#endif

using bfloat16 = __nv_bfloat16;
using half_t = __half;
using T = CG_T;
using W = CG_W;
using A = CG_A;

// ---- elements of any type as A; packs of V of them, on as many bytes as the pieces have that one instruction moves

template <class S>
__device__ inline A wide(S x) {
  return (A)x;
}
__device__ inline A wide(half_t x) { return (float)x; }  // which double is no cast away from
__device__ inline A wide(bfloat16 x) { return (float)x; }

template <int BYTES>
__device__ inline auto load_piece(const void* from) {
  if constexpr (BYTES == 16) return ld16(from);
  else if constexpr (BYTES == 8) return ld8(from);
  else if constexpr (BYTES == 4) return *(const unsigned*)from;
  else return *(const unsigned short*)from;
}
__device__ inline void store_piece(void* to, uint4 piece) { st16(to, piece); }
__device__ inline void store_piece(void* to, uint2 piece) { st8(to, piece); }
__device__ inline void store_piece(void* to, unsigned piece) { *(unsigned*)to = piece; }
__device__ inline void store_piece(void* to, unsigned short piece) { *(unsigned short*)to = piece; }

// What one instruction moves of a pack: 16 bytes, or all of it.
template <class S, int V>
union Piece {
  static constexpr int bytes = V * sizeof(S) < 16 ? V * sizeof(S) : 16, n = bytes / sizeof(S);
  static_assert(V % n == 0, "a pack fills 16 bytes, a multiple or a power of two below");
  decltype(load_piece<bytes>(nullptr)) whole;
  S part[n];
};

template <int V, class S>
__device__ inline void load_pack(const S* from, A (&v)[V]) {
  if constexpr (V == 1) {
    v[0] = wide(from[0]);
  } else {
    using P = Piece<S, V>;
#pragma unroll
    for (int i = 0; i < V; i += P::n) {
      P pack;
      pack.whole = load_piece<P::bytes>(from + i);
#pragma unroll
      for (int k = 0; k < P::n; ++k) v[i + k] = wide(pack.part[k]);
    }
  }
}

template <int V, class S>
__device__ inline void store_pack(S* to, const A (&v)[V]) {
  if constexpr (V == 1) {
    to[0] = (S)v[0];
  } else {
    using P = Piece<S, V>;
#pragma unroll
    for (int i = 0; i < V; i += P::n) {
      P pack;
#pragma unroll
      for (int k = 0; k < P::n; ++k) pack.part[k] = (S)v[i + k];
      store_piece(to + i, pack.whole);
    }
  }
}

// ---- over the 32 lanes of a warp; all must call

__device__ inline A warp_sum(A v) {
  for (int lanes = 16; lanes; lanes /= 2) v += __shfl_xor_sync(0xffffffff, v, lanes);
  return v;
}

__device__ inline A warp_max(A v) {
  for (int lanes = 16; lanes; lanes /= 2) v = larger(v, __shfl_xor_sync(0xffffffff, v, lanes));
  return v;
}

// ---- over a row: the threads of one threadIdx.y. blockDim.x is a multiple of 32 and at most 1024; blockDim.y is 1 unless
// blockDim.x is 32. Every thread of the block must call where blockDim.x > 32, every lane of the row's warp where it is 32;
// all get the result.

__device__ inline A* warps_values() {  // apart from the template: of those, g++ loses sight of __shared__
  __shared__ A of_warp[64];
  return of_warp;
}

template <class Combine>
__device__ inline A row_combine(A v, A neutral, Combine combine) {
  v = combine(v);
  if (blockDim.x == 32) return v;
  A* of_warp = warps_values();
  const int lane = threadIdx.x % 32;
  if (lane == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  v = combine(lane < (int)blockDim.x / 32 ? of_warp[lane] : neutral);
  __syncthreads();  // of_warp may be reused by the next call
  return v;
}

__device__ inline A row_sum(A v) {
  return row_combine(v, 0, [](A a) { return warp_sum(a); });
}

__device__ inline A row_max(A v) {
  return row_combine(v, -infinity(), [](A a) { return warp_max(a); });
}

// Two sums by one exchange.
__device__ inline void row_sums(A& a, A& b) {
  a = warp_sum(a), b = warp_sum(b);
  if (blockDim.x == 32) return;
  A* of_warp = warps_values();
  const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (lane == 0) of_warp[threadIdx.x / 32] = a, of_warp[32 + threadIdx.x / 32] = b;
  __syncthreads();
  a = warp_sum(lane < warps ? of_warp[lane] : 0), b = warp_sum(lane < warps ? of_warp[32 + lane] : 0);
  __syncthreads();  // of_warp may be reused by the next call
}
