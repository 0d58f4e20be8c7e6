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

// ---- packs of V elements: one element, or elements that fill 16 bytes or a multiple and lie on 16 bytes

template <int V, class S>
__device__ inline void load_pack(const S* from, A (&v)[V]) {
  if constexpr (V == 1) {
    v[0] = (A)from[0];
  } else {
    constexpr int n = 16 / sizeof(S);
    static_assert(V % n == 0, "a pack fills 16 bytes or a multiple");
    for (int i = 0; i < V; i += n) {
      union {
        uint4 whole;
        S part[n];
      } pack;
      pack.whole = ld16(from + i);
      for (int k = 0; k < n; ++k) v[i + k] = (A)pack.part[k];
    }
  }
}

template <int V, class S>
__device__ inline void store_pack(S* to, const A (&v)[V]) {
  if constexpr (V == 1) {
    to[0] = (S)v[0];
  } else {
    constexpr int n = 16 / sizeof(S);
    static_assert(V % n == 0, "a pack fills 16 bytes or a multiple");
    for (int i = 0; i < V; i += n) {
      union {
        uint4 whole;
        S part[n];
      } pack;
      for (int k = 0; k < n; ++k) pack.part[k] = (S)v[i + k];
      st16(to + i, pack.whole);
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
  __shared__ A of_warp[32];
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

// One thread's packs of a row of C elements: pack t, t + P, t + 2 P, ... for thread t of P. The row is read once, into
// registers, where CG_K > 0 packs a thread hold it; else `each` reads it anew, from the caches.
struct Row {
  const T* at;
  int C;
  A held[CG_K ? CG_K : 1][CG_V];

  Row(const T* at, int C) : at(at), C(C) {
#pragma unroll
    for (int k = 0; k < CG_K; ++k)
      if (first(k) < C) load_pack(at + first(k), held[k]);
  }

  // Adds another row and rounds to T. Where registers hold no rows the sums go to `to`, which is the row from then on.
  void add(const T* other, T* to) {
    A more[CG_V];
    if constexpr (CG_K > 0) {
#pragma unroll
      for (int k = 0; k < CG_K; ++k)
        if (first(k) < C) {
          load_pack(other + first(k), more);
          add_rounded(held[k], more);
        }
    } else {
      for (int k = 0; first(k) < C; ++k) {
        load_pack(at + first(k), held[0]);
        load_pack(other + first(k), more);
        add_rounded(held[0], more);
        store_pack(to + first(k), held[0]);
      }
      at = to;
    }
  }

  static void add_rounded(A (&v)[CG_V], const A (&more)[CG_V]) {
    for (int k = 0; k < CG_V; ++k) v[k] = (A)(T)(v[k] + more[k]);
  }

  static int first(int k) { return (k * (int)blockDim.x + (int)threadIdx.x) * CG_V; }

  // use(j, v, k) for each of this thread's packs: elements j to j + CG_V of the row are v; it is the thread's k-th pack.
  template <class Use>
  void each(Use use) {
    if constexpr (CG_K > 0) {
#pragma unroll
      for (int k = 0; k < CG_K; ++k)
        if (first(k) < C) use(first(k), held[k], k);
    } else {
      for (int k = 0; first(k) < C; ++k) {
        load_pack(at + first(k), held[0]);
        use(first(k), held[0], k);
      }
    }
  }
};
