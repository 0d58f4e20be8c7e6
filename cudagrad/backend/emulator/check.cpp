// Check mode: every access of a kernel is looked at. The kernel is built with -fsanitize=thread, whose callbacks are these
// and not the sanitizer's; a byte's last accesses are remembered, and a warp's accesses by one line are counted together.
#include "runtime.h"

#include <algorithm>
#include <list>
#include <map>
#include <vector>

namespace cg {
namespace {

struct Access {  // who = 0: none
  uint32_t who, epoch, warp_epoch, pc;
};

struct Cell {  // of one byte
  Access written, read, read_too;  // of concurrent readers two are enough: one of them is not the writer
  bool known, atomic, was_read, was_written;
  bool copying;  // a cp.async, the last writer, has not landed
};

struct Group {  // what the lanes of one warp do at one instruction
  uintptr_t at[32];
  uint32_t bytes[32], mask;
};

struct Memory {
  const char* name;
  char *start, *end;
  std::vector<Cell> cells;
  const Region* region;
};

std::vector<Memory> memories;
std::map<std::pair<uint64_t, uint64_t>, std::vector<Group>> groups;  // (warp and syncs passed, code and kind) -> by turn
std::map<std::pair<uint64_t, uint64_t>, std::vector<uint32_t>> turns;
std::map<std::pair<uint32_t, int>, Line> lines;
uintptr_t base;

// ---- between blocks: what a block wrote before a fence is another's to read once both have been at the same atomic

struct Release {  // an atomic of a thread of a block that has fences behind it
  uint32_t block, thread, epoch;
  std::vector<uint32_t> fenced;  // of each thread: the epoch of its last fence, 0 for none
};

struct Acquire {  // an atomic of this block's that came after
  const Release* from;
  uint32_t thread, epoch;
};

std::vector<uint32_t> fenced;  // of this block's threads; empty while there is none
std::map<const void*, std::list<Release>> releases;
std::multimap<uint32_t, Acquire> acquires;  // by the block that released

void meet(const void* at) {
  const uint32_t thread = self->number;
  for (const Release& r : releases[at])
    if (r.block != block_number) acquires.insert({r.block, {&r, thread, block_epoch}});
  if (!fenced.empty()) releases[at].push_back({block_number, thread, block_epoch, fenced});
}

// A thread's fence covers what the thread did before, and what others did before the last barrier it has passed.
bool covers(const Release& r, uint32_t thread, uint32_t epoch) {
  if (epoch < r.fenced[r.thread]) return true;
  return r.fenced[thread] >= epoch && (thread == r.thread || r.fenced[thread] < r.epoch);
}

bool handed_over(const Access& before, const Access& now) {
  const uint32_t thread = (now.who - 1) % 1024;
  auto [first, last] = acquires.equal_range((before.who - 1) / 1024);
  return std::any_of(first, last, [&](const auto& found) {
    const Acquire& a = found.second;
    return (a.thread == thread || a.epoch < now.epoch) && covers(*a.from, (before.who - 1) % 1024, before.epoch);
  });
}

Memory* memory_of(const char* at) {
  for (Memory& m : memories) {
    char* from = m.region ? m.region->pages : m.start;
    char* to = m.region ? m.region->pages + m.region->length : m.end;
    if (at >= from && at < to) return &m;
  }
  return nullptr;
}

__forceinline__ bool ordered(const Access& before, const Access& now) {
  if (!before.who || before.who == now.who) return true;
  unsigned before_thread = (before.who - 1) % 1024, now_thread = (now.who - 1) % 1024;
  if ((before.who - 1) / 1024 != (now.who - 1) / 1024) return handed_over(before, now);
  if (before.epoch < now.epoch) return true;
  return before_thread / 32 == now_thread / 32 && before.warp_epoch < now.warp_epoch;
}

[[noreturn]] void race(const Memory& m, const char* at, const Access& before, const Access& now, const char* did, const char* does) {
  unsigned thread = (before.who - 1) % 1024, block = (before.who - 1) / 1024;
  fail_at((void*)(base + now.pc),
          "race on %s: byte %td is %s, and was %s by block %u, thread %u at @%x@ with no barrier between", m.name, at - m.start,
          does, did, block, thread, before.pc);
}

__forceinline__ void look(Memory& m, char* at, const Access& now, bool writes, bool atomic) {
  Cell& c = m.cells[at - m.start];
  if (c.copying)
    fail_at((void*)(base + now.pc),
            "%s: byte %td is %s while the cp.async at @%x@ of thread %u is under way: its thread has not waited for its group",
            m.name, at - m.start, writes ? "written" : "read", c.written.pc, (c.written.who - 1) % 1024);
  if (!writes || atomic) {
    if (!c.known)
      fail_at((void*)(base + now.pc), "read of uninitialised %s, byte %td: nothing has written it", m.name, at - m.start);
    c.was_read = true;
  }
  if (!ordered(c.written, now) && !(atomic && c.atomic)) race(m, at, c.written, now, "written", writes ? "written" : "read");
  if (!writes) {
    if (ordered(c.read, now))
      c.read = now;
    else
      c.read_too = now;
    return;
  }
  if (!ordered(c.read, now)) race(m, at, c.read, now, "read", "written");
  if (!ordered(c.read_too, now)) race(m, at, c.read_too, now, "read", "written");
  c.written = now, c.read = c.read_too = Access{};
  c.known = c.was_written = true;
  c.atomic = atomic;
}

void remember(uint32_t pc, int kind, const char* at, size_t bytes) {
  const uint64_t warp = (uint64_t)self->warp << 40 | self->passed, code = (uint64_t)pc << 8 | kind;
  std::vector<uint32_t>& turn = turns[{warp, code}];
  if (turn.empty()) turn.resize(32);
  std::vector<Group>& by_turn = groups[{warp, code}];
  const uint32_t i = turn[self->lane]++;
  if (i >= by_turn.size()) by_turn.resize(i + 1);
  Group& g = by_turn[i];
  g.mask |= 1u << self->lane;
  g.at[self->lane] = (uintptr_t)at;
  g.bytes[self->lane] = bytes;
}

uint64_t distinct(std::vector<uintptr_t>& units) {
  std::sort(units.begin(), units.end());
  return std::unique(units.begin(), units.end()) - units.begin();
}

// 32-byte sectors that global memory moves, and the fewest that hold the bytes asked for.
void count_global(const Group& g, Line& line) {
  std::vector<uintptr_t> sectors, bytes;
  for (int lane = 0; lane < 32; ++lane) {
    if (!(g.mask >> lane & 1)) continue;
    for (uint32_t k = 0; k < g.bytes[lane]; ++k) {
      bytes.push_back(g.at[lane] + k);
      if (k == 0 || (g.at[lane] + k) % 32 == 0) sectors.push_back((g.at[lane] + k) / 32);
    }
  }
  line.moved += distinct(sectors);
  line.ideal += (distinct(bytes) + 31) / 32;
}

// Turns that the 32 banks of shared memory take, and the fewest; 8 and 16 bytes a lane go by halves and quarters of a warp.
void count_shared(const Group& g, Line& line) {
  uint32_t widest = 4;
  for (int lane = 0; lane < 32; ++lane)
    if (g.mask >> lane & 1) widest = std::max(widest, g.bytes[lane]);
  const int part = 32 / (widest / 4);
  for (int first = 0; first < 32; first += part) {
    std::vector<uintptr_t> words;
    for (int lane = first; lane < first + part; ++lane)
      if (g.mask >> lane & 1)
        for (uint32_t k = 0; k < g.bytes[lane]; k += 4) words.push_back((g.at[lane] + k) / 4);
    if (words.empty()) continue;
    const uint64_t n = distinct(words);
    uint32_t in_bank[32] = {}, most = 0;
    for (uint64_t i = 0; i < n; ++i) most = std::max(most, ++in_bank[words[i] % 32]);
    line.moved += most;
    line.ideal += (n + 31) / 32;
  }
}

Access now_at(void* pc) {
  return {block_number * 1024 + self->number + 1, block_epoch, self->warp_epoch, (uint32_t)((uintptr_t)pc - base)};
}

void access(void* pc, const void* address, size_t bytes, bool writes, bool atomic) {
  if (!self) return;
  char* at = (char*)address;
  Memory* m = memory_of(at);
  if (!m) return;  // a thread's own stack, or a constant
  const Access now = now_at(pc);
  if (at < m->start || at + bytes > m->end)
    fail_at(pc, "out of bounds: %zu bytes at byte %td of %s, which has %td", bytes, at - m->start, m->name, m->end - m->start);
  if (bytes <= 16 && (uintptr_t)at % bytes)
    fail_at(pc, "%zu bytes of %s at an address that is %zu past a multiple of %zu", bytes, m->name, (uintptr_t)at % bytes, bytes);
  if (atomic) meet(at);
  for (size_t k = 0; k < bytes; ++k) look(*m, at + k, now, writes, atomic);
  remember(now.pc, (m->region ? 0 : 2) + writes, at, bytes);
}

// Of more than an instruction moves, or of a size that only the compiler knows: in the largest pieces that fit.
void access_range(void* pc, const void* address, size_t bytes, bool writes) {
  size_t piece = 16;
  while (((uintptr_t)address | bytes) % piece) piece /= 2;
  for (size_t k = 0; k < bytes; k += piece) access(pc, (const char*)address + k, piece, writes, false);
}

Memory shared(const char* name, char* start, char* end) {
  return Memory{name, start, end, std::vector<Cell>(end - start), nullptr};
}

}  // namespace

void check_launch() {
  memories.clear(), groups.clear(), turns.clear(), lines.clear(), releases.clear();
  launch->line_count = 0, launch->touched = 0;
  base = (uintptr_t)check_launch - offset_of((void*)check_launch);
  memories.push_back(shared("static shared memory", static_start, static_end));
  memories.push_back(shared("dynamic shared memory", dynamic_shared, dynamic_shared + launch->shared_bytes));
  for (int i = 0; i < region_count; ++i) {
    const Region& r = regions[i];
    Memory m{r.argument->name, r.start, r.end, std::vector<Cell>(r.argument->bytes), &r};
    for (Cell& c : m.cells) c.known = r.argument->role != OUTPUT;
    memories.push_back(std::move(m));
  }
}

void check_block() {
  for (int i = 0; i < 2; ++i) std::fill(memories[i].cells.begin(), memories[i].cells.end(), Cell{});
  fenced.clear(), acquires.clear();
}

void check_block_end() {
  for (auto& [key, by_turn] : groups) {
    const uint32_t pc = key.second >> 8;
    const int kind = key.second & 255;
    Line& line = lines[{pc, kind}];
    line.pc = pc, line.kind = kind;
    for (const Group& g : by_turn) {
      ++line.requests;
      kind < 2 ? count_global(g, line) : count_shared(g, line);
    }
  }
  groups.clear(), turns.clear();
}

void check_access(void* pc, const void* at, size_t bytes, bool writes, bool atomic) { access(pc, at, bytes, writes, atomic); }

void check_fence() {
  fenced.resize(1024);
  fenced[self->number] = block_epoch;
}

void check_started(void* pc, const void* to, size_t bytes) {
  access(pc, to, bytes, true, false);
  Memory* m = memory_of((const char*)to);
  for (size_t k = 0; k < bytes; ++k) m->cells[(char*)to + k - m->start].copying = true;
}

void check_landed(void* pc, const void* to, size_t bytes) {
  Memory* m = memory_of((const char*)to);
  for (size_t k = 0; k < bytes; ++k) {
    m->cells[(char*)to + k - m->start].copying = false;
    look(*m, (char*)to + k, now_at(pc), true, false);
  }
}

void check_free() {
  for (size_t i = 2; i < memories.size(); ++i) {
    long long first = -1;
    for (size_t k = 0; k < memories[i].cells.size(); ++k) {
      const Cell& c = memories[i].cells[k];
      launch->touched += c.was_read + c.was_written;
      if (first < 0 && !c.was_written) first = k;
    }
    Region& region = regions[i - 2];
    const_cast<Argument*>(region.argument)->unwritten = first;
  }
  for (auto& [key, line] : lines)
    if (launch->line_count < launch->most_lines) launch->lines[launch->line_count++] = line;
  memories.clear();
}

}  // namespace cg

