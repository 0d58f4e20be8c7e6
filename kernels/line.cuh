// A line: C elements that lie S apart, of which an array [N,C,S] has N*S. Where S is 1 it is a row, and the threads of
// one threadIdx.y share it; where the letter L is 1 it is a column: neighbours in a warp have neighbouring columns, so
// that their loads join, and the threads of one threadIdx.x share it.
//
// Kernels over lines state __launch_bounds__(CG_B, 1): without the 1 the compiler sometimes spills to have more blocks.
#pragma once

#include "common.cuh"

#ifndef CG_L
#define CG_L 0
#endif

// Which line this thread works on. Where there is none for it, it still comes to every sum: it has no elements.
struct Line {
  long long number, start;  // of N*S; of its first element, which may lie past 2^31
  int C, S;
  bool there, first;  // first: of the line's threads, the one that writes what a line has one of

  Line(int N, int C, int S) : C(C), S(S) {
    if constexpr (CG_L) {
      const int across = (S + (int)blockDim.x - 1) / (int)blockDim.x, n = blockIdx.x / across;
      const int s = blockIdx.x % across * blockDim.x + threadIdx.x;
      number = (long long)n * S + s, start = (long long)n * C * S + s;
      there = s < S, first = there && threadIdx.y == 0;
    } else {
      number = (long long)blockIdx.x * blockDim.y + threadIdx.y, start = number * C;
      there = number < N, first = there && threadIdx.x == 0;
    }
  }

  // Where the thread's k-th pack starts. Packs lie on 16 bytes: where C is no multiple of V, which the letter E says,
  // the first one may start before the line, and the last one end behind it.
  int pack(int k) const {
    if constexpr (CG_L) return k * blockDim.y + threadIdx.y;
    return (k * (int)blockDim.x + (int)threadIdx.x) * CG_V - (CG_E ? (int)(start % CG_V) : 0);
  }

  bool whole(int j) const { return !CG_E || (j >= 0 && j + CG_V <= C); }
  bool inside(int j) const { return !CG_E || (j >= 0 && j < C); }
  long long place(int j) const { return start + (CG_L ? (long long)j * S : j); }

  void load(const T* from, int j, A (&v)[CG_V], A fill) const {
    if (whole(j)) return load_pack(from + place(j), v);
    for (int k = 0; k < CG_V; ++k) v[k] = inside(j + k) ? (A)from[place(j + k)] : fill;
  }

  void store(T* to, int j, const A (&v)[CG_V]) const {
    if (whole(j)) return store_pack(to + place(j), v);
    for (int k = 0; k < CG_V; ++k)
      if (inside(j + k)) to[place(j + k)] = (T)v[k];
  }
};

// One thread's elements of an array's line, in packs; `fill` stands for those outside of the line. They are read once,
// into registers, where K > 0 packs a thread hold them; else anew each time, from the caches.
struct Elements {
  const Line& line;
  const T* from;
  A fill;
  A held[CG_K ? CG_K : 1][CG_V];

  Elements(const Line& line, const T* from, A fill) : line(line), from(from), fill(fill) {
#pragma unroll
    for (int k = 0; k < CG_K; ++k)
      if (has(k)) line.load(from, line.pack(k), held[k], fill);
  }

  bool has(int k) const { return line.there && line.pack(k) < line.C; }

  // use(j, v, k) for each of the packs: elements j to j + CG_V of the line are v; it is the thread's k-th.
  template <class Use>
  void each(Use use) {
    if constexpr (CG_K > 0) {
#pragma unroll
      for (int k = 0; k < CG_K; ++k)
        if (has(k)) use(line.pack(k), held[k], k);
    } else {
      for (int k = 0; has(k); ++k) one(use, k);
    }
  }

  // The same from the last pack to the first: what `each` read last is what the caches still have.
  template <class Use>
  void back(Use use) {
    if constexpr (CG_K > 0) return each(use);
    const int first = line.pack(0), step = line.pack(1) - first;
    if (has(0))
      for (int k = (line.C - 1 - first) / step; k >= 0; --k) one(use, k);
  }

  template <class Use>
  void one(Use use, int k) {
    line.load(from, line.pack(k), held[0], fill);
    use(line.pack(k), held[0], k);
  }
};

// ---- over the threads of a line; all threads of the block must call, all of the line get the result

__device__ inline A* blocks_values() {
  __shared__ A of_thread[1024];
  return of_thread;
}

template <class Two>
__device__ inline A column_combine(A v, Two two) {
  if (blockDim.y == 1) return v;
  A* of_thread = blocks_values() + threadIdx.x;
  of_thread[threadIdx.y * blockDim.x] = v;
  __syncthreads();
  v = of_thread[0];
  for (int y = 1; y < blockDim.y; ++y) v = two(v, of_thread[y * blockDim.x]);
  __syncthreads();  // of_thread may be reused by the next call
  return v;
}

__device__ inline A line_sum(A v) {
  if constexpr (CG_L) return column_combine(v, [](A a, A b) { return a + b; });
  return row_sum(v);
}

__device__ inline A line_max(A v) {
  if constexpr (CG_L) return column_combine(v, [](A a, A b) { return larger(a, b); });
  return row_max(v);
}

// ---- exponentials

// e^v; for results of a half type, which have 11 bits at most, by the special unit: with two exponentials an element
// the exact one would take longer than the memory does.
__device__ inline A exponential(A v) {
  if constexpr (sizeof(T) == 2) return fast_exp(v);
  return exp(v);
}

// The sum of e^(v - most) over what was added, most being the largest of it; in one pass, for v that are read but once.
struct Exponentials {
  A most = -infinity(), sum = 0;

  void add(const A (&v)[CG_V]) {
    A top = v[0];
    for (int k = 1; k < CG_V; ++k) top = larger(v[k], top);
    if (!(top <= most)) sum *= exponential(most - top), most = top;
    if (most == -infinity()) return;  // -inf - -inf is no number
    for (int k = 0; k < CG_V; ++k) sum += exponential(v[k] - most);
  }

  void join() {  // over the threads of the line
    const A top = line_max(most);
    sum = line_sum(most == -infinity() ? 0 : sum * exponential(most - top));
    most = top;
  }
};
