#include "imv_inline.hpp"

int from_b(int n)
{
	return level_times(n) + level_as<int>();
}
