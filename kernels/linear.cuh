// What the products of linear_*.cu share: the activations by their number, and where sums go.
#pragma once

#include "pointwise.cuh"

enum Activation { NONE, RELU, GELU, GELU_TANH, SILU };

__device__ inline A activated(A z, int act) {
  if (act == RELU) return largest(z, 0);
  if (act == GELU) return gelu(z);
  if (act == GELU_TANH) return gelu_tanh(z);
  return act == SILU ? silu(z) : z;
}

// The derivative: of relu from its result, of the others from their argument.
__device__ inline A slope(A s, int act) {
  if (act == RELU) return s != 0;
  if (act == GELU) return gelu_slope(s);
  if (act == GELU_TANH) return gelu_tanh_slope(s);
  return act == SILU ? silu_slope(s) : 1;
}

// Where a product's sums go: to y, by way of bias and activation, and what that takes to pre; or, as parts of the sums,
// to `partial`, for linear_total.
struct Ending {
  const T* bias;
  T *y, *pre;
  A* partial;
  int N, act;
  bool packed;  // rows start on 16 bytes

  Ending(const T* bias, T* y, T* pre, A* partial, int N, int act)
      : bias(bias), y(y), pre(pre), partial(partial), N(N), act(act) {
    packed = ((size_t)bias | (size_t)y | (size_t)pre | (size_t)partial) % 16 == 0 && N % (16 / sizeof(T)) == 0;
  }

  template <int n>
  void put(long long at, int j, A (&v)[n]) const {
    if (partial) return store_pack(partial + at, v);
    if (bias) {
      A shift[n];
      load_pack(bias + j, shift);
      for (int k = 0; k < n; ++k) v[k] += shift[k];
    }
    if (pre) store_pack(pre + at, v);
    for (int k = 0; k < n; ++k) v[k] = activated(v[k], act);
    store_pack(y + at, v);
  }
};
