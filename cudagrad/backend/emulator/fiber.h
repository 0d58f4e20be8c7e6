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

#elif defined(__aarch64__) && !defined(CG_UCONTEXT)

// Saves what a call preserves: x19 to x28, the frame's pointer x29, the low halves of v8 to v15; x30 says where to go on.
extern "C" void cg_switch(void** save, void* load) __attribute__((visibility("hidden")));
asm(R"(
.text
.globl cg_switch
.hidden cg_switch
.type cg_switch, %function
cg_switch:
  stp x29, x30, [sp, #-160]!
  stp x19, x20, [sp, #16]
  stp x21, x22, [sp, #32]
  stp x23, x24, [sp, #48]
  stp x25, x26, [sp, #64]
  stp x27, x28, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #16]
  ldp x21, x22, [sp, #32]
  ldp x23, x24, [sp, #48]
  ldp x25, x26, [sp, #64]
  ldp x27, x28, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  ldp x29, x16, [sp], #160
  mov x30, xzr
  br x16
.size cg_switch, .-cg_switch
)");

// As above; the frame's pointer and the return address of `start` are zero.
inline void* fresh_stack(char* bottom, size_t bytes, void (*start)()) {
  uintptr_t* top = (uintptr_t*)(bottom + bytes) - 20;
  for (int i = 0; i < 20; ++i) top[i] = 0;
  top[1] = (uintptr_t)start;
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
