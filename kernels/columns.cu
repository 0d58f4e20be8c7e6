#include "common.cuh"

/*
column_sums               add up the rows of G matrices, in a fixed order

math     out[m,j] = sum_q partial[m,q,j], m < G
source   the second stage of layer_norm_backward, layer_norm_sums, dropped_backward and linear_backward
shapes   partial: A[G,Q,C]   out: W[G,C]
launch   grid = (ceil(C, 32), G)   block = (32, 32)   shared = 0
bytes    G * Q * C * size_A + G * C * size_W
flops    G * Q * C
limits   1 <= Q and 1 <= C and 1 <= G and G < 2**16 and C < 2**30 and Q < 2**30
used by  cudagrad/ops/normalization.py layer_norm, rms_norm, cudagrad/ops/affine.py column_sum,
         cudagrad/ops/linear_act.py linear_relu, linear_smooth
*/
extern "C" __global__ void __launch_bounds__(1024) column_sums(const A* partial, W* out, int Q, int C) {
  __shared__ A of_walker[32][32];
  const int j = blockIdx.x * 32 + threadIdx.x;
  const A* column = partial + (long long)blockIdx.y * Q * C + j;
  A sum = 0;
  if (j < C)
    for (int q = threadIdx.y; q < Q; q += 32) sum += column[(long long)q * C];
  of_walker[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y || j >= C) return;
  for (int walker = 1; walker < 32; ++walker) sum += of_walker[walker][threadIdx.x];
  out[(long long)blockIdx.y * C + j] = (W)sum;
}
