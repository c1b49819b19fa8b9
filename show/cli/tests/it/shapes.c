/* Shapes of members that layouts must get right. Compiled by the tests, never linked. */
#include <stddef.h>

struct plain { char c; long l; short s; int i; };
struct nested { char c; struct plain p; struct plain a[3]; char tail; };
struct anonymous { int kind; union { long l; struct { char x, y; int z; }; double d; }; char end; };
struct named_inner { struct { char a; int b; } one; union { char c; long l; } two; };
struct bits { int a : 3; unsigned b : 5; int c : 24; long long d : 40; int e : 1; };
struct bits_then_byte { int a : 3; char c; int d : 9; short s; };
struct bits_of_chars { unsigned char a : 1, b : 7, c : 4; unsigned short d : 9; char e; };
struct bits_barrier { int a : 3; int : 0; int b : 4; int : 7; int c : 2; };
struct bits_wide { unsigned long long a : 33; unsigned long long b : 31; unsigned long long c : 1; };
struct bits_mixed { char c; int a : 20; short s; int b : 4; long l; };
struct bits_last { long l; int a : 30; };
struct bits_enum { enum { ONE, TWO } mode : 2; _Bool on : 1; _Bool off : 1; };
struct packed { char c; long l; short s; } __attribute__((packed));
struct packed_bits { int a : 3; int b : 30; int c : 7; char d; } __attribute__((packed));
struct aligned { int i; char c __attribute__((aligned(32))); } __attribute__((aligned(64)));
struct flexible { int n; long items[]; };
struct zero_length { int n; char marker[0]; long l; char end[0]; };
struct grid { char name[3][5]; int cells[2][3][4]; void (*calls[4])(int); };
struct pointers { const char *const *names; volatile int *v; struct opaque *o; int (*f)(struct plain *, ...); };
struct big { char a[60]; long straddles; char b[200]; double d; };
struct empty { };
struct with_empty { struct empty e; int i; };
typedef struct { char c; int i; } by_typedef;
struct uses_typedef { by_typedef t; by_typedef *p; char c; };
struct long_doubles { char c; long double d; long long q; char e; };

struct all {
	struct plain *a; struct nested *b; struct anonymous *c; struct named_inner *d; struct bits *e;
	struct bits_then_byte *f; struct bits_of_chars *g; struct bits_barrier *h; struct bits_wide *i;
	struct bits_mixed *j; struct bits_last *k; struct bits_enum *l; struct packed *m; struct packed_bits *n;
	struct aligned *o; struct flexible *p; struct zero_length *q; struct grid *r; struct pointers *s;
	struct big *t; struct with_empty *u; struct uses_typedef *v; struct long_doubles *w;
};

struct all all;
