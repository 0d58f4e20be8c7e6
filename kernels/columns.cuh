// Sums over columns, in a fixed order: a block's walkers, the threads of one threadIdx.x, add up rows of their own.
#pragma once

#include "common.cuh"

__device__ inline A* walkers_values() {
  __shared__ A of_walker[8 * (32 * CG_V + 32)];
  return of_walker;
}

// Adds `v` up over the walkers and stores the sums of the block's 32 * CG_V columns at `to`; `count` of them are there.
// Thread x holds columns x * CG_V and on. All threads must call; blockDim.x is 32 and blockDim.y at most 8.
__device__ inline void store_columns(const A (&v)[CG_V], A* to, int count) {
  constexpr int apart = 32 + 32 / CG_V;  // between elements of a pack: no two lanes meet in a bank, to write or to read
  A* of_walker = walkers_values();
  for (int k = 0; k < CG_V; ++k) of_walker[(threadIdx.y * CG_V + k) * apart + threadIdx.x] = v[k];
  __syncthreads();
  for (int j = threadIdx.y * 32 + threadIdx.x; j < 32 * CG_V && j < count; j += 32 * blockDim.y) {
    A sum = 0;
    for (int y = 0; y < (int)blockDim.y; ++y) sum += of_walker[(y * CG_V + j % CG_V) * apart + j / CG_V];
    to[j] = sum;
  }
  __syncthreads();  // of_walker may be reused by the next call
}

// Stores `v`, sums of columns j to j + CG_V, at their places of a row of C. All lanes of the warp must call: where a
// pack is 32 bytes of sums, neighbours swap halves, so that what a warp stores at once fills whole sectors.
__device__ inline void store_sums(const A (&v)[CG_V], A* row, int j, int C) {
  if constexpr (CG_V * sizeof(A) == 32) {
    const int odd = threadIdx.x % 2, pair = j - odd * CG_V;
    A left[4], right[4];  // of the even lane's pack, and of the odd one's
    for (int k = 0; k < 4; ++k) {
      const A low = v[k % CG_V], high = v[(4 + k) % CG_V], got = __shfl_xor_sync(0xffffffff, odd ? low : high, 1);
      left[k] = odd ? got : low;
      right[k] = odd ? high : got;
    }
    if (pair < C) store_pack(row + pair + 4 * odd, left);
    if (pair + CG_V < C) store_pack(row + pair + CG_V + 4 * odd, right);
  } else if (j < C) {
    store_pack(row + j, v);
  }
}
