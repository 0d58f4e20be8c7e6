#include "linear.cuh"

/*
linear_total              add up the parts of a product's sums in a fixed order, then bias and activation

math     y[z,i,j] = f(pre[z,i,j]),  pre[z,i,j] = sum_x partial[z,x,i,j] + bias[j],  f by its number in linear.cuh
source   the second stage of linear_float, linear_tensor and linear_rows
shapes   partial: A[Z,X,M,N]   bias: T[N] or null   y: T[Z,M,N]   pre: T[Z,M,N] or null
where    V = 16 // size_T if aligned and N * size_T % 16 == 0 else 1
         G = ceil(M * N, 256 * V)
launch   grid = (G, Z)   block = 256   shared = 0
bytes    Z * M * N * (X * size_A + (1 + pre) * size_T) + bias * N * size_T
flops    Z * M * N * X
limits   1 <= X and 1 <= M and 1 <= N and Z < 65536 and G < 2**31 and N < 2**31 and X < 2**31
used by  cudagrad/ops/linear_act.py linear_relu, linear_smooth, cudagrad/ops/affine.py linear,
         cudagrad/ops/matmul.py mm, mm_nt, mm_tn, bmm, matmul
*/
extern "C" __global__ void __launch_bounds__(256)
    linear_total(const A* partial, const T* bias, T* y, T* pre, long long M, int N, int X, int act) {
  const long long at = ((long long)blockIdx.x * 256 + threadIdx.x) * CG_V, count = M * N, z = blockIdx.y;
  if (at >= count) return;
  A sum[CG_V] = {};
  for (int x = 0; x < X; ++x) {
    A v[CG_V];
    load_pack(partial + (z * X + x) * count + at, v);
    for (int k = 0; k < CG_V; ++k) sum[k] += v[k];
  }
  const Ending ending(bias, y, pre, nullptr, N, act);
  ending.put(z * count + at, (int)(at % N), sum);
}

/*
linear_ending             bias and activation of products that the library has made

math     y[i,j] = f(pre[i,j]),  pre[i,j] = y[i,j] + bias[j],  f by its number in linear.cuh
source   the ending of linear_float and linear_tensor
shapes   y: T[M,N] in place   bias: T[N] or null   pre: T[M,N] or null
where    V = 16 // size_T if aligned and N * size_T % 16 == 0 else 1
launch   grid = ceil(M * N, 256 * V)   block = 256   shared = 0
bytes    (2 + pre) * M * N * size_T + bias * N * size_T
flops    M * N
limits   1 <= M and 1 <= N and M * N < 2**38 and N < 2**31
used by  cudagrad/ops/linear_act.py linear_relu, linear_smooth, cudagrad/ops/affine.py linear
*/
extern "C" __global__ void __launch_bounds__(256)
    linear_ending(T* y, const T* bias, T* pre, long long M, int N, int act) {
  const long long at = ((long long)blockIdx.x * 256 + threadIdx.x) * CG_V;
  if (at >= M * N) return;
  A v[CG_V];
  load_pack(y + at, v);
  const Ending ending(bias, y, pre, nullptr, N, act);
  ending.put(at, (int)(at % N), v);
}
