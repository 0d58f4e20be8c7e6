#include "line.cuh"

/*
cross_entropy_forward     loss of every target, and the gradient by the logits

math     loss[i] = w[t] * ((1 - smoothing) * (l - x[t]) + z * l^2) + smoothing / C * sum_c w[c] * (l - x[c])
         dx[c] = (p[c] * (u * (1 - smoothing + 2 * z * l) + smoothing / C * sum_c w[c]) - u * (1 - smoothing) * (c == t)
         - smoothing / C * w[c]) / total, or 0 where total is 0
         of line i = (n,s) of x: t = target[i], u = w[t], p = softmax(x), l = ln sum_c e^x[c]; w is 1 where null, total
         likewise; 0 where t is ignored, nan where t is no class and not ignored
source   the definition; Szegedy et al. 2015, arXiv:1512.00567, section 7; Chowdhery et al. 2022,
         arXiv:2204.02311, section 5
shapes   x: T[N,C,S]   target: long long[N,S]   w: W[C] or null   total: A[1] or null   loss: A[N,S]
         dx: T[N,C,S] or null
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
bytes    (1 + dx) * N * C * S * size_T + N * S * (8 + size_A) + w * C * size_W + total * size_A
flops    9 * N * C * S
limits   1 <= N and 1 <= C and 1 <= S and C < 2**30 and S < 2**30 and N * ceil(S, 32) < 2**31
used by  cudagrad/ops/classification.py cross_entropy_of_classes
*/
extern "C" __global__ void __launch_bounds__(CG_B, 1)
    cross_entropy_forward(const T* x, const long long* target, const W* w, const A* total, A* loss, T* dx, int N, int C,
                          int S, long long ignored, A smoothing, A z) {
  Line line(N, C, S);
  const long long t = line.there ? target[line.number] : ignored;
  if (t == ignored && line.there) {  // its logits are not read; its threads still come to the sums of other lines
    const A zeros[CG_V] = {};
    for (int k = 0; dx && line.pack(k) < C; ++k) line.store(dx, line.pack(k), zeros);
    if (line.first) loss[line.number] = 0;
    line.there = line.first = false;
  }
  Elements row(line, x, -infinity());
  const bool known = line.there && 0 <= t && t < C;
  const A weight = known ? (w ? (A)w[t] : 1) : no_number();
  const A picked = known && line.first ? (A)x[line.place((int)t)] : 0;
  const A each = smoothing / C, sharp = 1 - smoothing;

  Exponentials e;
  A weights = 0;
  row.each([&](int j, A(&v)[CG_V], int) {
    e.add(v);
    if (w && smoothing > 0)
      for (int k = 0; k < CG_V; ++k) weights += line.inside(j + k) ? (A)w[j + k] : 0;
  });
  e.join();
  weights = w && smoothing > 0 ? line_sum(weights) : C;
  const A log_sum = log(e.sum), l = e.most + log_sum;

  const A scale = total ? (total[0] == 0 ? 0 : 1 / total[0]) : 1;
  const A at_target = weight * sharp * scale, spread = each * scale;
  const A all = (weight * (sharp + 2 * z * l) * scale + weights * spread) / e.sum;
  A away = 0;  // sum_c w[c] * (x[c] - l); a class of weight 0 does not count, were it -inf
  if (dx || smoothing > 0)
    row.back([&](int j, A(&v)[CG_V], int) {
      A out[CG_V];
      for (int k = 0; k < CG_V; ++k) {
        const A d = v[k] - e.most, u = smoothing > 0 && line.inside(j + k) ? (w ? (A)w[j + k] : 1) : 0;
        if (u != 0) away += u * (d - log_sum);
        out[k] = exponential(d) * all - (j + k == t ? at_target : 0) - u * spread;
      }
      if (dx) line.store(dx, j, out);
    });
  if (smoothing > 0) away = line_sum(away);
  const A own = weight == 0 ? 0 : weight * (sharp * (e.most - picked + log_sum) + z * l * l);
  if (line.first) loss[line.number] = own - each * away;
}

/*
cross_entropy_weights     sums of the weights of the targets, of which the mean is taken

math     partial[q] = sum_i w[target[i]] over the i of block q; w is 1 where null; 0 where a target is ignored, nan
         where it is no class
source   the definition
shapes   target: long long[N]   w: W[C] or null   partial: A[Q]
launch   grid = Q   block = 1024   shared = 0
bytes    8 * N + w * N * size_W + Q * size_A
flops    N
limits   1 <= N and 1 <= Q and N < 2**40
used by  cudagrad/ops/classification.py cross_entropy_of_classes
*/
extern "C" __global__ void __launch_bounds__(1024)
    cross_entropy_weights(const long long* target, const W* w, A* partial, long long N, int classes,
                          long long ignored) {
  A sum = 0;
  for (long long i = blockIdx.x * 1024ll + threadIdx.x; i < N; i += gridDim.x * 1024ll) {
    const long long t = target[i];
    if (t != ignored) sum += t < 0 || t >= classes ? no_number() : w ? (A)w[t] : 1;
  }
  sum = row_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/*
cross_entropy_total       sums of losses, over a total of weights

math     out[q] = sum_i v[i] / total over the i of block q; total is 1 where null; nan where total is 0
source   a sum in a fixed order; of Q blocks' sums, one block makes the whole
shapes   v: A[N]   total: A[1] or null   out: A[Q]
launch   grid = Q   block = 1024   shared = 0
bytes    (N + total + Q) * size_A
flops    N
limits   1 <= N and 1 <= Q and N < 2**40
used by  cudagrad/ops/classification.py cross_entropy_of_classes
*/
extern "C" __global__ void __launch_bounds__(1024)
    cross_entropy_total(const A* v, const A* total, A* out, long long N) {
  A sum = 0;
  for (long long i = blockIdx.x * 1024ll + threadIdx.x; i < N; i += gridDim.x * 1024ll) sum += v[i];
  sum = row_sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = !total ? sum : total[0] == 0 ? no_number() : sum / total[0];
}

/*
cross_entropy_scale       multiply the gradient that the forward made, where it is not by 1

math     dx[n,c,s] = dx[n,c,s] * g[(n * S + s) * each]
source   the chain rule; each is 1 for a gradient a target, 0 for one of all
shapes   dx: T[N,C,S] in place   g: T[G]
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
bytes    2 * N * C * S * size_T + G * size_T
flops    N * C * S
limits   1 <= N and 1 <= C and 1 <= S and C < 2**30 and S < 2**30 and N * ceil(S, 32) < 2**31
used by  cudagrad/ops/classification.py cross_entropy_of_classes
*/
extern "C" __global__ void __launch_bounds__(CG_B, 1)
    cross_entropy_scale(T* dx, const T* g, int N, int C, int S, int each) {
  const Line line(N, C, S);
  const A factor = line.there ? (A)g[line.number * each] : 1;
  if (factor == 1) return;
  Elements row(line, dx, 0);
  row.each([&](int j, A(&v)[CG_V], int) {
    for (int k = 0; k < CG_V; ++k) v[k] *= factor;
    line.store(dx, j, v);
  });
}
