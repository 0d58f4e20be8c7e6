#include "columns.cuh"
#include "common.cuh"

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

/*
layer_norm_forward        normalise each row of x, or of x + residual, then scale and shift it

math     s[i,j]  = x[i,j] + residual[i,j], or x[i,j] where there is none
         y[i,j]  = (s[i,j] - mean[i]) * rstd[i] * w[j] + b[j]
         mean[i] = sum_j s[i,j] / C, or 0 where centre is 0 (rms_norm)
         rstd[i] = 1 / sqrt(sum_j (s[i,j] - mean[i])^2 / C + eps)
source   Ba, Kiros, Hinton 2016, arXiv:1607.06450, equations 3 and 4; Zhang, Sennrich 2019, arXiv:1910.07467, equation 4
shapes   x, y: T[N,C]   residual, s: T[N,C] or null   w, b: W[C] or null   mean: A[N] or null   rstd: A[N]
where    V = 16 // size_T if aligned and C * size_T % 16 == 0 else 1
         P = min(max(power2(ceil(C, 4 * V)), 32), 1024)
         K = power2(ceil(C, V * P)) if ceil(C, V * P) <= (4 if V > 1 else 16) else 0
         E = residual
         R = 4 if P == 32 else 1
         B = P * R
launch   grid = ceil(N, R)   block = (P, R)   shared = 0
bytes    (2 + residual + s) * N * C * size_T + (w + b) * C * size_W + (1 + mean) * N * size_A
flops    (8 + residual) * N * C
limits   1 <= N and 1 <= C and N < 2**30 and C < 2**30 and residual == s
used by  cudagrad/ops/normalization.py layer_norm, rms_norm
*/
extern "C" __global__ void __launch_bounds__(CG_B) layer_norm_forward(const T* x, const T* residual, const W* w,
                                                                       const W* b, T* s, T* y, A* mean, A* rstd, int N,
                                                                       int C, A eps, int centre) {
  const int i = blockIdx.x * blockDim.y + threadIdx.y;
  if (i >= N) return;  // a whole warp at once: only rows of one warp share a block
  const long long start = (long long)i * C;  // N*C may pass 2^31
  Row row(x + start, C);
  if constexpr (CG_E) row.add(residual + start, s + start);

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
    if constexpr (CG_E && CG_K > 0) store_pack(s + start + j, v);  // behind all loads, which may not pass a store
    store_pack(y + start + j, out);
  });
  if (threadIdx.x == 0) {
    if (mean) mean[i] = mu;
    rstd[i] = r;
  }
}

// Blocks that live on a multiprocessor at a time, as many as the launch has for it: of four warps with a row each, of the
// shortest rows eight, of the longest two, whose threads may have all the registers there are; or 1024 threads of 64.
#define CG_LIVING (!CG_L ? 1024 / CG_B : CG_K > 4 ? 2 : 8 / (CG_K ? CG_K : 1))

