/*
 * ARGV[1] names what a seccomp filter forbids: "mem" /proc/self/mem, "write" every way to write to code, "barrier"
 * the membarrier call. The filter is set before the runtime is loaded (ARGV[2]), so the runtime meets it at start.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int forbid(const int *calls, int count)
{
	struct sock_filter filter[16];
	int n = 0;
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < count; i++) {
		filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { (unsigned short)n, filter };
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
	static const int mem[] = { SYS_pwrite64 };
	static const int every[] = { SYS_pwrite64, SYS_mremap, SYS_memfd_create };
	static const int barrier[] = { SYS_membarrier };
	if (argc < 3)
		return 2;
	int failed = !strcmp(argv[1], "mem")     ? forbid(mem, 1)
		     : !strcmp(argv[1], "write") ? forbid(every, 3)
						 : forbid(barrier, 1);
	if (failed) {
		perror("seccomp");
		return 2;
	}
	void *library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	int (*run)(void) = (int (*)(void))dlsym(library, "run");
	return run ? run() : 1;
}
