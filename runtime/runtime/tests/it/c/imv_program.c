/* Loads and unloads imv_library.so ARGV[1] ARGV[2] times while a thread keeps setting a value that it imports. */
#include <dlfcn.h>
#include <lineup/imv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

DEFINE_IMV(int, program_level) = 5;
EXPORT_IMV_SYMBOL(program_level);

static atomic_int stop;

static void *keep_setting(void *unused)
{
	(void)unused;
	for (int level = 1; !atomic_load(&stop); level = level % 900 + 1)
		if (imv_set(program_level, level) != 0 || imv_read(program_level) != level)
			abort();
	return NULL;
}

static void *symbol(void *library, const char *name)
{
	void *address = dlsym(library, name);
	if (!address) {
		fprintf(stderr, "%s: %s\n", name, dlerror());
		exit(1);
	}
	return address;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	pthread_t setter;
	pthread_create(&setter, NULL, keep_setting, NULL);
	int rounds = atoi(argv[2]);
	for (int i = 0; i < rounds; i++) {
		void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		long (*sum)(void) = (long (*)(void))symbol(library, "library_sum");
		int (*is_on)(void) = (int (*)(void))symbol(library, "library_is_on");
		long seen = sum();
		if (seen / 1000000 != 3 || seen / 1000 % 1000 != 77 || seen % 1000 < 1 || seen % 1000 > 900 || !is_on()) {
			fprintf(stderr, "round %d: %ld\n", i, seen);
			return 1;
		}
		dlclose(library);
	}
	atomic_store(&stop, 1);
	pthread_join(setter, NULL);

	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	long (*sum)(void) = (long (*)(void))symbol(library, "library_sum");
	int (*set)(int) = (int (*)(int))symbol(library, "library_set");
	if (set(42) != 0 || imv_read(program_level) != 42 || sum() != 3077042)
		return 1;
	printf("ok: %d rounds\n", rounds);
	return 0;
}
