/* A shared object that defines, exports and reads values, and reads one that the program defines. */
#include <lineup/imv.h>

DEFINE_IMV(int, library_level) = 3;
EXPORT_IMV_SYMBOL(library_level);
DEFINE_IMV(unsigned long, library_private) = 77;
DECLARE_IMPORTED_IMV(int, program_level);

__attribute__((visibility("default"))) long library_sum(void)
{
	return imv_read(library_level) * 1000000L + (long)imv_read(library_private) * 1000L + imv_read(program_level);
}

__attribute__((visibility("default"))) int library_is_on(void)
{
	return imv_cond(program_level) ? 1 : 0;
}

__attribute__((visibility("default"))) int library_set(int level)
{
	return imv_set(program_level, level);
}
