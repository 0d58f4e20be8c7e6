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
};

// 16-bit numbers as floats, for the compiler to make vectors of.
template <int n>
void widen_bfloat16(const uint16_t (&from)[n], float (&to)[n]) {
  for (int i = 0; i < n; ++i) to[i] = of_bits((uint32_t)from[i] << 16);
}

template <int n>
void widen_half(const uint16_t (&from)[n], float (&to)[n]) {
  for (int i = 0; i < n; ++i) {
    const uint32_t magnitude = (from[i] & 0x7fffu) << 13;
    // the exponent of a float is 112 higher; as a product, for subnormals; infinity and nan have the highest in both
    const uint32_t scaled = bits_of(of_bits(magnitude) * 5.192296858534828e33f);
    const uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
    to[i] = of_bits(scaled | special | (from[i] & 0x8000u) << 16);
  }
}

template <int n>
void widen(bool half, const uint16_t (&from)[n], float (&to)[n]) {
  half ? widen_half(from, to) : widen_bfloat16(from, to);
}

typedef float Four __attribute__((vector_size(16), may_alias));

// Fragments as the PTX ISA lays them out, for g = lane / 4 and t = 2 (lane % 4): register r of a holds row g + 8 (r % 2),
// columns t + 8 (r / 2) and the next; of b, rows t + 8 r and the next, column g; d holds rows g and g + 8, columns t and t + 1.
// Products of 16-bit numbers are exact in float; they are summed in the order of k, then added to d.
template <int k>
void multiply_all(unsigned, void** posted) {
  const Product** lanes = (const Product**)posted;
  uint16_t a_bits[32 * k / 2], b_bits[32 * k / 4];
  alignas(16) float a[32 * k / 2], b_of_lane[32 * k / 4], b[k][8], sum[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    memcpy(&a_bits[lane * k / 2], lanes[lane]->a, k);
    memcpy(&b_bits[lane * k / 4], lanes[lane]->b, k / 2);
  }
  widen(lanes[0]->half, b_bits, b_of_lane);
  const float* from = b_of_lane;
  for (int lane = 0; lane < 32; ++lane)
    for (int j = lane % 4 * 2; j < k; j += 8, from += 2) b[j][lane / 4] = from[0], b[j + 1][lane / 4] = from[1];
  widen(lanes[0]->half, a_bits, a);
  for (int i = 0; i < 16; ++i) {
    Four left = {}, right = {};
#pragma GCC unroll 16
    for (int j = 0; j < k; ++j) {
      const float by = a[(i % 8 * 4 + j % 8 / 2) * (k / 2) + j / 8 * 4 + i / 8 * 2 + j % 2];
      left += by * *(Four*)&b[j][0], right += by * *(Four*)&b[j][4];
    }
    *(Four*)&sum[i][0] = left, *(Four*)&sum[i][4] = right;
  }
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4 * 2;
    float* d = lanes[lane]->d;
    d[0] += sum[g][t], d[1] += sum[g][t + 1], d[2] += sum[g + 8][t], d[3] += sum[g + 8][t + 1];
  }
}

}  // namespace

__attribute__((noinline)) void load_matrices(Site site, unsigned* to, const void* row, int matrices, bool transposed) {
  void* pc = __builtin_return_address(0);
  if ((uintptr_t)row % 16)
    fail_at(pc, "ldmatrix of a row at an address that is %d past a multiple of 16", (int)((uintptr_t)row % 16));
  if (!in_shared(row, 16)) fail_outside(pc, "ldmatrix of", row);  // also of a lane that gives no row: sm_75 demands it
  if (self->lane < 8 * matrices) check_access(pc, row, 16, false, false);
  Rows mine{row, to, matrices, transposed};
  collect(site, 0xffffffff, &mine, load_all);
}

void multiply(Site site, float* d, const unsigned* a, const unsigned* b, bool half, int k) {
  Product mine{d, a, b, half};
  collect(site, 0xffffffff, &mine, k == 16 ? multiply_all<16> : multiply_all<8>);
}

}  // namespace cg
