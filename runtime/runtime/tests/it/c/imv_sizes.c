/* Every size from C, in inline functions and loops; also compiled as C++. Prints "ok" when all holds. */
#include <lineup/imv.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                    \
	do {                                                                                \
		if (!(condition)) {                                                         \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
			exit(1);                                                            \
		}                                                                           \
	} while (0)

DEFINE_IMV(char, letter) = 'a';
DEFINE_IMV(signed char, small) = -5;
DEFINE_IMV(unsigned short, port) = 8080;
DEFINE_IMV(short, offset) = -3;
DEFINE_IMV(int, limit) = 10;
DEFINE_IMV(unsigned, mask) = 0xffff0000u;
DEFINE_IMV(long, count) = -1;
DEFINE_IMV(unsigned long, big) = 0x123456789abcdef0ul;
DEFINE_IMV(char *, text) = NULL;
DEFINE_IMV(float, ratio) = 0.5f;
DEFINE_IMV(double, scale) = 2.5;
DEFINE_IMV(char, traced) = 0;
DEFINE_IMV(int, traced_wide) = 0;
DEFINE_IMV(int, uninitialised);
EXPORT_IMV_SYMBOL(limit);

static inline int limit_inline(void)
{
	return imv_read(limit);
}

__attribute__((noinline)) static int limit_sum(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += limit_inline() + imv_read(limit);
	return sum;
}

__attribute__((noinline)) static int conditions(void)
{
	int seen = 0;
	if (imv_cond(traced))
		seen |= 1;
	if (imv_cond(traced_wide))
		seen |= 2;
	if (!imv_cond(text))
		seen |= 4;
	return seen;
}

#define ROUND(name, value)                         \
	do {                                       \
		CHECK(imv_set(name, value) == 0);  \
		CHECK(imv_read(name) == (value));  \
		CHECK(_imv_read(name) == (value)); \
	} while (0)

int main(void);
int main(void)
{
	static char buffer[200];
	CHECK(imv_read(letter) == 'a' && imv_read(small) == -5 && imv_read(port) == 8080);
	CHECK(imv_read(offset) == -3 && imv_read(limit) == 10 && imv_read(mask) == 0xffff0000u);
	CHECK(imv_read(count) == -1 && imv_read(big) == 0x123456789abcdef0ul && imv_read(text) == NULL);
	CHECK(imv_read(ratio) == 0.5f && imv_read(scale) == 2.5 && imv_read(uninitialised) == 0);
	CHECK(conditions() == 4);
	for (int mode = 1; mode >= 0; mode--) {
		CHECK(lineup_imv_set_mode(mode) == 0);
		ROUND(letter, 'z');
		ROUND(small, -128);
		ROUND(port, 65535);
		ROUND(offset, -32768);
		ROUND(limit, -7);
		ROUND(mask, 0xffffffffu);
		ROUND(count, 1l << 62);
		ROUND(big, ~0ul);
		ROUND(text, buffer);
		ROUND(ratio, -1.25f);
		ROUND(scale, 1e300);
		ROUND(limit, 10 + mode);
		CHECK(limit_sum(1000) == 2000 * (10 + mode));
		struct lineup_imv_change both[] = { IMV_CHANGE(traced, 1), IMV_CHANGE(traced_wide, 1 << 20) };
		CHECK(lineup_imv_apply(both, 2) == 0);
		CHECK(conditions() == 3);
		imv_set(traced, 0);
		imv_set(text, NULL);
		CHECK(conditions() == 6);
		imv_set(traced_wide, 0);
	}
	CHECK(lineup_imv_set_mode(7) != 0 && lineup_imv_set_write_path(7) != 0);
	CHECK(lineup_imv_status(buffer, sizeof buffer) > 0);
	printf("ok: %s\n", buffer);
	return 0;
}
