/* Sites of every size and both kinds, on pages of their own: switching them on takes many writes. */
#include <lineup/imv.h>

DEFINE_IMV(unsigned char, size_1) = 1;
DEFINE_IMV(unsigned short, size_2) = 1;
DEFINE_IMV(unsigned int, size_4) = 1;
DEFINE_IMV(unsigned long, size_8) = 1;

#define PAGE_OF_ITS_OWN __attribute__((noinline, aligned(4096)))

PAGE_OF_ITS_OWN static int read_1(void)
{
	return imv_read(size_1);
}

PAGE_OF_ITS_OWN static int read_2(void)
{
	return imv_read(size_2);
}

PAGE_OF_ITS_OWN static int read_4(void)
{
	return (int)imv_read(size_4);
}

PAGE_OF_ITS_OWN static int read_8(void)
{
	return (int)imv_read(size_8);
}

PAGE_OF_ITS_OWN static int is_set(void)
{
	return imv_cond(size_8) ? 1 : 0;
}

/* Whether every site reads `value`. */
__attribute__((visibility("default"))) int reads_are(int value)
{
	return read_1() == value && read_2() == value && read_4() == value && read_8() == value &&
	       is_set() == (value != 0);
}

__attribute__((visibility("default"))) int set_all(int value)
{
	struct lineup_imv_change changes[] = { IMV_CHANGE(size_1, (unsigned char)value),
					       IMV_CHANGE(size_2, (unsigned short)value),
					       IMV_CHANGE(size_4, (unsigned int)value),
					       IMV_CHANGE(size_8, (unsigned long)value) };
	return lineup_imv_apply(changes, 4);
}
