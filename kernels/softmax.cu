#include "common.cuh"

/*
softmax_forward           exponentials of each row over their sum, or the logarithm of that

math     y[i,j] = e^(x[i,j] - m[i]) / s[i]           where log is 0
         y[i,j] = x[i,j] - m[i] - ln s[i]            where log is 1
         m[i] = max_j x[i,j],  s[i] = sum_j e^(x[i,j] - m[i])
source   the definition, shifted by the maximum against overflow
shapes   x, y: T[N,C]
where    V = 16 // size_T if aligned and C * size_T % 16 == 0 else 1
         P = min(max(power2(ceil(C, 4 * V)), 32), 1024)
         K = power2(ceil(C, V * P)) if ceil(C, V * P) <= (4 if V > 1 else 16) else 0
         R = 4 if P == 32 else 1
         B = P * R
launch   grid = ceil(N, R)   block = (P, R)   shared = 0
bytes    2 * N * C * size_T
flops    6 * N * C
limits   1 <= N and 1 <= C and N < 2**31 and C < 2**30
used by  cudagrad/ops/softmax.py softmax, log_softmax
*/
extern "C" __global__ void __launch_bounds__(CG_B) softmax_forward(const T* x, T* y, int N, int C, int log) {
  const int i = blockIdx.x * blockDim.y + threadIdx.y;
  if (i >= N) return;  // a whole warp at once: only rows of one warp share a block
  const long long start = (long long)i * C;  // N*C may pass 2^31
  Row row(x + start, C);

  A most = -infinity();
  row.each([&](int, A(&v)[CG_V], int) {
    for (int k = 0; k < CG_V; ++k) most = larger(v[k], most);
  });
  most = row_max(most);

  A sum = 0;
  row.each([&](int, A(&v)[CG_V], int) {
    for (int k = 0; k < CG_V; ++k) sum += exp(v[k] - most);
  });
  sum = row_sum(sum);

  const A shift = log ? most + ::log(sum) : most, scale = 1 / sum;
  row.each([&](int j, A(&v)[CG_V], int) {
    A out[CG_V];
    for (int k = 0; k < CG_V; ++k) out[k] = log ? v[k] - shift : exp(v[k] - most) * scale;
    store_pack(y + start + j, out);
  });
}

/*
softmax_backward          gradient by the rows of softmax or log_softmax, from its output

math     dx[i,j] = (g[i,j] - sum_j g[i,j] * y[i,j]) * y[i,j]    where log is 0
         dx[i,j] = g[i,j] - e^y[i,j] * sum_j g[i,j]             where log is 1
source   the derivative of softmax_forward
shapes   g, y, dx: T[N,C]
where    V = 16 // size_T if aligned and C * size_T % 16 == 0 else 1
         P = min(max(power2(ceil(C, 2 * V)), 32), 1024)
         K = power2(ceil(C, V * P)) if ceil(C, V * P) * V * size_A <= (64 if V > 1 else 32) else 0
         R = 4 if P == 32 else 1
         B = P * R
launch   grid = ceil(N, R)   block = (P, R)   shared = 0
bytes    3 * N * C * size_T
flops    5 * N * C
limits   1 <= N and 1 <= C and N < 2**31 and C < 2**30
used by  cudagrad/ops/softmax.py softmax, log_softmax
*/
extern "C" __global__ void __launch_bounds__(CG_B) softmax_backward(const T* g, const T* y, T* dx, int N, int C, int log) {
  const int i = blockIdx.x * blockDim.y + threadIdx.y;
  if (i >= N) return;
  const long long start = (long long)i * C;
  Row upper(g + start, C), row(y + start, C);

  auto with_row = [&](auto use) {  // use(j, u, v): packs of g and y
    upper.each([&](int j, A(&u)[CG_V], int p) {
      if constexpr (CG_K > 0) {
        use(j, u, row.held[p]);
      } else {
        A v[CG_V];
        load_pack(row.at + j, v);
        use(j, u, v);
      }
    });
  };

  A sum = 0;
  with_row([&](int, A(&u)[CG_V], A(&v)[CG_V]) {
    for (int k = 0; k < CG_V; ++k) sum += log ? u[k] : u[k] * v[k];
  });
  sum = row_sum(sum);
  with_row([&](int j, A(&u)[CG_V], A(&v)[CG_V]) {
    A out[CG_V];
    for (int k = 0; k < CG_V; ++k) out[k] = log ? u[k] - exp(v[k]) * sum : (u[k] - sum) * v[k];
    store_pack(dx + start + j, out);
  });
}
