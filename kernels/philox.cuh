// The random bits of cudagrad/backend/philox.py, to the last bit: Philox4x32-10 keyed by the seed, counted by the offset of
// the call and the number of the counter. Salmon, Moraes, Dror, Shaw 2011, section 3.
#pragma once

// The 128 bits of counter j in the order of the stream: x1, x0, x3, x2. Number i of 16 bits of a call stands in counter
// i / 8, in word i / 2 % 4, low half first.
struct Bits {
  unsigned word[4];
};

__device__ inline Bits philox(unsigned long long seed, unsigned long long offset, unsigned long long j) {
  unsigned x0 = (unsigned)offset, x1 = (unsigned)(j % 4096), x2 = (unsigned)(offset >> 32), x3 = (unsigned)(j / 4096);
  unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned long long p = (unsigned long long)x0 * 0xD2511F53u, q = (unsigned long long)x2 * 0xCD9E8D57u;
    x0 = (unsigned)(q >> 32) ^ x1 ^ k0, x1 = (unsigned)q;
    x2 = (unsigned)(p >> 32) ^ x3 ^ k1, x3 = (unsigned)p;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return Bits{{x1, x0, x3, x2}};
}

// Whether element i of the call is kept: its 16-bit number is at least `limit`, p * 2^16 rounded.
__device__ inline bool kept(const Bits& bits, unsigned long long i, unsigned limit) {
  const unsigned low = i & 2 ? bits.word[1] : bits.word[0], high = i & 2 ? bits.word[3] : bits.word[2];
  return ((i & 4 ? high : low) >> 16 * (i & 1) & 0xffff) >= limit;  // an index would put the words into memory
}
