/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Immediate values: variables that live in the instruction stream of the code that reads them.
 *
 *     DEFINE_IMV(int, limit) = 10;          in one file, at file scope
 *     DECLARE_IMV(int, limit);              in the other files of the same image
 *     EXPORT_IMV_SYMBOL(limit);             beside the definition, if other images read it
 *     DECLARE_IMPORTED_IMV(int, limit);     in a file of another image
 *
 *     imv_read(limit)     the value: one instruction that carries it
 *     _imv_read(limit)    the value by a plain load: for constructors and destructors
 *     imv_cond(limit)     whether it is not zero: a nop while it is zero
 *     imv_set(limit, v)   every read that starts after this returns sees v; 0, or an errno value
 *
 * Types: integers, _Bool, floating point and pointers of 1, 2, 4 or 8 bytes. GNU C11 or GNU C++11 and later, GCC or
 * Clang, AT&T assembler syntax. On machines other than x86-64 and AArch64 every read is a plain load.
 */
#ifndef LINEUP_IMV_H
#define LINEUP_IMV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lineup_imv_definition {
	void *cell;
	const char *name;
	void *const *origin;
	uint8_t size_bytes;
	uint8_t type_class;
	uint8_t is_signed;
	uint8_t padding[5];
};

struct lineup_imv_change {
	void *cell;
	uint64_t value;
	uint32_t size_bytes;
};

void lineup_imv_register(const void *definitions_start, const void *definitions_stop,
			 const void *sites_start, const void *sites_stop);
void lineup_imv_unregister(const void *definitions_start, const void *definitions_stop,
			   const void *sites_start, const void *sites_stop);

/* Makes several changes for the price of one: build them with IMV_CHANGE. 0, or an errno value. */
int lineup_imv_apply(const struct lineup_imv_change *changes, size_t count);

/* LINEUP_IMV_DIRECT: one aligned store per site and one barrier. LINEUP_IMV_CONSERVATIVE: trap, rest, first byte. */
enum lineup_imv_mode { LINEUP_IMV_DIRECT = 0, LINEUP_IMV_CONSERVATIVE = 1 };
int lineup_imv_set_mode(int mode);

/* How code is written: a way is used only if a trial shows that it works. 0, or an errno value. */
enum lineup_imv_write_path { LINEUP_IMV_PROC_MEM = 0, LINEUP_IMV_ALIAS = 1, LINEUP_IMV_SWAP = 2 };
int lineup_imv_set_write_path(int path);

/* A sentence on how immediate values work in this process; returns its full length. */
size_t lineup_imv_status(char *buffer, size_t room);

/* Opens the socket behind `lineup imv`, for this process's own user alone. 0, or an errno value. */
int lineup_imv_serve(void);

#if defined(__x86_64__) || defined(__aarch64__)
#define LINEUP_IMV_HAS_SITES 1
/* The linker makes these from the sections' names, one pair per image. */
extern const char lineup_imv_defs_start[] __asm__("__start_lineup_imv_defs")
	__attribute__((weak, visibility("hidden")));
extern const char lineup_imv_defs_stop[] __asm__("__stop_lineup_imv_defs")
	__attribute__((weak, visibility("hidden")));
extern const char lineup_imv_sites_start[] __asm__("__start_lineup_imv_sites")
	__attribute__((weak, visibility("hidden")));
extern const char lineup_imv_sites_stop[] __asm__("__stop_lineup_imv_sites")
	__attribute__((weak, visibility("hidden")));

/* One per file that includes this; the runtime keeps one registration per image. */
__attribute__((constructor(101), used)) static void lineup_imv_register_image(void)
{
	lineup_imv_register(lineup_imv_defs_start, lineup_imv_defs_stop, lineup_imv_sites_start,
			    lineup_imv_sites_stop);
}

__attribute__((destructor(101), used)) static void lineup_imv_unregister_image(void)
{
	lineup_imv_unregister(lineup_imv_defs_start, lineup_imv_defs_stop, lineup_imv_sites_start,
			      lineup_imv_sites_stop);
}
#endif

