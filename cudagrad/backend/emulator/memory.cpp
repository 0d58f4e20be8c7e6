// Accesses that are one instruction on a GPU: loads and stores of 8 and 16 bytes, copies from global to shared memory.
#include "runtime.h"

#include <algorithm>
#include <vector>

namespace cg {

void* accessing;

namespace {

void copy_for(void* pc, void* to, const void* from, size_t bytes) {
  accessing = pc;
  asm volatile("" ::: "memory");  // the handler of a fault must find it
  memcpy(to, from, bytes);
  asm volatile("" ::: "memory");
  accessing = nullptr;
}

template <class V>
V load(void* pc, const void* from) {
  if ((uintptr_t)from % sizeof(V))
    fail_at(pc, "a load of %zu bytes from an address that is %zu past a multiple of %zu", sizeof(V), (uintptr_t)from % sizeof(V),
            sizeof(V));
  check_access(pc, from, sizeof(V), false, false);
  V value;
  copy_for(pc, &value, from, sizeof(V));
  return value;
}

template <class V>
void store(void* pc, void* to, V value) {
  if ((uintptr_t)to % sizeof(V))
    fail_at(pc, "a store of %zu bytes to an address that is %zu past a multiple of %zu", sizeof(V), (uintptr_t)to % sizeof(V),
            sizeof(V));
  check_access(pc, to, sizeof(V), true, false);
  copy_for(pc, to, &value, sizeof(V));
}

// ---- cp.async. A copy may land at any time from its start to the wait for its group. Its target is poisoned at the start
// and filled at the wait: who reads too early, and who still needs what was there, both see the poison.

struct Copy {
  char* to;
  const void* from;  // null: zeros
  size_t bytes;
  unsigned group;
  void* pc;
};

std::vector<Copy> under_way[1024];  // of each thread, in the order of their start
unsigned groups[1024];              // that the thread has committed

void land(const Copy& c) {
  check_landed(c.pc, c.to, c.bytes);
  if (c.from)
    copy_for(c.pc, c.to, c.from, c.bytes);
  else
    memset(c.to, 0, c.bytes);
}

}  // namespace

bool in_shared(const void* at, size_t bytes) {
  const char *first = (const char*)at, *last = first + bytes;
  return (first >= static_start && last <= static_end) ||
         (first >= dynamic_shared && last <= dynamic_shared + launch->shared_bytes);
}

void fail_outside(void* pc, const char* what, const void* at) {
  char where[256];
  describe(at, where, sizeof where);
  fail_at(pc, "%s %s: that does not lie in shared memory", what, where);
}

__attribute__((noinline)) uint4 load16(const void* from) { return load<uint4>(__builtin_return_address(0), from); }
__attribute__((noinline)) uint2 load8(const void* from) { return load<uint2>(__builtin_return_address(0), from); }
__attribute__((noinline)) void store16(void* to, uint4 value) { store(__builtin_return_address(0), to, value); }
__attribute__((noinline)) void store8(void* to, uint2 value) { store(__builtin_return_address(0), to, value); }

__attribute__((noinline)) void copy_async(void* to, const void* from, size_t bytes, bool valid) {
  void* pc = __builtin_return_address(0);
  const size_t askew = std::max((uintptr_t)to % bytes, (uintptr_t)from % bytes);
  if (askew) fail_at(pc, "cp.async of %zu bytes, of which an address is %zu past a multiple of %zu", bytes, askew, bytes);
  if (!in_shared(to, bytes)) fail_outside(pc, "cp.async to", to);
  if (valid) {
    check_access(pc, from, bytes, false, false);
    uint4 tried;
    copy_for(pc, &tried, from, bytes);  // an address that cannot be read faults where the copy starts
  }
  check_started(pc, to, bytes);
  memset(to, 0xff, bytes);
  under_way[self->number].push_back({(char*)to, valid ? from : nullptr, bytes, groups[self->number], pc});
}

void copies_commit() { ++groups[self->number]; }

void copies_wait(unsigned most) {
  std::vector<Copy>& mine = under_way[self->number];
  size_t n = 0;
  for (; n < mine.size() && mine[n].group + most < groups[self->number]; ++n) land(mine[n]);
  mine.erase(mine.begin(), mine.begin() + n);
}

void copies_block() {
  for (std::vector<Copy>& copies : under_way) copies.clear();
  memset(groups, 0, sizeof groups);
}

void copies_thread_end() {
  const std::vector<Copy>& mine = under_way[self->number];
  if (!mine.empty())
    fail_at(mine[0].pc, "a thread returns without having waited for %zu of its cp.async: they are in no group, or no wait "
            "came after the group", mine.size());
}

}  // namespace cg
