//! Where Xen enters, and what it reads of the image before.

use core::arch::global_asm;

// ELF notes (Xen, public/elfnote.h): a PV kernel of 64 bits that can be dom0, loaded where it is
// linked, which makes its own page tables for others.
global_asm!(
    r#"
.macro xen_note type, value:vararg
    .pushsection .note.Xen, "a", @note
    .p2align 2
    .long 4
    .long 2f - 1f
    .long \type
    .asciz "Xen"
1:  \value
2:  .p2align 2
    .popsection
.endm
xen_note 6, .asciz "anysched"
xen_note 5, .asciz "xen-3.0"
xen_note 7, .asciz "0"
xen_note 8, .asciz "generic"
xen_note 3, .quad 0
xen_note 4, .quad 0
xen_note 1, .quad _start
xen_note 10, .asciz "!writable_page_tables|pae_pgdir_above_4gb"
xen_note 17, .long 0x807

    .pushsection .text.start, "ax"
    .globl _start
_start:
    cld
    lea rsp, [rip + stack_end]
    mov rdi, rsi
    call {enter}
    ud2

    .globl _start_other
_start_other:
    cld
    call {enter_other}
    ud2
    .popsection

    .pushsection .bss
    .p2align 12
    .globl shared_info
shared_info:
    .skip 4096
    .globl window
window:
    .skip 4096
stack:
    .skip 131072
stack_end:
    .popsection

    # Behind all that is copied to other domains.
    .pushsection .heap, "aw", @nobits
    .globl own_heap
own_heap:
    .skip 4 << 20
    .globl own_heap_end
own_heap_end:
    .popsection
"#,
    enter = sym crate::enter,
    enter_other = sym crate::smp::enter_other,
);
