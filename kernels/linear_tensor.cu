#include "linear_tile.cuh"

constexpr int DEPTH = 32, STAGES = 3;  // of the c's in shared memory: in a tile; tiles there or under way
constexpr int THREADS = 2 * CG_E, TILE = CG_E * DEPTH;
constexpr int UNROLLED = CG_K == 8 ? 2 : CG_K == 2 ? 1 : 4;  // copies of a thread, whose addresses take registers
constexpr int BLOCKS = CG_ARCH >= 800 ? 2 : 1;  // a multiprocessor should hold: 128 registers a thread
constexpr int HEIGHT = CG_E / 2, WIDTH = 32;  // of a warp's part of the tile of y; two are on top of each other
constexpr int DOWN = HEIGHT / 16, ACROSS = WIDTH / 8;  // of it in products of 16 x 8

// Where a chunk of 8 numbers lies in a matrix's tile: of a plain one in line i, the c / 8-th of 4; of a turned one in
// line c, the i / 8-th. The eight that ldmatrix reads at once, of lines one after the other, are in different banks.
template <bool turned>
__device__ inline int chunk_at(int line, int chunk) {
  return turned ? line * CG_E + (chunk ^ line % 8) * 8 : line * DEPTH + (chunk ^ line / 2 % 4) * 8;
}

// A matrix of which tiles are brought: element c of row i lies at i * row + c, or, where it is turned, at c * row + i.
template <bool turned>
struct Matrix {
  const T* at;
  int row, I, end;  // elements a row in memory has; rows; c's

  void bring(T* tile, int i0, int c0) const {
    constexpr int line_packs = (turned ? CG_E : DEPTH) / CG_K;
#pragma unroll UNROLLED
    for (int k = 0; k < TILE / CG_K / THREADS; ++k) {
      const int p = threadIdx.x + k * THREADS, line = p / line_packs, along = p % line_packs * CG_K;
      const int i = i0 + (turned ? along : line), c = c0 + (turned ? line : along);
      const bool there = i < I && c < end;
      const T* from = there ? at + (turned ? (long long)c * row + i : (long long)i * row + c) : at;
      T* to = tile + chunk_at<turned>(line, along / 8) + along % 8;
      if constexpr (CG_K == 8)
        cp_async16(to, from, there);
      else if constexpr (CG_K == 2)
        cp_async4(to, from, there);
      else
        *to = there ? *from : (T)0.f;
    }
  }

  static T element(const T* tile, int i, int c) {
    return tile[turned ? chunk_at<true>(c, i / 8) + i % 8 : chunk_at<false>(i, c / 8) + c % 8];
  }
};

// The 16 x 16 part of a tile from (i, c) on as mma takes it: of the left matrix one a, of the right one two b.
template <bool turned, bool right>
__device__ inline void fragments(unsigned (&to)[4], const T* tile, int i, int c) {
  const int lane = threadIdx.x % 32;
  const int line = turned == right ? lane % 16 : lane % 8 + lane / 16 * 8;
  const int chunk = turned == right ? lane / 16 : lane / 8 % 2;
  if constexpr (turned)
    ldmatrix_x4_trans(to, tile + chunk_at<true>(c + line, i / 8 + chunk));
  else
    ldmatrix_x4(to, tile + chunk_at<false>(i + line, c / 8 + chunk));
}

using Sums = float[DOWN][ACROSS][4];  // of a thread, as mma gives them

// Add to a warp's sums the products of what lies in two tiles; its part of y is from (i, j) on.
template <class S, bool left_turned, bool right_turned>
__device__ inline void multiply(Sums& sum, const S* left, const S* right, int i, int j) {
  if constexpr (has_mma<S>) {
#pragma unroll
    for (int c = 0; c < DEPTH; c += 16) {
      unsigned a[DOWN][4], b[ACROSS][2];
#pragma unroll
      for (int d = 0; d < DOWN; ++d) fragments<left_turned, false>(a[d], left, i + d * 16, c);
#pragma unroll
      for (int n = 0; n < ACROSS; n += 2) {
        unsigned two[4];
        fragments<right_turned, true>(two, right, j + n * 8, c);
        b[n][0] = two[0], b[n][1] = two[1], b[n + 1][0] = two[2], b[n + 1][1] = two[3];
      }
#pragma unroll
      for (int d = 0; d < DOWN; ++d)
#pragma unroll
        for (int n = 0; n < ACROSS; ++n) mma_m16n8k16<S>(sum[d][n], a[d], b[n]);
    }
  } else {
    const int row = i + threadIdx.x % 32 / 4, column = j + threadIdx.x % 4 * 2;
    for (int c = 0; c < DEPTH; ++c)
#pragma unroll
      for (int d = 0; d < DOWN; ++d)
#pragma unroll
        for (int n = 0; n < ACROSS; ++n)
#pragma unroll
          for (int k = 0; k < 4; ++k)
            sum[d][n][k] += (float)Matrix<left_turned>::element(left, row + d * 16 + k / 2 * 8, c) *
                            (float)Matrix<right_turned>::element(right, column + n * 8 + k % 2, c);
  }
}

