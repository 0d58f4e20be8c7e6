#include "columns.cuh"
#include "linear.cuh"

/*
linear_backward           gradient of the activation behind a linear map, and the sums of its columns

math     dz[i,j] = g[i,j] * f'(s[i,j]),  f by its number in linear.cuh, s its result for relu, else its argument
         partial[q,j] = sum_i dz[i,j]  over the rows i = 8 q + r, 8 (q + Q) + r, ..., r from 0 to 7
source   the derivative of linear_float's ending
shapes   g: T[M,N]   s: T[M,N] or null   dz: T[M,N] or null   partial: A[Q,N] or null
where    V = 16 // size_T if aligned and N * size_T % 16 == 0 else 1
         G = ceil(N, 32 * V)
         Q = min(ceil(M, 32), max(1, ceil(4 * processors, G)))
launch   grid = (G, Q)   block = (32, 8)   shared = 0
bytes    (1 + s + dz) * M * N * size_T + partial * Q * N * size_A
flops    20 * M * N
limits   1 <= M and 1 <= N and M < 2**31 and N < 2**30 and Q < 65536
used by  cudagrad/ops/linear_act.py linear_relu, linear_smooth, cudagrad/ops/affine.py column_sum
*/
extern "C" __global__ void __launch_bounds__(256)
    linear_backward(const T* g, const T* s, T* dz, A* partial, int M, int N, int act) {
  const int tile = blockIdx.x * 32 * CG_V, j = tile + threadIdx.x * CG_V;
  A sum[CG_V] = {};
  for (long long i = blockIdx.y * 8 + threadIdx.y; i < M && j < N; i += gridDim.y * 8) {
    A u[CG_V], v[CG_V];
    load_pack(g + i * N + j, u);
    if (s) {
      load_pack(s + i * N + j, v);
      for (int k = 0; k < CG_V; ++k) u[k] *= slope(v[k], act);
    }
    if (dz) store_pack(dz + i * N + j, u);
    for (int k = 0; k < CG_V; ++k) sum[k] += u[k];
  }
  if (partial) store_columns(sum, partial + (long long)blockIdx.y * N + tile, N - tile);
}
