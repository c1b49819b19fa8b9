#include "imv_inline.hpp"
#include <cstdio>

DEFINE_IMV(int, shared_level) = 4;
int from_b(int n);

int main()
{
	const int values[] = { 4, 9, -1 };
	for (int value : values) {
		if (imv_set(shared_level, value) != 0)
			return 1;
		if (level_times(3) != 3 * value || from_b(5) != 6 * value || level_as<long>() != value)
			return 1;
	}
	std::puts("ok");
	return 0;
}
