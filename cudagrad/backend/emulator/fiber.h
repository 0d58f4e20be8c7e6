// A switch between stacks: `cg_switch(&save, load)` keeps this stack's pointer in `save` and goes on on the stack `load`.
#pragma once

#include <cstdint>

#if defined(__x86_64__) && !defined(CG_UCONTEXT)

// By `jmp` and not `ret`: the return predictor would be wrong at every switch, 4 ns against 14 (Zen 4).
extern "C" void cg_switch(void** save, void* load) __attribute__((visibility("hidden")));
asm(R"(
.text
.globl cg_switch
.hidden cg_switch
.type cg_switch, @function
cg_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
.size cg_switch, .-cg_switch
)");

// The pointer of a stack [bottom, bottom + bytes) whose first switch enters `start`, which must not return.
inline void* fresh_stack(char* bottom, size_t bytes, void (*start)()) {
  uintptr_t* top = (uintptr_t*)(bottom + bytes);
  *--top = 0;  // where `start` would return to; also puts the stack on 16 bytes as after a call
  *--top = (uintptr_t)start;
  for (int i = 0; i < 6; ++i) *--top = 0;
  return top;
}

#else  // any other processor: half a microsecond a switch, for the signal mask is a system call

#include <ucontext.h>

#include <new>


inline void cg_switch(void** save, void* load) {
  if (!*save) *save = new ucontext_t();
  swapcontext((ucontext_t*)*save, (ucontext_t*)load);
}

inline void* fresh_stack(char* bottom, size_t bytes, void (*start)()) {
  ucontext_t* context = new (bottom) ucontext_t();  // at the far end of the stack it describes
  getcontext(context);
  size_t head = (sizeof(ucontext_t) + 63) / 64 * 64;
  context->uc_stack.ss_sp = bottom + head;
  context->uc_stack.ss_size = bytes - head;
  context->uc_link = nullptr;
  makecontext(context, start, 0);
  return context;
}

#endif
