// The functions that the formulas of elementwise.cu name. That of `f` is the op's own text in A; `f_slope` is its derivative.
#pragma once

#include "common.cuh"

__device__ inline A largest(A x, A y) { return larger(x, y); }
__device__ inline A smallest(A x, A y) { return x < y || x != x ? x : y; }  // a nan wins, as in NumPy

__device__ inline A sigmoid(A x) { return 1 / (1 + exp(-x)); }
__device__ inline A silu(A x) { return x / (1 + exp(-x)); }
__device__ inline A silu_slope(A x) {
  const A s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

// log(1 + e^x) without overflow.
__device__ inline A softplus(A x) { return log1p(exp(-fabs(x))) + largest(x, 0); }
__device__ inline A softplus(A x, A beta, A threshold) { return x * beta > threshold ? x : softplus(x * beta) / beta; }
__device__ inline A softplus_slope(A x, A beta, A threshold) { return x * beta > threshold ? 1 : sigmoid(x * beta); }

__device__ inline A mish(A x) { return x * tanh(softplus(x)); }
__device__ inline A mish_slope(A x) {
  const A t = tanh(softplus(x));
  return t + x * sigmoid(x) * (1 - t * t);
}

__device__ inline A elu(A x, A alpha, A scale, A input_scale) {
  return x <= 0 ? expm1(x * input_scale) * (alpha * scale) : x * scale;
}
__device__ inline A elu_slope(A x, A alpha, A scale, A input_scale) {
  return x <= 0 ? alpha * scale * input_scale * exp(x * input_scale) : scale;
}

__device__ inline A gelu(A x) { return x * ((A)0.5 * (1 + erf(x * (A)0.70710678118654752))); }
__device__ inline A gelu_slope(A x) {
  const A below = (A)0.5 * (1 + erf(x * (A)0.70710678118654752)), density = (A)0.39894228040143268 * exp((A)-0.5 * x * x);
  return below + x * density;
}

// The tanh of gelu's approximation: sqrt(2 / pi) * (x + 0.044715 * x^3).
__device__ inline A gelu_bend(A x) { return tanh(x * ((A)0.79788456080286536 + (A)0.035677408136300125 * (x * x))); }
__device__ inline A gelu_tanh(A x) { return (A)0.5 * x * (1 + gelu_bend(x)); }
__device__ inline A gelu_tanh_slope(A x) {
  const A t = gelu_bend(x), inner = (A)0.79788456080286536 + (A)0.10703222440890037 * (x * x);
  return (A)0.5 * (1 + t) + (A)0.5 * x * (1 - t * t) * inner;
}

// clamp: the upper bound wins where they cross; a nan wins over both.
__device__ inline A bounded(A x, A low, A high) { return smallest(largest(x, low), high); }
