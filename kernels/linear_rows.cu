#include "linear.cuh"

constexpr int BLOCKS = sizeof(A) == 8 ? 2 : 4;  // a multiprocessor should hold

/*
linear_rows               a linear map of few rows: w is read once, by 16 bytes a lane

math     y[i,j] = f(pre[i,j]),  pre[i,j] = sum_c x[i,c] * w[j,c] + bias[j],  f by its number in linear.cuh; or
         partial[x,i,j] = the sum over the x-th of X parts of the c, of D each
source   the definition; a warp for four columns of y
shapes   x: T[M,C]   w: T[N,C]   bias: T[N] or null   y: T[M,N]   pre: T[M,N] or null   partial: A[X,M,N] or null
where    V = 16 // size_T if aligned and C * size_T % 16 == 0 else 1
         K = power2(M)
         G = ceil(N, 16)
         X = max(1, min(4 * processors // G, C // (64 * V)))
         D = ceil(ceil(C, X), 32 * V) * 32 * V
launch   grid = (G, X)   block = 128   shared = 0
bytes    (M * C + N * C) * size_T + (X * M * N * size_A if partial else ((1 + pre) * M + bias) * N * size_T)
flops    2 * M * N * C
limits   1 <= M and M <= 16 and 1 <= N and 1 <= C and C < 2**30 and N < 2**30 and (X == 1 or partial)
used by  cudagrad/ops/linear_act.py linear_relu, linear_smooth, cudagrad/ops/affine.py linear,
         cudagrad/ops/matmul.py mm, mm_nt, mm_tn, matmul
*/
extern "C" __global__ void __launch_bounds__(128, BLOCKS) linear_rows(
    const T* x, const T* w, const T* bias, T* y, T* pre, A* partial, int M, int N, int C, int D, int act) {
  constexpr int rows = CG_K > 0 ? CG_K : 1, columns = 4;
  const int lane = threadIdx.x % 32, j0 = (blockIdx.x * 4 + threadIdx.x / 32) * columns;
  const int first = blockIdx.y * D, last = first + D < C ? first + D : C;
  A sum[rows][columns] = {};
  for (int c = first + lane * CG_V; c < last; c += 32 * CG_V) {
    A v[columns][CG_V];
#pragma unroll
    for (int j = 0; j < columns; ++j)  // a warp past the last column reads that again
      load_pack(w + (long long)(j0 + j < N ? j0 + j : N - 1) * C + c, v[j]);
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      if (i >= M) break;
      A u[CG_V];
      load_pack(x + (long long)i * C + c, u);
      for (int j = 0; j < columns; ++j)
        for (int k = 0; k < CG_V; ++k) sum[i][j] += u[k] * v[j][k];
    }
  }

  // A lane takes the sum of one row and column of the 32 at a time, four columns beside each other.
  const Ending ending(bias, y, pre, partial, N, act);
  constexpr int turns = (rows * columns + 31) / 32;
  A mine[turns][1] = {};
#pragma unroll
  for (int k = 0; k < rows * columns; ++k) {
    const A total = warp_sum(sum[k / columns][k % columns]);
    if (lane == k % 32) mine[k / 32][0] = total;
  }
#pragma unroll
  for (int t = 0; t < turns; ++t) {
    const int i = (t * 32 + lane) / columns, j = j0 + lane % columns;
    const long long row = partial ? (long long)blockIdx.y * M + i : i;
    if (i < M && j < N) ending.put(row * N + j, j, mine[t]);
  }
}
