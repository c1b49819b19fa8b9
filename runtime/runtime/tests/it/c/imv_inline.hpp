// An inline function whose copies the linker merges, with a site in each.
#pragma once
#include <lineup/imv.h>

DECLARE_IMV(int, shared_level);

inline int level_times(int n)
{
	return n * imv_read(shared_level);
}

template <typename T> T level_as()
{
	return static_cast<T>(imv_read(shared_level));
}
