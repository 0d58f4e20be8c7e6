// Runs a kernel: one fiber a thread, one block after the other, on one processor.
#include "runtime.h"

#include <csetjmp>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "fiber.h"

extern "C" char __start_cg_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_cg_shared[] __attribute__((weak, visibility("hidden")));

namespace cg {

enum State { READY, WAITS_BLOCK, WAITS_WARP, DONE };
// ORDERED, REVERSED: a warp goes on until it waits for the block, and its stacks stay in the cache. RANDOM: of all threads;
// EAGER: with a switch at every warp's collective too.
enum Schedule { ORDERED, REVERSED, RANDOM, EAGER };

const size_t ROOM = 64 << 10;  // of a thread's stack
const size_t GUARD = 16 << 20;  // addresses before and after an array that nothing lies at
const int MOST_THREADS = 1024;

Thread* self;
dim3 block_index, block_size, grid_size;
char* dynamic_shared;
Launch* launch;
Region* regions;
int region_count;
unsigned block_epoch, block_number;
char *dynamic_end, *static_start, *static_end;

namespace {

struct Warp {
  unsigned exist, waiting;  // bit masks of lanes
};

Thread threads[MOST_THREADS];
Warp warps[MOST_THREADS / 32];
int order[MOST_THREADS];
int count, done, at_barrier;
int turn;                       // of `order`: whose comes next
bool skip[MOST_THREADS / 32];  // warps that stand still in this round
void* scheduler;
void** kernel_arguments;
sigjmp_buf failed;
char* stacks;  // 64 MB of addresses in 2048 mappings, of which Linux allows 65530: one set for all libraries
size_t page, stride;
uint64_t random_state;

uint64_t random_bits() {  // xorshift64*, Vigna 2016
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return random_state * 0x2545F4914F6CDD1DULL >> 16;
}

void* map(size_t bytes, int access = PROT_READ | PROT_WRITE) {
  void* at = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

bool same(const Site& a, const Site& b) {
  return a.line == b.line && (a.file == b.file || !strcmp(a.file, b.file)) && (a.what == b.what || !strcmp(a.what, b.what));
}

bool any_ready(int first) {
  for (int i = first; i < first + 32; ++i)
    if (threads[order[i]].state == READY) return true;
  return false;
}

// The next of this round that can run; null at its end.
Thread* next_ready() {
  for (;;) {
    if (turn && turn % 32 == 0 && launch->schedule < RANDOM && any_ready(turn - 32)) turn -= 32;
    if (turn == count) return nullptr;
    Thread& t = threads[order[turn++]];
    if (t.state == READY && !skip[t.warp]) return &t;
  }
}

// This thread waits, or has returned: on to the next, or to the scheduler for another round.
void pass_on() {
  Thread* me = self;
  self = next_ready();
  cg_switch(&me->stack_pointer, self ? self->stack_pointer : scheduler);
}

void run_thread() {
  launch->call(kernel_arguments);
  copies_thread_end();
  self->state = DONE;
  ++done;
  pass_on();
}

void write_message(const char* format, va_list list) {
  char* at = launch->message;
  size_t left = launch->message_bytes;
  int n = vsnprintf(at, left, format, list);
  n = n < 0 ? 0 : (size_t)n >= left ? (int)left - 1 : n;
  if (self)
    snprintf(at + n, left - n, "\n  in block (%u, %u, %u), thread (%u, %u, %u)", block_index.x, block_index.y,
             block_index.z, self->index.x, self->index.y, self->index.z);
}

// ---- memory

bool stage(Region& r, const Argument& a) {
  size_t skew = (uintptr_t)a.host % 16;  // an array that lies askew in its buffer does so on the device too
  const size_t room = (a.bytes + 16 + page - 1) / page * page;
  r.length = room + 2 * GUARD;
  r.pages = (char*)map(r.length, PROT_NONE);
  if (!r.pages) return false;
  char *first = r.pages + GUARD, *last = first + room;
  if (mprotect(first, room, PROT_READ | PROT_WRITE)) return false;
  r.start = last - a.bytes - ((uintptr_t)last - a.bytes - skew) % 16;
  r.end = r.start + a.bytes;
  r.argument = &a;
  memset(first, 0xff, room);
  if (a.role != OUTPUT) memcpy(r.start, a.host, a.bytes);
  if (a.role == INPUT) mprotect(first, room, PROT_READ);
  return true;
}

}  // namespace

void describe(const void* at, char* text, size_t bytes) {
  for (int i = 0; i < region_count; ++i) {
    Region& r = regions[i];
    if ((char*)at < r.pages || (char*)at >= r.pages + r.length) continue;
    snprintf(text, bytes, "byte %td of %s, which has %zu bytes%s", (char*)at - r.start, r.argument->name, r.argument->bytes,
             r.argument->role == INPUT ? " and is const" : "");
    return;
  }
  if (dynamic_shared && (char*)at >= dynamic_shared && (char*)at < dynamic_end + page) {
    snprintf(text, bytes, "byte %td of dynamic shared memory, which has %zu bytes", (char*)at - dynamic_shared,
             launch->shared_bytes);
    return;
  }
  if (stacks && (char*)at >= stacks && (char*)at < stacks + MOST_THREADS * stride)
    snprintf(text, bytes, "the end of a thread's stack of %zu bytes", ROOM);
  else
    snprintf(text, bytes, "address %p, which is no array's", at);
}

namespace {

void on_fault(int number, siginfo_t* info, void* context) {
  char where[256];
  describe(info->si_addr, where, sizeof where);
  void* pc = accessing;
#if defined(__x86_64__)
  if (!pc) pc = (void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  if (!pc) pc = (void*)((ucontext_t*)context)->uc_mcontext.pc;
#endif
  if (number == SIGILL || number == SIGTRAP) fail_at(pc, "a trap: __trap(), or what the compiler saw to have no meaning");
  fail_at(pc, "%s: %s", number == SIGFPE ? "integer division by zero" : "illegal access", number == SIGFPE ? "" : where);
}

struct Handlers {  // in force during a launch only
  static constexpr int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}, how_many = sizeof numbers / sizeof *numbers;
  struct sigaction before[how_many];
  stack_t stack_before;
  char* stack;

  Handlers() {
    stack = (char*)map(ROOM);
    stack_t mine{};
    mine.ss_sp = stack;
    mine.ss_size = ROOM;
    sigaltstack(&mine, &stack_before);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int i = 0; i < how_many; ++i) sigaction(numbers[i], &action, &before[i]);
  }
  ~Handlers() {
    for (int i = 0; i < how_many; ++i) sigaction(numbers[i], &before[i], nullptr);
    sigaltstack(&stack_before, nullptr);
    munmap(stack, ROOM);
  }
};

// ---- scheduling

void shuffle_order(int first, int last) {
  for (int i = last - 1; i > first; --i) {
    int j = first + random_bits() % (i - first + 1);
    int t = order[i];
    order[i] = order[j], order[j] = t;
  }
}

void set_order() {
  for (int i = 0; i < count; ++i) order[i] = launch->schedule == REVERSED ? count - 1 - i : i;
}

[[noreturn]] void deadlock() {
  static char text[2048];
  size_t n = 0;
  for (int i = 0; i < count && n < sizeof text - 200;) {
    const Thread& t = threads[i];
    int j = i;
    while (j < count && threads[j].state == t.state &&
           (t.state == DONE || (threads[j].site.line == t.site.line && threads[j].mask == t.mask)))
      ++j;
    n += snprintf(text + n, sizeof text - n, "\n  threads %d to %d ", i, j - 1);
    if (t.state == DONE)
      n += snprintf(text + n, sizeof text - n, "have returned");
    else
      n += snprintf(text + n, sizeof text - n, "wait in %s at %s:%d", t.site.what, t.site.file, t.site.line);
    if (t.state == WAITS_WARP) n += snprintf(text + n, sizeof text - n, ", mask %08x", t.mask);
    i = j;
  }
  fail("deadlock in block (%u, %u, %u):%s", block_index.x, block_index.y, block_index.z, text);
}

void run_threads() {
  while (done < count) {
    bool skipped = false;
    if (launch->schedule >= RANDOM) shuffle_order(0, count);
    for (bool& s : skip) skipped |= s = launch->schedule == EAGER && random_bits() % 2;
    turn = 0;
    self = next_ready();
    if (self)
      cg_switch(&scheduler, self->stack_pointer);
    else if (!skipped)
      deadlock();
  }
}

void start_block(unsigned number) {
  block_number = number;
  block_index = {number % grid_size.x, number / grid_size.x % grid_size.y, number / grid_size.x / grid_size.y};
  if (static_end > static_start) memset(static_start, 0xff, static_end - static_start);
  if (launch->shared_bytes) memset(dynamic_shared, 0xff, launch->shared_bytes);
  done = at_barrier = 0;
  block_epoch = 1;
  copies_block();
  memset(warps, 0, sizeof warps);
  for (int i = 0; i < count; ++i) {
    Thread& t = threads[i];
    t.index = {i % block_size.x, i / block_size.x % block_size.y, i / block_size.x / block_size.y};
    t.number = i, t.warp = i / 32, t.lane = i % 32, t.state = READY, t.warp_epoch = 1, t.passed = 0;
    t.stack_pointer = fresh_stack(stacks + i * stride + page, ROOM - i % 4 * 1024, run_thread);
    warps[t.warp].exist |= 1u << t.lane;
  }
  set_order();
}

void run_blocks() {
  unsigned blocks = grid_size.x * grid_size.y * grid_size.z;
  std::vector<unsigned> turn(blocks);
  for (unsigned i = 0; i < blocks; ++i) turn[i] = launch->schedule == REVERSED ? blocks - 1 - i : i;
  if (launch->schedule >= RANDOM)
    for (unsigned i = blocks; i > 1; --i) std::swap(turn[i - 1], turn[random_bits() % i]);
  for (unsigned number : turn) {
    start_block(number);
    check_block();
    run_threads();
    check_block_end();
  }
}

bool prepare() {
  page = sysconf(_SC_PAGESIZE);
  // An odd number of pages, and tops a KiB apart: stacks at the same place of 64 KiB would fight for a few cache lines.
  stride = (ROOM + page - 1) / page * page + page;
  if (!launch->stacks) {
    launch->stacks = (char*)map(MOST_THREADS * stride);
    if (!launch->stacks) return false;
    for (int i = 0; i < MOST_THREADS; ++i) mprotect(launch->stacks + i * stride, page, PROT_NONE);
  }
  stacks = launch->stacks;
  const size_t room = (launch->shared_bytes + page - 1) / page * page;
  char* pages = (char*)map(room + page);
  if (!pages) return false;
  mprotect(pages + room, page, PROT_NONE);
  dynamic_end = pages + room;
  dynamic_shared = dynamic_end - (launch->shared_bytes + 15) / 16 * 16;
  static_start = __start_cg_shared, static_end = __stop_cg_shared;
  block_size = {launch->block[0], launch->block[1], launch->block[2]};
  grid_size = {launch->grid[0], launch->grid[1], launch->grid[2]};
  count = block_size.x * block_size.y * block_size.z;
  random_state = launch->seed * 0x9E3779B97F4A7C15ULL | 1;
  return true;
}

}  // namespace

uintptr_t offset_of(void* pc) {
  Dl_info info;
  return dladdr(pc, &info) ? (uintptr_t)pc - (uintptr_t)info.dli_fbase : 0;
}

void fail(const char* format, ...) {
  va_list list;
  va_start(list, format);
  write_message(format, list);
  va_end(list);
  siglongjmp(failed, 1);
}

void fail_at(void* pc, const char* format, ...) {
  launch->pc = offset_of(pc);
  va_list list;
  va_start(list, format);
  write_message(format, list);
  va_end(list);
  siglongjmp(failed, 1);
}

void barrier(Site site) {
  for (int i = 0; at_barrier && i < count; ++i)
    if (threads[i].state == WAITS_BLOCK && !same(threads[i].site, site))
      fail("__syncthreads at %s:%d, while thread %d waits in the one at %s:%d: all threads of a block must meet at the same one",
           site.file, site.line, i, threads[i].site.file, threads[i].site.line);
    else if (threads[i].state == WAITS_BLOCK)
      break;
  self->site = site;
  if (++at_barrier < count) {
    self->state = WAITS_BLOCK;
    pass_on();
    return;
  }
  at_barrier = 0;
  ++block_epoch;
  for (int i = 0; i < count; ++i) {
    if (threads[i].state == WAITS_BLOCK) threads[i].state = READY;
    ++threads[i].passed;
  }
  if (launch->schedule >= RANDOM) pass_on();
}

void collect(Site site, unsigned mask, void* posted, Execute execute) {
  Warp& warp = warps[self->warp];
  Thread* lanes = &threads[self->warp * 32];
  if (!(mask >> self->lane & 1))
    fail("%s at %s:%d: lane %d calls with mask %08x, which does not name it", site.what, site.file, site.line, self->lane,
         mask);
  if (mask & ~warp.exist)
    fail("%s at %s:%d: mask %08x names lanes that the block does not have (%08x exist)", site.what, site.file, site.line,
         mask, warp.exist);
  self->site = site, self->mask = mask, self->posted = posted;
  warp.waiting |= 1u << self->lane;
  if ((warp.waiting & mask) != mask) {
    self->state = WAITS_WARP;
    pass_on();
    return;
  }
  void* operands[32];
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    const Thread& t = lanes[lane];
    if (t.mask != mask || !same(t.site, site))
      fail("%s at %s:%d with mask %08x, while lane %d waits in %s at %s:%d with mask %08x: they would wait for ever",
           site.what, site.file, site.line, mask, lane, t.site.what, t.site.file, t.site.line, t.mask);
    operands[lane] = t.posted;
  }
  execute(mask, operands);
  warp.waiting &= ~mask;
  for (int lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) lanes[lane].state = READY, ++lanes[lane].passed;
  if (launch->schedule == EAGER) pass_on();
}

