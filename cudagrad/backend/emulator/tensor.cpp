// What a warp's lanes do together with matrices: ldmatrix and mma. The last lane that arrives does it for all.
#include "runtime.h"

namespace cg {
namespace {

struct Rows {  // of 8 x 8 matrices of 16-bit numbers: lane 8 m + i names row i of matrix m
  const void* row;
  unsigned* to;  // one register a matrix
  int matrices;
  bool transposed;
};

// Register m of a lane: elements 2 (lane % 4) and the next of row lane / 4 of matrix m, or of its transpose.
void load_all(unsigned, void** posted) {
  for (int lane = 0; lane < 32; ++lane) {
    const Rows& mine = *(Rows*)posted[lane];
    const int i = lane / 4, j = lane % 4 * 2;
    for (int m = 0; m < mine.matrices; ++m) {
      uint16_t pair[2];
      for (int k = 0; k < 2; ++k) {
        const int row = mine.transposed ? j + k : i, column = mine.transposed ? i : j + k;
        memcpy(&pair[k], (const uint16_t*)((Rows*)posted[8 * m + row])->row + column, 2);
      }
      memcpy(&mine.to[m], pair, 4);
    }
  }
}

struct Product {
  float* d;
  const unsigned *a, *b;
  bool half;
  int k;
};

// 16-bit numbers as floats, n at a time, for the compiler to make vectors of.
void widen_bfloat16(const uint16_t* from, float* to, int n) {
  for (int i = 0; i < n; ++i) to[i] = of_bits((uint32_t)from[i] << 16);
}

void widen_half(const uint16_t* from, float* to, int n) {
  for (int i = 0; i < n; ++i) {
    const uint32_t magnitude = (from[i] & 0x7fffu) << 13;
    // the exponent of a float is 112 higher; as a product, for subnormals; infinity and nan have the highest in both
    const uint32_t scaled = bits_of(of_bits(magnitude) * 5.192296858534828e33f);
    const uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
    to[i] = of_bits(scaled | special | (from[i] & 0x8000u) << 16);
  }
}

typedef float Four __attribute__((vector_size(16), may_alias));

// d[16][8] += a[16][k] b[k][8]; products of 16-bit numbers are exact in float, sums are taken in the order of k.
void multiply_tile(Four (*d)[2], const float (*a)[16], const Four (*b)[2], int k) {
  for (int i = 0; i < 16; ++i) {
    Four left = d[i][0], right = d[i][1];
    for (int j = 0; j < k; ++j) {
      const Four by = {a[i][j], a[i][j], a[i][j], a[i][j]};
      left += by * b[j][0], right += by * b[j][1];
    }
    d[i][0] = left, d[i][1] = right;
  }
}

// Fragments as the PTX ISA lays them out, for g = lane / 4 and t = 2 (lane % 4): register r of a holds row g + 8 (r % 2),
// columns t + 8 (r / 2) and the next; of b, rows t + 8 r and the next, column g; d holds rows g and g + 8, columns t and t + 1.
void multiply_all(unsigned, void** posted) {
  const Product& first = *(Product*)posted[0];
  uint16_t a[16][16], b[16][8];
  alignas(16) float d[16][8], a_wide[16][16], b_wide[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const Product& p = *(Product*)posted[lane];
    const int g = lane / 4, t = lane % 4 * 2;
    for (int r = 0; r < p.k / 4; ++r) memcpy(&a[g + r % 2 * 8][t + r / 2 * 8], &p.a[r], 4);
    for (int r = 0; r < p.k / 8; ++r) b[t + 8 * r][g] = p.b[r], b[t + 8 * r + 1][g] = p.b[r] >> 16;
    memcpy(&d[g][t], p.d, 8), memcpy(&d[g + 8][t], p.d + 2, 8);
  }
  const auto widen = first.half ? widen_half : widen_bfloat16;
  widen(a[0], a_wide[0], 256), widen(b[0], b_wide[0], 8 * first.k);
  multiply_tile((Four(*)[2])d, a_wide, (Four(*)[2])b_wide, first.k);
  for (int lane = 0; lane < 32; ++lane) {
    const Product& p = *(Product*)posted[lane];
    const int g = lane / 4, t = lane % 4 * 2;
    memcpy(p.d, &d[g][t], 8), memcpy(p.d + 2, &d[g + 8][t], 8);
  }
}

}  // namespace

__attribute__((noinline)) void load_matrices(Site site, unsigned* to, const void* row, int matrices, bool transposed) {
  void* pc = __builtin_return_address(0);
  if ((uintptr_t)row % 16)
    fail_at(pc, "ldmatrix of a row at an address that is %d past a multiple of 16", (int)((uintptr_t)row % 16));
  if (!in_shared(row, 16)) {  // also where the lane names no row: sm_75 demands it
    char where[256];
    describe(row, where, sizeof where);
    fail_at(pc, "ldmatrix of a row at %s: it reads shared memory only", where);
  }
  if (self->lane < 8 * matrices) check_access(pc, row, 16, false, false);
  Rows mine{row, to, matrices, transposed};
  collect(site, 0xffffffff, &mine, load_all);
}

void multiply(Site site, float* d, const unsigned* a, const unsigned* b, bool half, int k) {
  Product mine{d, a, b, half, k};
  collect(site, 0xffffffff, &mine, multiply_all);
}

}  // namespace cg