#ifdef __cplusplus
} /* extern "C" */
#endif

#if defined(__has_attribute)
#if __has_attribute(retain)
#define LINEUP_IMV_RETAIN , retain
#endif
#endif
#ifndef LINEUP_IMV_RETAIN
#define LINEUP_IMV_RETAIN
#endif

#ifdef __cplusplus
#define LINEUP_IMV_C extern "C"
#define LINEUP_IMV_EXTERN extern "C"
template <typename T> struct lineup_imv_type {
	static constexpr uint8_t is_signed = T(-1) < T(0);
};
template <typename T> struct lineup_imv_type<T *> {
	static constexpr uint8_t is_signed = 0;
};
template <> struct lineup_imv_type<bool> {
	static constexpr uint8_t is_signed = 0;
};
#define LINEUP_IMV_IS_SIGNED(type) (lineup_imv_type<type>::is_signed)
#define LINEUP_IMV_IS_BOOL(type) (__builtin_classify_type((type)0) == 4 || __is_same(type, bool))
#if defined(__GNUC__) && !defined(__clang__)
#undef LINEUP_IMV_IS_BOOL
#define LINEUP_IMV_IS_BOOL(type) (__is_same_as(type, bool))
#endif
#define LINEUP_IMV_STATIC_ASSERT static_assert
#else
#define LINEUP_IMV_C
#define LINEUP_IMV_EXTERN extern
/* A pointer cannot be compared with -1 in a constant: its place is taken by an unsigned integer. */
#define LINEUP_IMV_NUMBER(type) \
	__typeof__(__builtin_choose_expr(__builtin_classify_type((type)0) == 5, 0UL, (type)0))
#define LINEUP_IMV_IS_SIGNED(type) ((LINEUP_IMV_NUMBER(type))-1 < (LINEUP_IMV_NUMBER(type))1)
#define LINEUP_IMV_IS_BOOL(type) __builtin_types_compatible_p(type, _Bool)
#define LINEUP_IMV_STATIC_ASSERT _Static_assert
#endif

#define LINEUP_IMV_CLASS(type) \
	(LINEUP_IMV_IS_BOOL(type) ? 1 : __builtin_classify_type((type)0) == 8 ? 2 : 0)

#define LINEUP_IMV_RECORD(type, name, from)                                                                  \
	static struct lineup_imv_definition name##__imv_definition __attribute__((used LINEUP_IMV_RETAIN)) = {   \
		(void *)&name##__imv,                                                                            \
		#name,                                                                                           \
		from,                                                                                            \
		(uint8_t)sizeof(type),                                                                           \
		(uint8_t)LINEUP_IMV_CLASS(type),                                                                 \
		(uint8_t)(LINEUP_IMV_IS_BOOL(type) ? 0 : LINEUP_IMV_IS_SIGNED(type)),                            \
		{ 0, 0, 0, 0, 0 }                                                                                \
	};                                                                                                       \
	static struct lineup_imv_definition *name##__imv_listed                                                  \
		__attribute__((used, section("lineup_imv_defs") LINEUP_IMV_RETAIN)) = &name##__imv_definition;   \
	LINEUP_IMV_STATIC_ASSERT(sizeof(type) == 1 || sizeof(type) == 2 || sizeof(type) == 4 ||                  \
					 sizeof(type) == 8,                                                      \
				 "an immediate value has 1, 2, 4 or 8 bytes")

#define DECLARE_IMV(type, name) \
	LINEUP_IMV_EXTERN __typeof__(type) name##__imv __attribute__((visibility("hidden")))

#define DEFINE_IMV(type, name)               \
	DECLARE_IMV(type, name);             \
	LINEUP_IMV_RECORD(type, name, NULL); \
	__typeof__(type) name##__imv __attribute__((aligned(sizeof(type))))