void sync_warp(Site site, unsigned mask) {
  collect(site, mask, nullptr, [](unsigned mask, void**) {
    if (mask == warps[self->warp].exist)
      for (Thread* t = &threads[self->warp * 32], *end = t + 32; t < end; ++t) ++t->warp_epoch;
  });
}

void note_atomic(void* pc, void* at, size_t bytes) { check_access(pc, at, bytes, true, true); }
void note_fence() { check_fence(); }

uint16_t to_half(float value) {
  uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000;
  bits &= 0x7fffffff;
  if (bits > 0x7f800000) return sign | 0x7e00;
  if (bits >= 0x477ff000) return sign | 0x7c00;  // from 65520 on infinity is nearest
  if (bits < 0x38800000) return sign | (uint16_t)lrintf(fabsf(value) * 16777216.0f);  // subnormal: a multiple of 2^-24
  return sign | (bits + 0xfff + (bits >> 13 & 1) - 0x38000000) >> 13;
}

float from_half(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 0x3ff;
  if (exponent == 31) return of_bits(sign | 0x7f800000 | mantissa << 13);
  if (exponent == 0) return of_bits(sign | bits_of(mantissa * 5.9604644775390625e-8f));
  return of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

#ifndef CG_CHECK
void check_launch() {}
void check_block() {}
void check_block_end() {}
void check_access(void*, const void*, size_t, bool, bool) {}
void check_started(void*, const void*, size_t) {}
void check_landed(void*, const void*, size_t) {}
void check_fence() {}
void check_free() {}
#endif

}  // namespace cg

