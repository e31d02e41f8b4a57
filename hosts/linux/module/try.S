/* SPDX-License-Identifier: GPL-2.0 */
/* int anysched_try(struct call *, void *stack): anysched_call on that stack, whose panic ends in
 * anysched_escape, which returns from here with -1 instead. One caller at a time: the stack pointer is
 * kept in one place.
 *
 * A stack of the kernel's own has 16 KiB, of which much may be in use. To build a policy takes more. */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/nospec-branch.h>
#include <asm/unwind_hints.h>

#include "glue.h"

	.bss
	.balign 8
saved:	.quad 0
left:	.quad 0				/* blocks of code until the call has done too much */
lowest:	.quad 0				/* where the stack may end */

/* Returns to the caller of anysched_try, from its frame. */
.macro leave_try
	add $8, %rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	RET
.endm

	.text
SYM_FUNC_START(anysched_try)
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	sub $8, %rsp			/* calls are made with an aligned stack */
	mov %rsp, saved(%rip)
	movq $ANYSCHED_BLOCKS, left(%rip)
	lea (16 + ANYSCHED_FRAME - ANYSCHED_STACK)(%rsi), %rax
	mov %rax, lowest(%rip)
	mov %rsp, (%rsi)		/* in this form objtool knows a change of stacks */
	mov %rsi, %rsp
	call anysched_call
	pop %rsp
	xor %eax, %eax
	leave_try
SYM_FUNC_END(anysched_try)

/* Each block of code of policies that are built to be checked begins with a call of this. */
SYM_FUNC_START(__sanitizer_cov_trace_pc)
	decq left(%rip)
	js too_much
	cmp lowest(%rip), %rsp
	jb too_deep
	RET
SYM_FUNC_END(__sanitizer_cov_trace_pc)

SYM_CODE_START_LOCAL(too_much)
	UNWIND_HINT_UNDEFINED
	mov (%rsp), %rdi
	mov saved(%rip), %rsp
	call anysched_too_much
	jmp anysched_escape
SYM_CODE_END(too_much)

SYM_CODE_START_LOCAL(too_deep)
	UNWIND_HINT_UNDEFINED
	mov (%rsp), %rdi
	mov saved(%rip), %rsp
	call anysched_too_deep
	jmp anysched_escape
SYM_CODE_END(too_deep)

/* The frames of what panicked are left behind: the stack is again that of anysched_try. */
SYM_CODE_START(anysched_escape)
	UNWIND_HINT_UNDEFINED
	mov saved(%rip), %rsp
	mov $-1, %eax
	leave_try
SYM_CODE_END(anysched_escape)
