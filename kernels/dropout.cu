#include "common.cuh"
#include "philox.cuh"

/*
dropped                   multiply by scale, or by 0 with probability p; no mask is stored

math     y[i] = x[i] * (number i / per of the call (seed, offset) >= limit ? scale : 0), limit = p * 2^16 rounded
source   Srivastava et al. 2014, Dropout, section 4; the numbers are those of cudagrad/backend/philox.py
shapes   x, y: T[M]
where    V = 16 // size_T if aligned and per == 1 and M * size_T % 16 == 0 else 1
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
  const unsigned long long first = i / per;  // a pack lies in one counter: V divides 8, and per is 1 where V is not
  const Bits bits = philox(seed, offset, first / 8);
  A v[CG_V];
  load_pack(x + i, v);
#pragma unroll
  for (int k = 0; k < CG_V; ++k) v[k] *= kept(bits, first + k, limit) ? scale : (A)0;  // 0 * inf is nan, as elsewhere
  store_pack(y + i, v);
}
