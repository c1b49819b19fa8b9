/* A boot image: the header that boot loaders read, code that leaves real mode, and the kernel. Linked at 0: the loader puts
   the first five sectors at 0x10000, and what follows at 0x100000. */
	.code16
	.section .setup, "ax"
	.org 0x1f1
	.byte 4				/* sectors after the first */
	.word 0
	.long (end - protected) / 16	/* size of what follows them */
	.org 0x1fe
	.word 0xaa55
	.byte 0xeb, go - 0x202		/* where the loader jumps to */
	.ascii "HdrS"
	.word 0x20c
	.org 0x211
	.byte 1				/* loaded at 0x100000 */
	.org 0x22c
	.long 0x7fffffff		/* the highest address of an initramfs */
	.long 0x100000
	.org 0x248
	.long kernel - protected
	.long end - kernel
	.org 0x270
go:	cli
	lgdtl %cs:table_place - 0x200
	movl %cr0, %eax
	orl $1, %eax
	movl %eax, %cr0
	ljmpl $8, $0x100000
	.balign 8
table:	.quad 0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00af9b000000ffff
table_place:
	.word 31
	.long 0x10000 + table
	.org 5 * 512

/* At 0x100000, in 32 bits: the first GiB where it is and at the top, in pages of 1 GiB. */
	.code32
protected:
	movl $16, %eax
	movl %eax, %ds
	movl %eax, %es
	movl %eax, %ss
	movl $0x100000 + flat - protected, %esi
	movl $0x1000000, %edi
	movl $(flat_end - flat), %ecx
	rep movsb
	xorl %eax, %eax
	movl $0x10000, %ecx		/* the stack and other zeros behind it */
	rep stosb
	movl $0x200000, %edi		/* the tables */
	movl $0x2000, %ecx
	rep stosb
	movl $0x201003, 0x200000
	movl $0x201003, 0x200ff8
	movl $0x83, 0x201000
	movl $0x83, 0x201ff0		/* the last GiB but one */
	movl $0x200000, %eax
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
	ljmp $24, $(0x100000 + long_mode - protected)
	.code64
long_mode:
	movq $0xffffffff81000000, %rax
	jmp *%rax
	.balign 16
flat:	.incbin "flat"
flat_end:
	.balign 16
kernel:	.incbin "vmlinux"
end:
	.section .note.GNU-stack, "", @progbits