/*
linear_tensor             products of float16 or bfloat16 matrices on tensor cores, then bias and activation

math     y[z,i,j] = f(pre[z,i,j]),  pre[z,i,j] = sum_c a[z,i,c] * b[z,c,j] + bias[j],  f by its number in linear.cuh; or
         partial[z,x,i,j] = the sum over the x-th of X parts of the c, of D each; sums in float32
         a and b lie as a[i,c], b[j,c] for layout 0; a[i,c], b[c,j] for layout 1; a[c,i], b[c,j] for layout 2
source   PTX ISA, mma.sync m16n8k16 and its fragments; on sm_75 by m16n8k8, and bfloat16 there without tensor cores
shapes   a: T[Z,P,Q]   b: T[Z,R,S]   bias: T[N] or null   y: T[Z,M,N]   pre: T[Z,M,N] or null
         partial: A[Z,X,M,N] or null
where    L = layout
         C = P if L == 2 else Q
         M = Q if L == 2 else P
         N = R if L == 0 else S
         K = 1 if not aligned or Q % 2 or S % 2 else 2 if Q % 8 or S % 8 else 8
         E = 128 if Z * ceil(M, 128) * ceil(N, 128) >= processors else 64
         G = ceil(M, E) * ceil(N, E)
         X = max(1, min(processors // (G * Z), C // 512))
         D = ceil(ceil(C, X), 32) * 32
         B = 2 * E
launch   grid = (G, X, Z)   block = B   shared = 384 * E
bytes    Z * (M * C + C * N) * size_T + (Z * M * N * X * size_A if partial else ((1 + pre) * Z * M + bias) * N * size_T)
flops    2 * Z * M * N * C
limits   size_T == 2 and 1 <= M and 1 <= N and 1 <= C and Z < 65536 and X < 65536 and C < 2**30 and M < 2**30
         and N < 2**30 and P == (C if L == 2 else M) and Q == (M if L == 2 else C) and R == (C if L else N)
         and S == (N if L else C) and (X == 1 or partial)
used by  cudagrad/ops/linear_act.py linear_relu, linear_smooth, cudagrad/ops/affine.py linear,
         cudagrad/ops/matmul.py mm, mm_nt, mm_tn, bmm, matmul
*/
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) linear_tensor(
    const T* a, const T* b, const T* bias, T* y, T* pre, A* partial, int M, int N, int C, int X, int D, int act,
    int layout) {
  CG_DYNAMIC_SHARED(T, tiles);  // [STAGES][left, right][TILE]; at the end, float[HEIGHT][BAND]
  const int z = blockIdx.z, first = blockIdx.y * D, last = first + D < C ? first + D : C;
  const int steps = (last - first + DEPTH - 1) / DEPTH;
  const Tile tile(M, N, CG_E);
  const Matrix<CG_L == 2> left{a + (long long)z * M * C, CG_L == 2 ? M : C, M, last};
  const Matrix<CG_L != 0> right{b + (long long)z * N * C, CG_L ? N : C, N, last};
  auto bring = [&](int step) {
    if (step < steps) {
      T* to = tiles + step % STAGES * 2 * TILE;
      left.bring(to, tile.i, first + step * DEPTH), right.bring(to + TILE, tile.j, first + step * DEPTH);
    }
    cp_async_commit();
  };

  constexpr int wide = CG_E / WIDTH;  // warps beside each other
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, half = warp / wide, part = warp % wide * WIDTH;
  Sums sum = {};
  for (int step = 0; step < STAGES - 1; ++step) bring(step);
  for (int step = 0; step < steps; ++step) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();  // this step's tiles are there, for all; and all have done with those of the last step
    bring(step + STAGES - 1);
    const T* from = tiles + step % STAGES * 2 * TILE;
    multiply<T, CG_L == 2, CG_L != 0>(sum, from, from + TILE, half * HEIGHT, part);
  }
  cp_async_wait<0>();

  float* sums = (float*)tiles;
  const Ending ending(bias, y, pre, partial, N, act);
  const long long above = partial ? ((long long)z * X + blockIdx.y) * M : (long long)z * M;
#pragma unroll 1
  for (int turn = 0; turn < 2; ++turn) {
    __syncthreads();  // the tiles, or the last turn's sums, have been read
    if (half == turn)
#pragma unroll
      for (int d = 0; d < DOWN; ++d)
#pragma unroll
        for (int n = 0; n < ACROSS; ++n)
#pragma unroll
          for (int k = 0; k < 4; k += 2) {
            float* to = sums + (d * 16 + lane / 4 + k * 4) * BAND + part + n * 8 + lane % 4 * 2;
            st8(to, uint2{(unsigned)__float_as_int(sum[d][n][k]), (unsigned)__float_as_int(sum[d][n][k + 1])});
          }
    __syncthreads();
    const int i = tile.i + turn * HEIGHT;
    take<HEIGHT, THREADS>(sums, ending, above + i, i, M, tile.j);
  }
}
