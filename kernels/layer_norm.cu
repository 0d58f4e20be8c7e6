#include "common.cuh"

/*
layer_norm_forward        normalise each row of x, then scale and shift it

math     y[i,j]  = (x[i,j] - mean[i]) * rstd[i] * w[j] + b[j]
         mean[i] = sum_j x[i,j] / C, or 0 where centre is 0 (rms_norm)
         rstd[i] = 1 / sqrt(sum_j (x[i,j] - mean[i])^2 / C + eps)
source   Ba, Kiros, Hinton 2016, arXiv:1607.06450, equations 3 and 4; Zhang, Sennrich 2019, arXiv:1910.07467, equation 4
shapes   x, y: T[N,C]   w, b: W[C] or null   mean: A[N] or null   rstd: A[N]
where    V = 16 // size_T if aligned and C * size_T % 16 == 0 else 1
         P = min(max(power2(ceil(C, 4 * V)), 32), 1024)
         K = power2(ceil(C, V * P)) if ceil(C, V * P) <= (4 if V > 1 else 16) else 0
         R = 4 if P == 32 else 1
         B = P * R
launch   grid = ceil(N, R)   block = (P, R)   shared = 0
bytes    2 * N * C * size_T + 2 * C * size_W + 2 * N * size_A
flops    8 * N * C
limits   1 <= N and 1 <= C and N < 2**31 and C < 2**30
used by  cudagrad/ops/normalization.py layer_norm, rms_norm
*/
extern "C" __global__ void __launch_bounds__(CG_B) layer_norm_forward(const T* x, const W* w, const W* b, T* y, A* mean,
                                                                       A* rstd, int N, int C, A eps, int centre) {
  const int i = blockIdx.x * blockDim.y + threadIdx.y;
  if (i >= N) return;  // a whole warp at once: only rows of one warp share a block
  const long long start = (long long)i * C;  // N*C may pass 2^31
  Row row(x + start, C);

  A sum = 0;
  row.each([&](int, A(&v)[CG_V], int) {
    for (int k = 0; k < CG_V; ++k) sum += v[k];
  });
  const A mu = centre ? row_sum(sum) / C : 0;

  // A second pass for the variance: E[x^2] - mu^2 loses every digit when |mu| >> std.
  A square = 0;
  row.each([&](int, A(&v)[CG_V], int) {
    for (int k = 0; k < CG_V; ++k) square += (v[k] - mu) * (v[k] - mu);
  });
  const A r = 1 / sqrt(row_sum(square) / C + eps);

  row.each([&](int j, A(&v)[CG_V], int) {
    A scale[CG_V], shift[CG_V], out[CG_V];
    for (int k = 0; k < CG_V; ++k) scale[k] = 1, shift[k] = 0;
    if (w) load_pack(w + j, scale);
    if (b) load_pack(b + j, shift);
    for (int k = 0; k < CG_V; ++k) out[k] = (v[k] - mu) * r * scale[k] + shift[k];
    store_pack(y + start + j, out);
  });
  if (threadIdx.x == 0) {
    if (mean) mean[i] = mu;
    rstd[i] = r;
  }
}

