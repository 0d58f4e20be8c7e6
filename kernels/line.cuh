// A line: C elements that lie S apart, of which an array [N,C,S] has N*S. Where S is 1 it is a row, and the threads of
// one threadIdx.y share it; where the letter L is 1 it is a column: neighbours in a warp have neighbouring columns, so
// that their loads join, and the threads of one threadIdx.x share it.
//
// Kernels over lines state __launch_bounds__(CG_B, 1): without the 1 the compiler sometimes spills to have more blocks.
#pragma once

#include "common.cuh"

// A pack as it lies in memory. It is made numbers where it is used: were that in the branch of its load, as it is where
// rows are ragged, no next load would start before this one has come.
using Pack = Piece<T, CG_V>;

__device__ inline void unpack(const Pack& pack, A (&v)[CG_V]) {
  for (int k = 0; k < CG_V; ++k) v[k] = wide(pack.part[k]);
}

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

  Pack load(const T* from, int j, A fill) const {
    Pack pack;
    if (whole(j))
      pack.whole = load_piece<Pack::bytes>(from + place(j));
    else
      for (int k = 0; k < CG_V; ++k) pack.part[k] = inside(j + k) ? from[place(j + k)] : (T)fill;
    return pack;
  }

  void store(T* to, int j, const A (&v)[CG_V]) const {
    if (whole(j)) return store_pack(to + place(j), v);
    for (int k = 0; k < CG_V; ++k)
      if (inside(j + k)) to[place(j + k)] = (T)v[k];
  }
};

// One thread's elements of an array's line, in packs; `fill` stands for those outside of the line. They are read once,
// into registers, where K > 0 packs a thread hold them; else anew each time, from the caches, AHEAD packs at once.
struct Elements {
  static constexpr int AHEAD = CG_ARCH >= 800 ? 4 : 2;  // what sm_75 has registers for
  const Line& line;
  const T* from;
  A fill;
  Pack held[CG_K ? CG_K : AHEAD];

  Elements(const Line& line, const T* from, A fill) : line(line), from(from), fill(fill) {
    if constexpr (CG_K > 0) fetch(0, 1);
  }

  bool has(int k) const { return line.there && line.pack(k) < line.C; }

  // Packs `first`, `first` + step, ... that there are, into registers.
  void fetch(int first, int step) {
#pragma unroll
    for (int i = 0; i < (CG_K ? CG_K : AHEAD); ++i) {
      const int k = first + i * step;
      if (k >= 0 && has(k)) held[i] = line.load(from, line.pack(k), fill);
    }
  }

  template <class Use>
  void give(int first, int step, Use use) {
#pragma unroll
    for (int i = 0; i < (CG_K ? CG_K : AHEAD); ++i) {
      const int k = first + i * step;
      if (k < 0 || !has(k)) continue;
      A v[CG_V];
      unpack(held[i], v);
      use(line.pack(k), v, k);
    }
  }

  // use(j, v, k) for each of the packs: elements j to j + CG_V of the line are v; it is the thread's k-th.
  template <class Use>
  void each(Use use) {
    if constexpr (CG_K > 0)
      give(0, 1, use);
    else
      for (int k = 0; has(k); k += AHEAD) fetch(k, 1), give(k, 1, use);
  }

  // The same from the last pack to the first: what `each` read last is what the caches still have.
  template <class Use>
  void back(Use use) {
    if constexpr (CG_K > 0) return give(0, 1, use);
    const int first = line.pack(0), step = line.pack(1) - first;
    if (has(0))
      for (int k = (line.C - 1 - first) / step; k >= 0; k -= AHEAD) fetch(k, -1), give(k, -1, use);
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
    if constexpr (CG_L) {
      scale_to(line_max(most));
      sum = line_sum(sum);
      return;
    }
    join_lanes();
    if (blockDim.x == 32) return;
    A* of_warp = warps_values();
    const int lane = threadIdx.x % 32, warps = blockDim.x / 32;
    if (lane == 0) of_warp[threadIdx.x / 32] = most, of_warp[32 + threadIdx.x / 32] = sum;
    __syncthreads();
    most = lane < warps ? of_warp[lane] : -infinity(), sum = lane < warps ? of_warp[32 + lane] : 0;
    join_lanes();
    __syncthreads();  // of_warp may be reused by the next call
  }

  void join_lanes() {
    scale_to(warp_max(most));
    sum = warp_sum(sum);
  }

  void scale_to(A top) {
    sum = most == -infinity() ? 0 : sum * exponential(most - top);
    most = top;
  }
};
