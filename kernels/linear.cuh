// What the products of linear_*.cu share: the activations by their number, and where sums go.
#pragma once

#include "common.cuh"

enum Activation { NONE, RELU, GELU, GELU_TANH, SILU };

__device__ inline A normal(A z) { return (A)0.5 * (1 + erf(z * (A)0.70710678118654752440)); }  // distribution function

__device__ inline A tanh_of(A z) { return tanh(z * ((A)0.79788456080286535588 + (A)0.03567740813636141 * z * z)); }

__device__ inline A activated(A z, int act) {
  if (act == RELU) return z < 0 ? 0 : z;  // a nan stays one
  if (act == GELU) return z * normal(z);
  if (act == GELU_TANH) return (A)0.5 * z * (1 + tanh_of(z));
  return act == SILU ? z / (1 + exp(-z)) : z;
}

// The derivative: of relu from its result, of the others from their argument.
__device__ inline A slope(A s, int act) {
  if (act == RELU) return s != 0;
  if (act == GELU) return normal(s) + s * ((A)0.39894228040143267794 * exp((A)-0.5 * s * s));
  if (act == GELU_TANH) {
    const A t = tanh_of(s), inner = (A)0.79788456080286535588 + (A)0.10703222440908423 * s * s;
    return (A)0.5 * (1 + t) * (1 + (1 - t) * s * inner);
  }
  if (act != SILU) return 1;
  const A q = 1 / (1 + exp(-s));
  return q * (1 + s * (1 - q));
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