/*
layer_norm_backward       gradient by x, and by w and b the sums over each walker's rows

math     h[i,j]  = (x[i,j] - mean[i]) * rstd[i]      d[i,j] = g[i,j] * w[j]
         dx[i,j] = rstd[i] * (d[i,j] - sum_j d[i,j] / C - h[i,j] * sum_j d[i,j] * h[i,j] / C), the middle term only where
         mean is given
         partial[0,q,j] = sum_i g[i,j] * h[i,j],  partial[1,q,j] = sum_i g[i,j],  over the rows i = q, q + Q, q + 2 Q, ...
source   the derivative of layer_norm_forward
shapes   g, x: T[N,C]   w: W[C] or null   mean: A[N] or null   rstd: A[N]   dx: T[N,C] or null   partial: A[2,Q,C] or null
where    V = 16 // size_T if aligned and C * size_T % 16 == 0 else 1
         P = min(max(power2(ceil(C, V)), 32), 1024)
         K = power2(ceil(C, V * P)) if ceil(C, V * P) * V * size_A <= (32 if V > 1 else 16) else 0
         R = 4 if P == 32 else 1
         B = P * R
         G = min(ceil(N, R), 2 * processors)
         Q = G * R
launch   grid = G   block = (P, R)   shared = 0
bytes    3 * N * C * size_T + C * size_W + 2 * N * size_A + 2 * Q * C * size_A
flops    16 * N * C
limits   1 <= N and 1 <= C and N < 2**31 and C < 2**30
used by  cudagrad/ops/normalization.py layer_norm, rms_norm
*/
extern "C" __global__ void __launch_bounds__(CG_B) layer_norm_backward(const T* g, const T* x, const W* w, const A* mean,
                                                                        const A* rstd, T* dx, A* partial, int N, int C,
                                                                        int Q) {
  const int q = blockIdx.x * blockDim.y + threadIdx.y;
  A dw[CG_K ? CG_K : 1][CG_V] = {}, db[CG_K ? CG_K : 1][CG_V] = {};
  A* dw_at = partial + (long long)q * C;
  A* db_at = partial + (long long)(Q + q) * C;

  for (int i = q; i < N; i += Q) {
    const long long start = (long long)i * C;
    Row upper(g + start, C), row(x + start, C);
    const A mu = mean ? mean[i] : 0, r = rstd[i];
    const bool first = i == q;

    A sum = 0, product = 0;
    upper.each([&](int j, A(&u)[CG_V], int p) {
      A scale[CG_V], v[CG_V];
      for (int k = 0; k < CG_V; ++k) scale[k] = 1;
      if (w) load_pack(w + j, scale);
      if constexpr (CG_K > 0)
        for (int k = 0; k < CG_V; ++k) v[k] = row.held[p][k];
      else
        load_pack(row.at + j, v);
      for (int k = 0; k < CG_V; ++k) {
        const A h = (v[k] - mu) * r;
        sum += u[k] * scale[k];
        product += u[k] * scale[k] * h;
        if constexpr (CG_K > 0) {
          dw[p][k] += u[k] * h;
          db[p][k] += u[k];
        } else if (partial) {  // too long a row for registers: this thread's own places of partial are the sums
          dw_at[j + k] = (first ? 0 : dw_at[j + k]) + u[k] * h;
          db_at[j + k] = (first ? 0 : db_at[j + k]) + u[k];
        }
      }
    });
    if (!dx) continue;
    sum = mean ? row_sum(sum) / C : 0;
    product = row_sum(product) / C;
    upper.each([&](int j, A(&u)[CG_V], int p) {
      A scale[CG_V], v[CG_V], out[CG_V];
      for (int k = 0; k < CG_V; ++k) scale[k] = 1;
      if (w) load_pack(w + j, scale);
      if constexpr (CG_K > 0)
        for (int k = 0; k < CG_V; ++k) v[k] = row.held[p][k];
      else
        load_pack(row.at + j, v);
      for (int k = 0; k < CG_V; ++k) out[k] = r * (u[k] * scale[k] - sum - (v[k] - mu) * r * product);
      store_pack(dx + start + j, out);
    });
  }
  if (!partial || (CG_K == 0 && q < N)) return;
#pragma unroll
  for (int p = 0; p < (CG_K ? CG_K : 1); ++p)
    for (int j = Row::first(p); j < C; j += CG_K ? C : (int)blockDim.x * CG_V)  // a walker without rows writes zeros
      store_pack(dw_at + j, dw[p]), store_pack(db_at + j, db[p]);
}

/*
layer_norm_columns        add up the walkers' sums, in a fixed order

math     dw[j] = sum_q partial[0,q,j]      db[j] = sum_q partial[1,q,j]
source   the second stage of layer_norm_backward
shapes   partial: A[2,Q,C]   dw, db: A[C] or null
launch   grid = (ceil(C, 32), 2)   block = (32, 8)   shared = 0
bytes    2 * Q * C * size_A + 2 * C * size_A
flops    2 * Q * C
limits   1 <= Q and 1 <= C and Q * C < 2**31
used by  cudagrad/ops/normalization.py layer_norm, rms_norm
*/
extern "C" __global__ void __launch_bounds__(256) layer_norm_columns(const A* partial, A* dw, A* db, int Q, int C) {
  __shared__ A of_row[8][32];
  A* out = blockIdx.y ? db : dw;
  if (!out) return;
  const int j = blockIdx.x * 32 + threadIdx.x;
  const A* column = partial + (long long)blockIdx.y * Q * C + j;
  A sum = 0;
  if (j < C)
    for (int q = threadIdx.y; q < Q; q += 8) sum += column[(long long)q * C];
  of_row[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y || j >= C) return;
  for (int row = 1; row < 8; ++row) sum += of_row[row][threadIdx.x];
  out[j] = sum;
}
