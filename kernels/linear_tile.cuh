// How a block of linear_float.cu or linear_tensor.cu finds its tile of the result, and how the sums leave it.
#pragma once

#include "linear.cuh"

// A product's sums leave by way of shared memory, a band of the block's tile at a time: neighbours in a warp write
// neighbours in a row, and the activations stand in the code once. A row's 8 spare elements bring the rows that a warp
// writes at once into different banks.
constexpr int BAND = CG_E + 8;  // elements a row

// n sums from shared memory. Of 32 bytes four lanes of eight begin with the other half: together they read all banks.
template <int n>
__device__ inline void load_turned(const A* from, A (&v)[n]) {
  if constexpr (n * sizeof(A) == 32) {
    constexpr int half = n / 2;
    const bool turned = threadIdx.x / 4 % 2;
    A one[half], other[half];
    load_pack(from + (turned ? half : 0), one);
    load_pack(from + (turned ? 0 : half), other);
    for (int k = 0; k < half; ++k) v[k] = turned ? other[k] : one[k], v[half + k] = turned ? one[k] : other[k];
  } else {
    load_pack(from, v);
  }
}

// Take `rows` rows of sums, which lie in shared memory, to y: the first is row `above` of all and row i of its matrix.
template <int rows, int threads>
__device__ inline void take(const A* sums, const Ending& ending, long long above, int i, int M, int j) {
  constexpr int n = 16 / sizeof(T), across = CG_E / n;
  if (!ending.packed) {
    for (int p = threadIdx.x; p < rows * CG_E; p += threads) {
      const int row = p / CG_E, column = p % CG_E;
      A v[1] = {sums[row * BAND + column]};
      if (i + row < M && j + column < ending.N) ending.put((above + row) * ending.N + j + column, j + column, v);
    }
    return;
  }
  for (int p = threadIdx.x; p < rows * across; p += threads) {
    const int row = p / across, column = p % across * n;
    if (i + row >= M || j + column >= ending.N) continue;
    A v[n];
    load_turned(sums + row * BAND + column, v);
    ending.put((above + row) * ending.N + j + column, j + column, v);
  }
}

// The tile of a block, in bands of 8 rows of tiles: blocks that run together share rows of a and columns of b.
struct Tile {
  int i, j;  // its first row and column

  Tile(int M, int N, int edge) {
    const int down = (M + edge - 1) / edge, across = (N + edge - 1) / edge, band = blockIdx.x / (8 * across);
    const int rows = down - band * 8 < 8 ? down - band * 8 : 8, within = blockIdx.x % (8 * across);
    i = (band * 8 + within % rows) * edge;
    j = within / rows * edge;
  }
};
