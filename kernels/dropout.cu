#include "columns.cuh"
#include "common.cuh"
#include "philox.cuh"

/*
dropped                   multiply by scale, or by 0 with probability p; no mask is stored

math     y[i] = x[i] * (number i / per of the call (seed, offset) >= limit ? scale : 0), limit = p * 2^16 rounded
source   Srivastava et al. 2014, Dropout, section 4; the numbers are those of cudagrad/backend/philox.py
shapes   x, y: T[M]
where    V = 16 // size_T if aligned and (per == 1 or per * size_T % 16 == 0) else 1
launch   grid = ceil(M, 256 * V)   block = 256   shared = 0
bytes    2 * M * size_T
flops    M
limits   1 <= M and 1 <= per and ceil(M, 256 * V) < 2**31
used by  cudagrad/ops/dropout.py dropped
*/
extern "C" __global__ void __launch_bounds__(256) dropped(const T* x, T* y, long long M, long long per, unsigned limit, A scale,
                                                          unsigned long long seed, unsigned long long offset) {
  const long long i = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * CG_V;
  if (i >= M) return;
  const bool small = (i | per) >> 32 == 0;  // a division of 64 bits takes as long as philox
  const unsigned long long first = per == 1 ? i : small ? (unsigned)i / (unsigned)per : i / per;
  using Pack = Piece<T, CG_V>;
  const bool whole = M - i >= CG_V;
  Pack pack;
  if (whole)
    pack.whole = load_piece<Pack::bytes>(x + i);
  else
    for (int k = 0; k < CG_V; ++k) pack.part[k] = i + k < M ? x[i + k] : (T)(A)0;
  const Bits bits = philox(seed, offset, first / 8);  // a pack lies in one counter, for V divides 8; or has one number
  A v[CG_V];
#pragma unroll
  for (int k = 0; k < CG_V; ++k)
    v[k] = wide(pack.part[k]) * (kept(bits, per == 1 ? first + k : first, limit) ? scale : (A)0);  // 0 * inf is nan
  if (whole)
    store_pack(y + i, v);
  else
    for (int k = 0; k < CG_V; ++k)
      if (i + k < M) y[i + k] = (T)v[k];
}

/*
bias_dropped_added        add a bias, drop out, add a residual; no mask is stored

math     y[i] = (x[i] + b[i % C]) * (number i of the call (seed, offset) >= limit ? scale : 0) + residual[i]
source   Srivastava et al. 2014, Dropout, section 4; the numbers are those of cudagrad/backend/philox.py
shapes   x, y: T[M]   b: T[C] or null   residual: T[M] or null
where    V = 16 // size_T if aligned and M * size_T % 16 == 0 else 1
launch   grid = ceil(M, 256 * V)   block = 256   shared = 0
bytes    (2 + residual) * M * size_T + b * C * size_T
flops    (1 + residual + b) * M
limits   1 <= M and 1 <= C and C < 2**31 and ceil(M, 256 * V) < 2**31
used by  cudagrad/ops/residual.py bias_dropped_added
*/
extern "C" __global__ void __launch_bounds__(256) bias_dropped_added(const T* x, const T* b, const T* residual, T* y,
                                                                     long long M, int C, unsigned limit, A scale,
                                                                     unsigned long long seed,
                                                                     unsigned long long offset) {
  const long long i = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * CG_V;
  if (i >= M) return;
  A v[CG_V], more[CG_V];
  load_pack(x + i, v);
  if (residual) load_pack(residual + i, more);
  if (b) {
    const int j = i >> 32 ? (int)(i % C) : (int)((unsigned)i % (unsigned)C);  // of 64 bits it takes as long as philox
    A shift[CG_V];
    if (C % CG_V == 0)
      load_pack(b + j, shift);
    else
      for (int k = 0; k < CG_V; ++k) shift[k] = (A)b[(j + k) % C];
    for (int k = 0; k < CG_V; ++k) v[k] += shift[k];
  }
  if (limit) {  // else nothing is dropped, and no number drawn
    const Bits bits = philox(seed, offset, i / 8);
#pragma unroll
    for (int k = 0; k < CG_V; ++k) v[k] *= kept(bits, i + k, limit) ? scale : (A)0;
  }
  if (residual)
    for (int k = 0; k < CG_V; ++k) v[k] += more[k];
  store_pack(y + i, v);
}

/*
dropped_backward          the gradient of bias_dropped_added by x, and by its bias the sums over each block's rows

math     dx[i,j] = g[i,j] * (number i * C + j of the call (seed, offset) >= limit ? scale : 0)
         partial[q,j] = sum_i dx[i,j],  over i = 8 q + y, 8 q + y + 8 Q, ... for y = 0 to 7
source   the derivative of bias_dropped_added; the numbers are those of cudagrad/backend/philox.py
shapes   g: T[N,C]   dx: T[N,C] or null   partial: A[Q,C]
where    V = 16 // size_T if aligned and C * size_T % 16 == 0 else 1
         Q = min(ceil(N, 8), max(5 * processors // ceil(C, 32 * V), 1), 2**15)
launch   grid = (ceil(C, 32 * V), Q)   block = (32, 8)   shared = 0
bytes    (1 + dx) * N * C * size_T + Q * C * size_A
flops    2 * N * C
limits   1 <= N and 1 <= C and N < 2**30 and C < 2**30
used by  cudagrad/ops/residual.py bias_dropped_added
*/
extern "C" __global__ void __launch_bounds__(256, 5) dropped_backward(const T* g, T* dx, A* partial, int N, int C,
                                                                      unsigned limit, A scale, unsigned long long seed,
                                                                      unsigned long long offset) {
  const int tile = blockIdx.x * 32 * CG_V, j = tile + threadIdx.x * CG_V;
  A sum[CG_V] = {};
  if (j < C) {
    for (int i = blockIdx.y * 8 + threadIdx.y; i < N; i += gridDim.y * 8) {
      const long long at = (long long)i * C + j;
      A v[CG_V];
      load_pack(g + at, v);
      if (limit) {
        const Bits bits = philox(seed, offset, at / 8);  // a pack lies in one counter: V divides 8 and C
#pragma unroll
        for (int k = 0; k < CG_V; ++k) v[k] *= kept(bits, at + k, limit) ? scale : (A)0;
      }
      for (int k = 0; k < CG_V; ++k) sum[k] += v[k];
      if (dx) store_pack(dx + at, v);
    }
  }
  store_columns(sum, partial + (long long)blockIdx.y * C + tile, C - tile);
}
