#include "line.cuh"

/*
softmax_forward           exponentials of each line over their sum, times g, or the logarithm of that

math     y[n,c,s] = g[n,s] * e^(x[n,c,s] - m[n,s]) / t[n,s]        where log is 0; g is 1 where it is null
         y[n,c,s] = x[n,c,s] - m[n,s] - ln t[n,s]                  where log is 1
         m[n,s] = max_c x[n,c,s],  t[n,s] = sum_c e^(x[n,c,s] - m[n,s]); with g, of which logsumexp's gradient is made,
         t is 1 where m is infinity: 0 beside what is infinite
source   the definition, shifted by the maximum against overflow
shapes   x, y: T[N,C,S]   g: T[N,S] or null
where    L = 1 if S > 1 else 0
         V = 16 // size_T if aligned and not L and (C * size_T % 16 == 0 or C >= 512) else 1
         E = 1 if C % V else 0
         D = ceil(C, V) + E
         Q = min(power2(ceil(C, 16)), 128 // size_A)
         P = max(128 // Q, 32) if L else min(max(power2(ceil(D, 4)), 32), 4096 // size_A)
         R = Q if L else 4 if P == 32 else 1
         H = ceil(C, R) if L else ceil(D, P)
         K = power2(H) if H <= (4 if V > 1 else 64 // size_A) else 0
         B = P * R
launch   grid = N * ceil(S, P) if L else ceil(N, R)   block = (P, R)   shared = 0
bytes    2 * N * C * S * size_T + g * N * S * size_T
flops    6 * N * C * S
limits   1 <= N and 1 <= C and 1 <= S and C < 2**30 and S < 2**30 and N * ceil(S, 32) < 2**31
used by  cudagrad/ops/softmax.py softmax, log_softmax
*/
extern "C" __global__ void __launch_bounds__(CG_B, 1)
    softmax_forward(const T* x, const T* g, T* y, int N, int C, int S, int log) {
  const Line line(N, C, S);
  Elements row(line, x, -infinity());
  Exponentials e;
  row.each([&](int, A(&v)[CG_V], int) { e.add(v); });
  e.join();

  const A log_sum = ::log(e.sum), total = g && e.most == infinity() ? 1 : e.sum;
  const A scale = (g && line.there ? (A)g[line.number] : 1) / total;
  row.back([&](int j, A(&v)[CG_V], int) {
    A out[CG_V];
    for (int k = 0; k < CG_V; ++k) out[k] = log ? v[k] - e.most - log_sum : exponential(v[k] - e.most) * scale;
    line.store(y, j, out);
  });
}

/*
softmax_backward          gradient by the lines of softmax or log_softmax, from its output

math     dx[n,c,s] = (g[n,c,s] - sum_c g[n,c,s] * y[n,c,s]) * y[n,c,s]    where log is 0
         dx[n,c,s] = g[n,c,s] - e^y[n,c,s] * sum_c g[n,c,s]               where log is 1
source   the derivative of softmax_forward
shapes   g, y, dx: T[N,C,S]
where    L = 1 if S > 1 else 0
         V = 16 // size_T if aligned and not L and (C * size_T % 16 == 0 or C >= 512) else 1
         E = 1 if C % V else 0
         D = ceil(C, V) + E
         Q = min(power2(ceil(C, 8)), 32)
         P = max(128 // Q, 32) if L else min(max(power2(ceil(D, 2)), 32), 1024)
         R = Q if L else 4 if P == 32 else 1
         H = ceil(C, R) if L else ceil(D, P)
         K = power2(H) if H * V * size_A <= (64 if V > 1 else 32) else 0
         B = P * R
launch   grid = N * ceil(S, P) if L else ceil(N, R)   block = (P, R)   shared = 0
bytes    3 * N * C * S * size_T
flops    5 * N * C * S
limits   1 <= N and 1 <= C and 1 <= S and C < 2**30 and S < 2**30 and N * ceil(S, 32) < 2**31
used by  cudagrad/ops/softmax.py softmax, log_softmax
*/
extern "C" __global__ void __launch_bounds__(CG_B, 1)
    softmax_backward(const T* g, const T* y, T* dx, int N, int C, int S, int log) {
  const Line line(N, C, S);
  Elements upper(line, g, 0), row(line, y, 0);

  auto use_of = [&](auto use) {  // use(j, u, v): packs of g and y
    return [&, use](int j, A(&u)[CG_V], int p) {
      A v[CG_V];
      unpack(CG_K > 0 ? row.held[CG_K ? p : 0] : line.load(y, j, 0), v);
      use(j, u, v);
    };
  };

  A sum = 0;
  upper.each(use_of([&](int, A(&u)[CG_V], A(&v)[CG_V]) {
    for (int k = 0; k < CG_V; ++k) sum += log ? u[k] : u[k] * v[k];
  }));
  sum = line_sum(sum);
  upper.back(use_of([&](int j, A(&u)[CG_V], A(&v)[CG_V]) {
    A out[CG_V];
    for (int k = 0; k < CG_V; ++k) out[k] = log ? u[k] - exponential(v[k]) * sum : (u[k] - sum) * v[k];
    line.store(dx, j, out);
  }));
}

/*
logsumexp_forward         logarithm of the sum of exponentials of each line

math     y[n,s] = m[n,s] + ln sum_c e^(x[n,c,s] - m[n,s]),  m[n,s] = max_c x[n,c,s];  m[n,s] where that is infinite
source   the definition, shifted by the maximum against overflow
shapes   x: T[N,C,S]   y: T[N,S]
where    L = 1 if S > 1 else 0
         V = 16 // size_T if aligned and not L and (C * size_T % 16 == 0 or C >= 512) else 1
         E = 1 if C % V else 0
         D = ceil(C, V) + E
         Q = min(power2(ceil(C, 16)), 32)
         P = max(128 // Q, 32) if L else min(max(power2(ceil(D, 4)), 32), 1024)
         R = Q if L else 4 if P == 32 else 1
         K = 0
         B = P * R
launch   grid = N * ceil(S, P) if L else ceil(N, R)   block = (P, R)   shared = 0
bytes    N * C * S * size_T + N * S * size_T
flops    4 * N * C * S
limits   1 <= N and 1 <= C and 1 <= S and C < 2**30 and S < 2**30 and N * ceil(S, 32) < 2**31
used by  cudagrad/ops/reduction.py logsumexp
*/
extern "C" __global__ void __launch_bounds__(CG_B, 1) logsumexp_forward(const T* x, T* y, int N, int C, int S) {
  const Line line(N, C, S);
  Elements row(line, x, -infinity());
  Exponentials e;
  row.each([&](int, A(&v)[CG_V], int) { e.add(v); });
  e.join();
  if (line.first) y[line.number] = (T)(e.most - e.most == 0 ? e.most + log(e.sum) : e.most);
}
