/* From the emulator's entry (PVH: 32 bits, no paging) to 64-bit C, on two processors. */
        .section .note.Xen, "a", @note
        .balign 4
        .long 4, 8, 18                  /* the name's size, the address's size, "32-bit entry" */
        .asciz "Xen"
        .quad start

/* Memory up to 4 GiB where it is, in pages of 1 GiB, and 64 bits. */
        .macro pages_on
        movl $level4, %eax
        movl %eax, %cr3
        movl %cr4, %eax
        orl $0x20, %eax
        movl %eax, %cr4
        movl $0xc0000080, %ecx
        rdmsr
        orl $0x100, %eax
        wrmsr
        movl %cr0, %eax
        orl $0x80000001, %eax
        movl %eax, %cr0
        .endm

        .section .text
        .code32
        .globl start
start:  cli
        movl $stack0_end, %esp
        /* The other processor begins below 1 MiB, in 16 bits: its code goes there. */
        movl $other_begin, %esi
        movl $0x8000, %edi
        movl $(other_end - other_begin), %ecx
        rep movsb
        pages_on
        lgdt table_place
        ljmp $8, $first

        .code64
first:  movl $stack0_end, %esp
        call data_segments
        xorl %edi, %edi
        call begin
        hlt
second: movl $stack1_end, %esp
        call data_segments
        movl $1, %edi
        call begin
        hlt
/* Writes the first and the last of some words by code of which debug information tells nothing. */
        .globl clear_ends
        .type clear_ends, @function
clear_ends:
        movq $0, (%rdi)
        movq $0, -8(%rdi, %rsi)
        ret
        .size clear_ends, . - clear_ends
data_segments:
        movl $16, %eax
        movl %eax, %ds
        movl %eax, %es
        movl %eax, %ss
        ret

        .code16
other_begin:
        cli
        xorw %ax, %ax
        movw %ax, %ds
        lgdtl (other_place - other_begin + 0x8000)
        pages_on
        ljmpl $8, $second
other_place:
        .word 23
        .long table
other_end:

        .section .data
        .balign 4096
level4: .quad level3 + 3
        .fill 511, 8, 0
level3: .quad 0x00000083, 0x40000083, 0x80000083, 0xc0000083
        .fill 508, 8, 0
table:  .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff
table_place:
        .word 23
        .long table

        .section .bss
        .balign 16384
        .skip 16384
stack0_end:
        .skip 16384
stack1_end:

        .section .note.GNU-stack, "", @progbits
