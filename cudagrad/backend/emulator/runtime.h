// What runtime.cpp and check.cpp share: the memory of the launch under way, and the words of a report.
#pragma once

#include "cuda_emulated.h"

namespace cg {

enum Role { SCALAR, INPUT, OUTPUT, IN_PLACE, MISSING };

struct Argument {  // as Python's ctypes.Structure of the same name has it
  void* host;      // where the array or the scalar lies
  size_t bytes;
  int role;
  const char* name;
  long long unwritten;  // of an output, after a checked run: the first byte that nothing has written; -1: none
};

struct Region {  // an array's copy on the device: pages of its own between addresses that may not be touched
  char *pages, *start, *end;
  size_t length;
  const Argument* argument;
};

struct Line {  // what the accesses of one instruction cost; kind: 0 global load, 1 store, 2 shared load, 3 store
  uint32_t pc;
  int kind;
  uint64_t requests, moved, ideal;
};

struct Launch {
  void (*call)(void**);
  Argument* arguments;
  int count;
  unsigned grid[3], block[3];
  size_t shared_bytes;
  int schedule;
  uint64_t seed;
  char* stacks;  // of the threads; made by the first launch of the process and handed to all others
  char* message;
  size_t message_bytes;
  uintptr_t pc;  // where the error arose, as an offset into the library; 0 where no code address is known
  Line* lines;   // of check mode
  int most_lines, line_count;
  uint64_t touched;  // bytes of arrays read and bytes written, each byte once
};

extern Launch* launch;
extern Region* regions;
extern int region_count;
extern unsigned block_epoch, block_number;
extern char *dynamic_end, *static_start, *static_end;
extern void* accessing;  // the code address in the kernel for which memory.cpp makes an access; null outside of one

uintptr_t offset_of(void* pc);
[[noreturn]] void fail_at(void* pc, const char* format, ...) __attribute__((format(printf, 2, 3)));

// The name of the array or the shared memory that holds an address, for a report.
void describe(const void* at, char* text, size_t bytes);
bool in_shared(const void* at, size_t bytes);
[[noreturn]] void fail_outside(void* pc, const char* what, const void* at);

// memory.cpp's part: what becomes of a thread's asynchronous copies when a block starts and when the thread returns.
void copies_block();
void copies_thread_end();

// The checker's part; nothing happens in a build without CG_CHECK.
void check_launch();
void check_block();
void check_block_end();
void check_access(void* pc, const void* at, size_t bytes, bool writes, bool atomic);
void check_fence();
void check_started(void* pc, const void* to, size_t bytes);  // an asynchronous write that may land from now on ...
void check_landed(void* pc, const void* to, size_t bytes);   // ... and has landed now
void check_free();

}  // namespace cg
