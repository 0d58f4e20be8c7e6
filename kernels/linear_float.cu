#include "linear_tile.cuh"

constexpr int DEPTH = CG_E == 128 ? 8 : 16, THREADS = 256;  // of the c's in shared memory at once
constexpr int TILE = CG_E * DEPTH, SHARED = 4 * TILE > 32 * BAND ? 4 * TILE : 32 * BAND;
constexpr int PACKS = TILE / CG_V, MINE = (PACKS + THREADS - 1) / THREADS;  // of a matrix's tile; a thread's
constexpr int BLOCKS = sizeof(T) == 4 ? 2 : 1;  // a multiprocessor should hold: 128 registers a thread
constexpr int UNROLLED = CG_E == 128 ? 2 : DEPTH;  // c's: more would not fit into the registers
constexpr int PART = CG_E / 64, EDGE = 4 * PART;  // a thread's sums: EDGE x EDGE, in PART x PART squares of 4 x 4

// Where element c of row i lies in a tile. The turns keep 16 bytes together, and bring what a warp stores at once, or
// loads at once, into different banks.
constexpr int TOGETHER = 16 / sizeof(A);
__device__ inline int place(int c, int i) {
  const int turn = sizeof(A) == 8 ? c / 2 % 8 * 2 : DEPTH == 8 ? c % 8 * 4 : c / 4 % 4 * 8 + c % 2 * 4;
  return c * CG_E + (i ^ turn);
}

// Four elements of a thread in line c: from i on, and where fewer lie together, also from `step` further on.
__device__ inline void load_four(const A* tile, int c, int i, int step, A (&v)[4]) {
  for (int k = 0; k < 4; k += TOGETHER) {
    A part[TOGETHER];
    load_pack(tile + place(c, i + k / TOGETHER * step), part);
    for (int n = 0; n < TOGETHER; ++n) v[k + n] = part[n];
  }
}

// A matrix of which tiles are brought: element c of row i lies at i * row + c, or, where it is turned, at c * row + i.
template <bool turned>
struct Matrix {
  const T* at;
  int row, I, end;  // elements a row in memory has; rows; c's
  A held[MINE][CG_V];

  static int pack(int k) { return (int)threadIdx.x + k * THREADS; }
  static int c_of(int p) { return turned ? p / (CG_E / CG_V) : p % (DEPTH / CG_V) * CG_V; }
  static int i_of(int p) { return turned ? p % (CG_E / CG_V) * CG_V : p / (DEPTH / CG_V); }

  void bring(int i0, int c0) {
#pragma unroll
    for (int k = 0; k < MINE; ++k) {
      const int p = pack(k), i = i0 + i_of(p), c = c0 + c_of(p);
      for (int e = 0; e < CG_V; ++e) held[k][e] = 0;
      if (p < PACKS && i < I && c < end)
        load_pack(at + (turned ? (long long)c * row + i : (long long)i * row + c), held[k]);
    }
  }

  void keep(A* tile) const {
    constexpr int together = turned && CG_V > 1 ? TOGETHER : 1;
#pragma unroll
    for (int k = 0; k < MINE; ++k) {
      const int p = pack(k), i = i_of(p), c = c_of(p);
      if (p >= PACKS) continue;
      for (int e = 0; e < CG_V; e += together) {
        A part[together];
        for (int n = 0; n < together; ++n) part[n] = held[k][e + n];
        store_pack(tile + (turned ? place(c, i + e) : place(c + e, i)), part);
      }
    }
  }
};

