#include "elementwise.cuh"
#include "pointwise.cuh"

// The formula of an element. The numbers are the launch's; what a formula does not name costs nothing.
__device__ inline void formula(const Layout& layout, A x0, A x1, A x2, A x3, A x4, A x5, A x6, A x7, A& y0, A& y1, A& y2,
                               A& y3) {
  const A n0 = layout.number[0], n1 = layout.number[1], n2 = layout.number[2], n3 = layout.number[3];
  const A n4 = layout.number[4], n5 = layout.number[5], n6 = layout.number[6], n7 = layout.number[7];
  CG_FORMULA;
}

// One unit of V elements, of which `count` exist.
template <int V>
__device__ inline void unit(const Layout& layout, const void* const (&x)[MOST_IN], void* const (&y)[MOST_OUT], unsigned i,
                            int count, bool whole) {
  long long at[MOST_IN + MOST_OUT];
  find(layout, i, at);
  A v[MOST_IN][V] = {}, w[MOST_OUT][V] = {};
  read<CG_X0>(x[0], at[0], layout.single & 1, count, whole, v[0]);
  read<CG_X1>(x[1], at[1], layout.single & 2, count, whole, v[1]);
  read<CG_X2>(x[2], at[2], layout.single & 4, count, whole, v[2]);
  read<CG_X3>(x[3], at[3], layout.single & 8, count, whole, v[3]);
  read<CG_X4>(x[4], at[4], layout.single & 16, count, whole, v[4]);
  read<CG_X5>(x[5], at[5], layout.single & 32, count, whole, v[5]);
  read<CG_X6>(x[6], at[6], layout.single & 64, count, whole, v[6]);
  read<CG_X7>(x[7], at[7], layout.single & 128, count, whole, v[7]);
#pragma unroll
  for (int k = 0; k < V; ++k)
    formula(layout, v[0][k], v[1][k], v[2][k], v[3][k], v[4][k], v[5][k], v[6][k], v[7][k], w[0][k], w[1][k], w[2][k],
            w[3][k]);
  write<CG_Y0>(y[0], at[MOST_IN], count, whole, w[0]);
  write<CG_Y1>(y[1], at[MOST_IN + 1], count, whole, w[1]);
  write<CG_Y2>(y[2], at[MOST_IN + 2], count, whole, w[2]);
  write<CG_Y3>(y[3], at[MOST_IN + 3], count, whole, w[3]);
}

/*
elementwise               any formula of numbers, element by element, over arrays of any strides that broadcast

math     y0, y1, ... = CG_FORMULA of x0, x1, ..., n0, n1, ... for each element
source   formulas: cudagrad/backend/kernels/adapters/pointwise.py; the functions that they name: pointwise.cuh
texts    CG_FORMULA: statements that set y0, y1, ...
shapes   x0, x1, x2, x3, x4, x5, x6, x7: void[*] or null   y0, y1, y2, y3: void[*] or null
where    V = 16 // max(size_x0, size_x1, size_x2, size_x3, size_x4, size_x5, size_x6, size_x7, size_y0, size_y1, size_y2, size_y3)
         P = min(max(power2(units), 32), 256)
launch   grid = min(ceil(units, P), 16 * processors)   block = P   shared = 0
bytes    n * (size_x0 + size_x1 + size_x2 + size_x3 + size_x4 + size_x5 + size_x6 + size_x7 + size_y0 + size_y1 + size_y2 + size_y3)
flops    n
limits   1 <= n and 1 <= units < 2**31
used by  cudagrad/backend/kernels/adapters/pointwise.py _forward, _rule, _write
*/
extern "C" __global__ void __launch_bounds__(256) elementwise(const void* x0, const void* x1, const void* x2, const void* x3,
                                                              const void* x4, const void* x5, const void* x6,
                                                              const void* x7, void* y0, void* y1, void* y2, void* y3,
                                                              Layout layout, long long n, unsigned units) {
  const void* const x[] = {x0, x1, x2, x3, x4, x5, x6, x7};
  void* const y[] = {y0, y1, y2, y3};
  unsigned long long addresses = 0;
  for (const void* array : x) addresses |= (unsigned long long)array;
  for (void* array : y) addresses |= (unsigned long long)array;
  const bool aligned = addresses % 16 == 0;  // of the rest packs are read an element at a time
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < units; i += step) {
    if (layout.packed) {
      const long long left = n - (long long)i * CG_V;
      unit<CG_V>(layout, x, y, i, left < CG_V ? left : CG_V, aligned && left >= CG_V);
    } else {
      unit<1>(layout, x, y, i, 1, true);
    }
  }
}
