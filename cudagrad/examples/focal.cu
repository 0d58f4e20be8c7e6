#include "common.cuh"

// ln p, as exact where p is near 1 as where it is near 0.
__device__ inline A log_sigmoid(A s) { return (s < 0 ? s : 0) - log1p(exp(s < 0 ? s : -s)); }

/*
focal_forward             focal loss of each element, from its logit

math     loss[i] = -w * (1 - p)^gamma * ln p,  p = 1 / (1 + e^-s)
         s = x[i], w = alpha where target[i] is 1; s = -x[i], w = 1 - alpha where it is 0
source   Lin, Goyal, Girshick, He & Dollar 2017, arXiv:1708.02002, equation 5
shapes   x, target, loss: T[N]
launch   grid = ceil(N, 256)   block = 256   shared = 0
bytes    3 * N * size_T
flops    12 * N
limits   N < 2**31
used by  cudagrad/examples/own_kernels.py focal
*/
extern "C" __global__ void focal_forward(const T* x, const T* target, T* loss, float gamma, float alpha, int N) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  const bool hit = (A)target[i] > (A)0.5;
  const A s = hit ? (A)x[i] : -(A)x[i], w = hit ? alpha : 1 - alpha;
  loss[i] = (T)(-w * exp(gamma * log_sigmoid(-s)) * log_sigmoid(s));
}

/*
focal_backward            gradient by the logits of focal_forward

math     dx[i] = +- w * (1 - p)^gamma * (gamma * p * ln p - (1 - p)) * g[i],  - where target[i] is 0
source   the derivative of focal_forward
shapes   g, x, target, dx: T[N]
launch   grid = ceil(N, 256)   block = 256   shared = 0
bytes    4 * N * size_T
flops    16 * N
limits   N < 2**31
used by  cudagrad/examples/own_kernels.py focal
*/
extern "C" __global__ void focal_backward(const T* g, const T* x, const T* target, T* dx, float gamma, float alpha, int N) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= N) return;
  const bool hit = (A)target[i] > (A)0.5;
  const A s = hit ? (A)x[i] : -(A)x[i], w = hit ? alpha : 1 - alpha;
  const A log_p = log_sigmoid(s), log_q = log_sigmoid(-s);
  const A slope = w * exp(gamma * log_q) * (gamma * exp(log_p) * log_p - exp(log_q));
  dx[i] = (T)((hit ? slope : -slope) * (A)g[i]);
}
