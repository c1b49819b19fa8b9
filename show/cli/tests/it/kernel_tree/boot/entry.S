/* The kernel's first instructions, at its virtual address. */
	.section .head, "ax"
	.globl _start
_start:
	movq $stack_end, %rsp
	call begin
	hlt

/* What no compiler knows of: it finds the first device's member by its distance. */
	.text
	.globl probe
	.type probe, @function
probe:
	movl devices+64(%rip), %eax
	ret
	.size probe, . - probe

	.section .bss
	.balign 16384
	.skip 16384
stack_end:
	.section .note.GNU-stack, "", @progbits
