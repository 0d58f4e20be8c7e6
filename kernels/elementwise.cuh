// Element by element over arrays of any layout: where an element lies, and packs of elements read and written.
#pragma once

#include "common.cuh"

constexpr int MOST_DIMS = 8, MOST_IN = 8, MOST_OUT = 4, MOST_NUMBERS = 8;

// How the arrays of a launch lie, as cudagrad/backend/kernels/layout.py packs it. A unit is one element, or where `packed`
// a pack of CG_V elements, which follow one another in every array. Dim 0 is the innermost.
struct Layout {
  double number[MOST_NUMBERS];  // n0, n1, ... of the formula
  int dims, packed;
  unsigned single;  // a bit for each input whose elements of a pack are one and the same
  int apart;        // keeps the size a multiple of 8
  unsigned size[MOST_DIMS], multiplier[MOST_DIMS], shift[MOST_DIMS];  // of each dim, counted in units
  int stride[MOST_DIMS][MOST_IN + MOST_OUT];                          // in elements, from one unit to the next
};

// number / size of dim d without a division, for numbers below 2^31. Granlund, Montgomery 1994, section 4.
__device__ inline unsigned divided(const Layout& layout, int d, unsigned number) {
  return (__umulhi(number, layout.multiplier[d]) + number) >> layout.shift[d];
}

// The place of a unit, in elements, in each array.
__device__ inline void find(const Layout& layout, unsigned unit, long long (&at)[MOST_IN + MOST_OUT]) {
#pragma unroll
  for (int a = 0; a < MOST_IN + MOST_OUT; ++a) at[a] = 0;
#pragma unroll
  for (int d = 0; d < MOST_DIMS; ++d) {
    if (d == layout.dims) break;
    const unsigned rest = d + 1 < layout.dims ? divided(layout, d, unit) : 0;  // of the outermost nothing is left
    const int place = unit - rest * layout.size[d];
    unit = rest;
#pragma unroll
    for (int a = 0; a < MOST_IN + MOST_OUT; ++a) at[a] += (long long)place * layout.stride[d][a];
  }
}

// ---- elements read and written

template <class S>
constexpr bool is_void = false;
template <>
constexpr bool is_void<void> = true;

// `count` elements, at most V, from element `at` of an array of S; `whole`: all V, which start on 16 bytes. S is void where
// there is no array.
template <class S, int V>
__device__ inline void read(const void* array, long long at, bool single, int count, bool whole, A (&v)[V]) {
  if constexpr (!is_void<S>) {
    const S* from = (const S*)array + at;
    if (V == 1 || single || !whole) {
      v[0] = wide(from[0]);
#pragma unroll
      for (int k = 1; k < V; ++k) v[k] = single || k >= count ? v[0] : wide(from[k]);
    } else {
      load_pack(from, v);
    }
  }
}

template <class S, int V>
__device__ inline void write(void* array, long long at, int count, bool whole, const A (&v)[V]) {
  if constexpr (!is_void<S>) {
    S* to = (S*)array + at;
    if (V == 1 || !whole) {
#pragma unroll
      for (int k = 0; k < V; ++k)
        if (k < count) to[k] = (S)v[k];
    } else {
      store_pack(to, v);
    }
  }
}