/*
layer_norm_backward       gradient by x, and by w and b the sums over each walker's rows

math     h[i,j]  = (x[i,j] - mean[i]) * rstd[i]      d[i,j] = g[i,j] * w[j]
         dx[i,j] = rstd[i] * (d[i,j] - sum_j d[i,j] / C - h[i,j] * sum_j d[i,j] * h[i,j] / C) + direct[i,j], the middle
         term only where mean is given, the last only where direct is
         partial[0,q,j] = sum_i g[i,j] * h[i,j],  partial[1,q,j] = sum_i g[i,j],  over the rows i of block q, where the
         row fits into registers (K > 0); longer ones leave these sums to layer_norm_sums
source   the derivative of layer_norm_forward; x is its s where it has a residual, direct the gradient that came to s
shapes   g, x: T[N,C]   direct: T[N,C] or null   w: W[C] or null   mean: A[N] or null   rstd: A[N]   dx: T[N,C] or null
         partial: A[2,Q,C] or null
where    V = 16 // size_T if aligned and C * size_T % 16 == 0 else 1
         L = C * size_A <= (4096 if V > 1 else 2048)
         P = 32 if L else min(power2(ceil(C, max(V, 16 // size_A))), 1024)
         K = power2(ceil(C, V * P)) if ceil(C, V * P) * V * size_A <= (128 if L else 32 if V > 1 else 16) else 0
         E = direct
         R = 4 if L else 1
         B = P * R
         Q = min(ceil(N, R), processors * (max(8 // K, 2) if L else 1024 // B))
launch   grid = Q   block = (P, R)   shared = 0
bytes    (2 + direct + dx) * N * C * size_T + w * C * size_W + (1 + mean) * N * size_A + partial * 2 * Q * C * size_A
flops    16 * N * C
limits   1 <= N and 1 <= C and N < 2**30 and C < 2**30
used by  cudagrad/ops/normalization.py layer_norm, rms_norm
*/
extern "C" __global__ void __launch_bounds__(CG_B, CG_LIVING) layer_norm_backward(const T* g, const T* x,
                                                                                   const T* direct, const W* w,
                                                                                   const A* mean, const A* rstd, T* dx,
                                                                                   A* partial, int N, int C) {
  A dw[CG_K ? CG_K : 1][CG_V] = {}, db[CG_K ? CG_K : 1][CG_V] = {};

  for (int i = blockIdx.x * blockDim.y + threadIdx.y; i < N; i += gridDim.x * blockDim.y) {
    const long long start = (long long)i * C;
    Row upper(g + start, C), row(x + start, C);
    const A mu = mean ? mean[i] : 0, r = rstd[i];

    // In place: u by w, and the row's pack of elements j and on, its p-th, made h.
    auto scale = [&](int j, A(&u)[CG_V]) {
      A by[CG_V];
      if (w) load_pack(w + j, by);
      if (w)
        for (int k = 0; k < CG_V; ++k) u[k] *= by[k];
    };
    auto standardise = [&](int j, A(&h)[CG_V]) {
      if constexpr (CG_K == 0) load_pack(row.at + j, h);
      for (int k = 0; k < CG_V; ++k) h[k] = (h[k] - mu) * r;
    };

    A sum = 0, product = 0;
    upper.each([&](int j, A(&u)[CG_V], int p) {
      A(&h)[CG_V] = row.held[CG_K ? p : 0], more[CG_V] = {};
      if constexpr (CG_E && CG_K > 0) load_pack(direct + start + j, more);
      standardise(j, h);
      if constexpr (CG_K > 0)
        for (int k = 0; k < CG_V; ++k) dw[p][k] += u[k] * h[k], db[p][k] += u[k];
      scale(j, u);
      for (int k = 0; k < CG_V; ++k) {
        sum += u[k];
        product += u[k] * h[k];
        u[k] = r * u[k] + more[k];  // all of dx that needs no sum stays in the place of g
      }
    });
    if (!dx) continue;
    row_sums(sum, product);
    sum = mean ? sum / C : 0;
    product /= C;
    upper.each([&](int j, A(&u)[CG_V], int p) {
      A(&h)[CG_V] = row.held[CG_K ? p : 0], more[CG_V] = {};
      if constexpr (CG_K == 0) {
        if constexpr (CG_E) load_pack(direct + start + j, more);
        standardise(j, h);
        scale(j, u);
        for (int k = 0; k < CG_V; ++k) u[k] = r * u[k] + more[k];
      }
      A out[CG_V];
      for (int k = 0; k < CG_V; ++k) out[k] = u[k] - r * (sum + h[k] * product);
      store_pack(dx + start + j, out);
    });
  }
  if (!partial || CG_K == 0) return;
  A* dw_at = partial + (long long)blockIdx.x * C;
  A* db_at = dw_at + (long long)gridDim.x * C;
#pragma unroll
  for (int p = 0; p < CG_K; ++p) {
    if constexpr (CG_L) {  // four walkers a block
      const int tile = p * 32 * CG_V;
      store_columns(dw[p], dw_at + tile, C - tile);
      store_columns(db[p], db_at + tile, C - tile);
    } else {
      store_sums(dw[p], dw_at, Row::first(p), C);
      store_sums(db[p], db_at, Row::first(p), C);
    }
  }
}

/*
layer_norm_sums           gradients by w and b of rows too long for registers: the sums over each block's rows

math     partial[0,q,j] = sum_i g[i,j] * (x[i,j] - mean[i]) * rstd[i],  partial[1,q,j] = sum_i g[i,j],  over the rows
         i = 8 q + y, 8 q + y + 8 Q, ... for y = 0 to 7
source   the derivative of layer_norm_forward
shapes   g, x: T[N,C]   mean: A[N] or null   rstd: A[N]   partial: A[2,Q,C]
where    V = 16 // size_T if aligned and C * size_T % 16 == 0 else 1
         Q = min(ceil(N, 8), max(4 * processors // ceil(C, 32 * V), 1))
launch   grid = (ceil(C, 32 * V), Q)   block = (32, 8)   shared = 0
bytes    2 * N * C * size_T + (1 + mean) * N * size_A + 2 * Q * C * size_A
flops    6 * N * C
limits   1 <= N and 1 <= C and N < 2**30 and C < 2**30
used by  cudagrad/ops/normalization.py layer_norm, rms_norm
*/
extern "C" __global__ void __launch_bounds__(256) layer_norm_sums(const T* g, const T* x, const A* mean, const A* rstd,
                                                                  A* partial, int N, int C) {
  const int tile = blockIdx.x * 32 * CG_V, j = tile + threadIdx.x * CG_V;
  A dw[CG_V] = {}, db[CG_V] = {};
  if (j < C) {
#pragma unroll 4
    for (int i = blockIdx.y * 8 + threadIdx.y; i < N; i += gridDim.y * 8) {
      const long long at = (long long)i * C + j;
      const A mu = mean ? mean[i] : 0, r = rstd[i];
      A u[CG_V], v[CG_V];
      load_pack(g + at, u);
      load_pack(x + at, v);
      for (int k = 0; k < CG_V; ++k) dw[k] += u[k] * ((v[k] - mu) * r), db[k] += u[k];
    }
  }
  A* to = partial + (long long)blockIdx.y * C + tile;
  store_columns(dw, to, C - tile);
  store_columns(db, to + (long long)gridDim.y * C, C - tile);
}