/*
linear_float              products of float32 or float64 matrices, then bias and activation

math     y[z,i,j] = f(pre[z,i,j]),  pre[z,i,j] = sum_c a[z,i,c] * b[z,c,j] + bias[j],  f by its number in linear.cuh; or
         partial[z,x,i,j] = the sum over the x-th of X parts of the c, of D each
         a and b lie as a[i,c], b[j,c] for layout 0; a[i,c], b[c,j] for layout 1; a[c,i], b[c,j] for layout 2
source   Volkov, Demmel 2008, Benchmarking GPUs to tune dense linear algebra, section 4: tiles in registers
shapes   a: T[Z,P,Q]   b: T[Z,R,S]   bias: T[N] or null   y: T[Z,M,N]   pre: T[Z,M,N] or null
         partial: A[Z,X,M,N] or null
where    L = layout
         C = P if L == 2 else Q
         M = Q if L == 2 else P
         N = R if L == 0 else S
         V = 16 // size_T if aligned and Q * size_T % 16 == 0 and S * size_T % 16 == 0 else 1
         E = 128 if size_T == 4 and V > 1 and Z * ceil(M, 128) * ceil(N, 128) >= processors else 64
         G = ceil(M, E) * ceil(N, E)
         X = max(1, min(processors // (G * Z), C // 256))
         D = ceil(ceil(C, X), 16) * 16
         B = 256
launch   grid = (G, X, Z)   block = 256   shared = 0
bytes    Z * (M * C + C * N) * size_T + (Z * M * N * X * size_A if partial else ((1 + pre) * Z * M + bias) * N * size_T)
flops    2 * Z * M * N * C
limits   size_T >= 4 and 1 <= M and 1 <= N and 1 <= C and Z < 65536 and X < 65536 and C < 2**30 and M < 2**30
         and N < 2**30 and P == (C if L == 2 else M) and Q == (M if L == 2 else C) and R == (C if L else N)
         and S == (N if L else C) and (X == 1 or partial)
used by  cudagrad/ops/linear_act.py linear_relu, linear_smooth, cudagrad/ops/affine.py linear,
         cudagrad/ops/matmul.py mm, mm_nt, mm_tn, bmm, matmul
*/
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) linear_float(
    const T* a, const T* b, const T* bias, T* y, T* pre, A* partial, int M, int N, int C, int X, int D, int act,
    int layout) {
  __shared__ A tiles[SHARED];  // [turn][left, right][TILE]; at the end, [32][BAND]
  const int z = blockIdx.z, first = blockIdx.y * D, last = first + D < C ? first + D : C;
  const Tile tile(M, N, CG_E);
  Matrix<CG_L == 2> left{a + (long long)z * M * C, CG_L == 2 ? M : C, M, last};
  Matrix<CG_L != 0> right{b + (long long)z * N * C, CG_L ? N : C, N, last};

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // A warp has 16 x 32 elements of every part of the tile, in 4 x 8 threads.
  constexpr int next_row = 4 * TOGETHER, next_column = 8 * TOGETHER;
  const int down = warp / 2 * 16 + lane / 8 * TOGETHER, across = warp % 2 * 32 + lane % 8 * TOGETHER;
  A sum[EDGE][EDGE] = {};
  left.bring(tile.i, first), right.bring(tile.j, first);
  for (int c0 = first, turn = 0; c0 < last; c0 += DEPTH, turn ^= 1) {
    A *left_tile = tiles + turn * 2 * TILE, *right_tile = left_tile + TILE;
    left.keep(left_tile), right.keep(right_tile);
    __syncthreads();  // and who comes here has done with the other turn's tiles
    if (c0 + DEPTH < last) left.bring(tile.i, c0 + DEPTH), right.bring(tile.j, c0 + DEPTH);
#pragma unroll UNROLLED
    for (int c = 0; c < DEPTH; ++c) {
      A u[PART][4], v[PART][4];
#pragma unroll
      for (int p = 0; p < PART; ++p) {
        load_four(left_tile, c, p * 64 + down, next_row, u[p]);
        load_four(right_tile, c, p * 64 + across, next_column, v[p]);
      }
#pragma unroll
      for (int i = 0; i < EDGE; ++i)
#pragma unroll
        for (int j = 0; j < EDGE; ++j) sum[i][j] += u[i / 4][i % 4] * v[j / 4][j % 4];
    }
  }

  const Ending ending(bias, y, pre, partial, N, act);
  const long long above = partial ? ((long long)z * X + blockIdx.y) * M : (long long)z * M;
#pragma unroll 1
  for (int band = 0; band < CG_E; band += 32) {  // of a part's 64 rows four warps have half
    __syncthreads();                             // tiles or band have been read
#pragma unroll
    for (int i = 0; i < EDGE; ++i)
#pragma unroll
      for (int p = 0; p < PART; ++p)
        for (int k = 0; k < 4; k += TOGETHER)
          if (band == i / 4 * 64 + warp / 4 * 32) {
            A v[TOGETHER];
            for (int n = 0; n < TOGETHER; ++n) v[n] = sum[i][p * 4 + k + n];
            const int row = down % 32 + i % 4 / TOGETHER * next_row + i % TOGETHER;
            store_pack(tiles + row * BAND + p * 64 + across + k / TOGETHER * next_column, v);
          }
    __syncthreads();
    take<32, THREADS>(tiles, ending, above + tile.i + band, tile.i + band, M, tile.j);
  }
}