// What glibc's assert() calls: an assertion of a kernel ends the launch, not the process.
extern "C" __attribute__((noreturn)) void __assert_fail(const char* text, const char*, unsigned, const char*) {
  cg::fail_at(__builtin_return_address(0), "assertion %s failed", text);
  __builtin_unreachable();
}

// Runs a launch; 0, or 1 with the reason in its message. Outputs come back in either case, as far as they were written.
extern "C" __attribute__((visibility("default"))) int cg_run(cg::Launch* given) {
  using namespace cg;
  launch = given;
  self = nullptr;
  if (!prepare()) return snprintf(given->message, given->message_bytes, "out of memory"), 1;
  std::vector<Region> staged(given->count);
  std::vector<void*> values(given->count), pointers(given->count);
  regions = staged.data(), region_count = 0;
  volatile int status = 0;
  for (int i = 0; i < given->count; ++i) {
    Argument& a = given->arguments[i];
    values[i] = a.role == SCALAR ? a.host : &pointers[i];
    pointers[i] = nullptr;
    if (a.role == SCALAR || a.role == MISSING) continue;
    if (!stage(staged[region_count], a)) return snprintf(given->message, given->message_bytes, "out of memory"), 1;
    pointers[i] = staged[region_count++].start;
  }
  kernel_arguments = values.data();
  check_launch();
  {
    Handlers handlers;
    if (sigsetjmp(failed, 1) == 0)
      run_blocks();
    else
      status = 1;
  }
  self = nullptr;
  check_free();
  for (int i = 0; i < region_count; ++i) {
    Region& r = regions[i];
    if (r.argument->role != INPUT) memcpy(r.argument->host, r.start, r.argument->bytes);
    munmap(r.pages, r.length);
  }
  const size_t room = (given->shared_bytes + page - 1) / page * page;
  munmap(dynamic_end - room, room + page);
  return status;
}