/* A second, visible name for the variable. */
#define EXPORT_IMV_SYMBOL(name)                    \
	LINEUP_IMV_EXTERN __typeof__(name##__imv) name##__imv_exported \
		__attribute__((alias(#name "__imv"), visibility("default")))

/* Each importing image has a mirror of its own; the runtime keeps it equal. */
#define DECLARE_IMPORTED_IMV(type, name)                                                                      \
	LINEUP_IMV_EXTERN __typeof__(type) name##__imv_exported;                                              \
	LINEUP_IMV_EXTERN __typeof__(type) name##__imv __attribute__((weak, visibility("hidden")));           \
	__typeof__(type) name##__imv __attribute__((weak, visibility("hidden"), aligned(sizeof(type)))) =     \
		(__typeof__(type))0;                                                                          \
	static void *name##__imv_origin __attribute__((used)) = (void *)&name##__imv_exported;                \
	LINEUP_IMV_RECORD(type, name, (void *const *)&name##__imv_origin)

#define _imv_read(name) (*(const volatile __typeof__(name##__imv) *)&name##__imv)

#define LINEUP_IMV_BITS(name, value)                                        \
	__extension__({                                                     \
		__typeof__(name##__imv) lineup_typed = (value);             \
		uint64_t lineup_bits = 0;                                   \
		__builtin_memcpy(&lineup_bits, &lineup_typed, sizeof lineup_typed); \
		lineup_bits;                                                \
	})

#define IMV_CHANGE(name, value) \
	{ (void *)&name##__imv, LINEUP_IMV_BITS(name, value), (uint32_t)sizeof(name##__imv) }

#define imv_set(name, value)                                                           \
	__extension__({                                                                \
		struct lineup_imv_change lineup_change = IMV_CHANGE(name, value);      \
		lineup_imv_apply(&lineup_change, 1);                                   \
	})

#ifndef LINEUP_IMV_HAS_SITES
#define imv_read(name) _imv_read(name)
#define imv_cond(name) (_imv_read(name) != (__typeof__(name##__imv))0)
#else

/* %= would do for names, but a function may be inlined or unrolled into one assembler unit many times: numbers. */
#define LINEUP_IMV_SITE(target, kind)                              \
	".pushsection lineup_imv_sites,\"aR?\",%%progbits\n"       \
	".balign 8\n"                                              \
	".quad 772b - .\n"                                         \
	".quad %c[cell] - .\n"                                     \
	".quad " target "\n"                                       \
	".byte %c[size], " kind ", 0, 0, 0, 0, 0, 0\n"             \
	".popsection\n"

#if defined(__x86_64__)
#define LINEUP_IMV_CELL "i"
#define LINEUP_IMV_VALUE_ASM                              \
	".if %c[size] == 8\n"                             \
	".balign 8\n"                                     \
	".byte 0x66, 0x0f, 0x1f, 0x44, 0, 0\n"            \
	"772: .byte 0x3e, 0x3e, 0x3e\n"                   \
	"movq %c[cell](%%rip), %q[bits]\n"                \
	".else\n"                                         \
	".balign 8\n"                                     \
	"772: .byte 0x3e\n"                               \
	".if %c[size] == 4\n"                             \
	".byte 0x3e\n"                                    \
	"movl %c[cell](%%rip), %k[bits]\n"                \
	".elseif %c[size] == 2\n"                         \
	"movzwl %c[cell](%%rip), %k[bits]\n"              \
	".else\n"                                         \
	"movzbl %c[cell](%%rip), %k[bits]\n"              \
	".endif\n"                                        \
	".endif\n" LINEUP_IMV_SITE("0", "0")
#define LINEUP_IMV_OUT "=R"
#define LINEUP_IMV_BRANCH_ASM                             \
	".balign 8\n"                                     \
	"772: .byte 0xe9\n"                               \
	".long 773f - . - 4\n"                            \
	"774:\n"                                          \
	".subsection 1\n"                                 \
	".if %c[size] == 8\n"                             \
	"773: cmpq $0, %c[cell](%%rip)\n"                 \
	".elseif %c[size] == 4\n"                         \
	"773: cmpl $0, %c[cell](%%rip)\n"                 \
	".elseif %c[size] == 2\n"                         \
	"773: cmpw $0, %c[cell](%%rip)\n"                 \
	".else\n"                                         \
	"773: cmpb $0, %c[cell](%%rip)\n"                 \
	".endif\n"                                        \
	"jne %l[lineup_yes]\n"                            \
	"jmp 774b\n"                                      \
	".previous\n" LINEUP_IMV_SITE("%l[lineup_yes] - .", "1")
#define LINEUP_IMV_BRANCH_CLOBBERS "cc", "memory"
#else
#define LINEUP_IMV_CELL "S"
#define LINEUP_IMV_LOAD(full, half)                       \
	"773: adrp " full ", %[cell]\n"                   \
	".if %c[size] == 8\n"                             \
	"ldr " full ", [" full ", :lo12:%[cell]]\n"       \
	".elseif %c[size] == 4\n"                         \
	"ldr " half ", [" full ", :lo12:%[cell]]\n"       \
	".elseif %c[size] == 2\n"                         \
	"ldrh " half ", [" full ", :lo12:%[cell]]\n"      \
	".else\n"                                         \
	"ldrb " half ", [" full ", :lo12:%[cell]]\n"      \
	".endif\n"
#define LINEUP_IMV_VALUE_ASM                              \
	".if %c[size] >= 4\n"                             \
	".balign 16\n"                                    \
	"772: b 773f\n"                                   \
	"b 774f\n"                                        \
	".quad 0\n"                                       \
	".else\n"                                         \
	"772: b 773f\n"                                   \
	".endif\n"                                        \
	"774:\n"                                          \
	".subsection 1\n" LINEUP_IMV_LOAD("%x[bits]", "%w[bits]") \
	"b 774b\n"                                        \
	".previous\n" LINEUP_IMV_SITE("773b - .", "0")
#define LINEUP_IMV_OUT "=r"
/* An asm goto has no outputs in the oldest compilers supported: x17 is the scratch register of calls. */
#define LINEUP_IMV_BRANCH_ASM                             \
	"772: b 773f\n"                                   \
	"774:\n"                                          \
	".subsection 1\n" LINEUP_IMV_LOAD("x17", "w17")   \
	"cbnz x17, %l[lineup_yes]\n"                      \
	"b 774b\n"                                        \
	".previous\n" LINEUP_IMV_SITE("%l[lineup_yes] - .", "1")
#define LINEUP_IMV_BRANCH_CLOBBERS "x17", "memory"
#endif

#define imv_read(name)                                                                         \
	__extension__({                                                                        \
		uint64_t lineup_bits;                                                          \
		__typeof__(name##__imv) lineup_value;                                          \
		__asm__ volatile(LINEUP_IMV_VALUE_ASM                                          \
				 : [bits] LINEUP_IMV_OUT(lineup_bits)                          \
				 : [cell] LINEUP_IMV_CELL(&name##__imv),                       \
				   [size] "i"(sizeof(name##__imv)));                           \
		__builtin_memcpy(&lineup_value, &lineup_bits, sizeof lineup_value);            \
		lineup_value;                                                                  \
	})

#define imv_cond(name)                                                                         \
	__extension__({                                                                        \
		__label__ lineup_yes, lineup_done;                                             \
		int lineup_is_set;                                                             \
		__asm__ goto(LINEUP_IMV_BRANCH_ASM                                             \
			     :                                                                 \
			     : [cell] LINEUP_IMV_CELL(&name##__imv), [size] "i"(sizeof(name##__imv)) \
			     : LINEUP_IMV_BRANCH_CLOBBERS                                      \
			     : lineup_yes);                                                    \
		lineup_is_set = 0;                                                             \
		goto lineup_done;                                                              \
	lineup_yes:                                                                            \
		lineup_is_set = 1;                                                             \
	lineup_done:                                                                           \
		lineup_is_set;                                                                 \
	})
#endif /* LINEUP_IMV_HAS_SITES */

#endif /* LINEUP_IMV_H */