#define CALLED(name, bytes, writes) \
  extern "C" void name(void* at) { cg::access(__builtin_return_address(0), at, bytes, writes, false); }
#define CALLED_ALL(name, writes) \
  CALLED(name##1, 1, writes) CALLED(name##2, 2, writes) CALLED(name##4, 4, writes) CALLED(name##8, 8, writes) CALLED(name##16, 16, writes)
#define CALLED_UNALIGNED(name, writes) \
  CALLED(name##2, 2, writes) CALLED(name##4, 4, writes) CALLED(name##8, 8, writes) CALLED(name##16, 16, writes)
CALLED_ALL(__tsan_read, false)
CALLED_ALL(__tsan_write, true)
CALLED_ALL(__tsan_volatile_read, false)
CALLED_ALL(__tsan_volatile_write, true)
CALLED_UNALIGNED(__tsan_unaligned_read, false)
CALLED_UNALIGNED(__tsan_unaligned_write, true)

extern "C" void __tsan_read_range(void* at, size_t bytes) {
  cg::access_range(__builtin_return_address(0), at, bytes, false);
}
extern "C" void __tsan_write_range(void* at, size_t bytes) {
  cg::access_range(__builtin_return_address(0), at, bytes, true);
}

// What build.py makes of a kernel's calls of memset and memcpy: compilers make them of loops and of structures.
extern "C" void* cg_memset(void* to, int value, size_t bytes) {
  cg::access_range(__builtin_return_address(0), to, bytes, true);
  return memset(to, value, bytes);
}
extern "C" void* cg_memmove(void* to, const void* from, size_t bytes) __attribute__((alias("cg_memcpy")));
extern "C" void* cg_memcpy(void* to, const void* from, size_t bytes) {
  cg::access_range(__builtin_return_address(0), from, bytes, false);
  cg::access_range(__builtin_return_address(0), to, bytes, true);
  return memmove(to, from, bytes);
}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
