// Signals, threads, forks, libraries that come and go, exceptions and long jumps, all at once.
#include <pthread.h>
#include <signal.h>
#include <setjmp.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
#include <sys/time.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <atomic>
#include <map>
#include <string>
#include <stdexcept>
#include <vector>
static std::atomic<bool> over;
static std::atomic<long> ticks, faults, forked, bad, thrown, jumped, loaded;
static thread_local sigjmp_buf fault_place; static thread_local volatile int armed;
static void tick(int) { ticks++; }
static void usr(int, siginfo_t *, void *c) { volatile char b[256]; memset((void*)b, 1, sizeof b); if (((ucontext_t*)c)->uc_mcontext.gregs[REG_RIP] == 0) bad++; }
static void fault(int, siginfo_t *, void *) { faults++; if (armed) siglongjmp(fault_place, 1); _exit(99); }
extern "C" __attribute__((noinline)) long leaf(long x) { static thread_local long t[64]; t[x & 63] += x; return t[(x * 7) & 63] + x; }
extern "C" __attribute__((noinline)) long thrower(long x) { if (x % 7 == 0) throw std::runtime_error("seven"); if (x % 11 == 0) throw x; return leaf(x); }
extern "C" __attribute__((noinline)) long work_exceptions(long x) {
  std::map<long, std::string> m; long s = 0;
  for (long i = 0; i < 20; i++) { try { s += thrower(x + i); m[i % 5] = std::to_string(s); } catch (const std::exception &e) { s += strlen(e.what()); thrown++; } catch (long v) { s ^= v; thrown++; } }
  if (x % 13 == 0) throw std::string("out");
  return s + (long)m.size();
}
extern "C" __attribute__((noinline)) long work_jumps(long x, jmp_buf *out) {
  jmp_buf in; volatile long s = x;
  for (volatile int i = 0; i < 5; i++) { int r = setjmp(in); if (r < 3) { s += leaf(s) & 0xff; longjmp(in, r + 1); } jumped++; }
  if (x % 5 == 0) longjmp(*out, 3);
  return s;
}
extern "C" __attribute__((noinline)) long work_faults(long x) {
  armed = 1; volatile long s = x;
  if (sigsetjmp(fault_place, 1) == 0) { if (x % 3 == 0) *(volatile int *)(x & 0xff8) = 1; s += leaf(x); } else s += 5;
  armed = 0; return s;
}
extern "C" __attribute__((noinline)) long work_loads(long x) {
  void *h = dlopen("./plug.so", RTLD_NOW | RTLD_LOCAL); if (!h) { bad++; return 0; }
  long (*f)(long) = (long (*)(long))dlsym(h, "plug"); long s = f(x); 
  if (x % 4 == 0) dlclose(h); loaded++; return s;
}
extern "C" __attribute__((noinline)) long work_forks(long x) {
  pid_t p = fork();
  if (p == 0) { long s = 0; for (int i = 0; i < 20; i++) { try { s += work_exceptions(i); } catch (...) {} } s += work_faults(3); signal(SIGUSR2, SIG_IGN); raise(SIGUSR2); free(malloc(100000)); _exit(s ? 3 : 4); }
  int st; while (waitpid(p, &st, 0) < 0) ; if (!WIFEXITED(st) || WEXITSTATUS(st) != 3) { bad++; fprintf(stderr, "child %x\n", st); } forked++; return st;
}
static void *run(void *arg) {
  long id = (long)arg, s = 0; jmp_buf out;
  stack_t ss = {}; if (id & 1) { ss.ss_sp = malloc(1 << 16); ss.ss_size = 1 << 16; sigaltstack(&ss, 0); }
  for (volatile long i = 0; !over; i++) {
    switch ((i + id) % 6) {
      case 0: try { s += work_exceptions(i); } catch (const std::string &) { thrown++; } break;
      case 1: if (setjmp(out) == 0) s += work_jumps(i, &out); else jumped++; break;
      case 2: s += work_faults(i); break;
      case 3: if (i % 40 == 3) s += work_loads(i); break;
      case 4: if (i % 200 == 4) s += work_forks(i); break;
      case 5: { sigset_t all, old; sigfillset(&all); pthread_sigmask(SIG_SETMASK, &all, &old); s += leaf(i); pthread_sigmask(SIG_SETMASK, &old, 0); struct timespec t = {0, 1000}; nanosleep(&t, 0); void *m = mmap(0, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0); memset(m, 1, 8192); munmap(m, 8192); }
    }
  }
  return (void *)s;
}
int main() {
  const char *given = getenv("TORTURE_SECONDS"); int seconds = given ? atoi(given) : 3;
  struct sigaction a = {}; a.sa_handler = tick; a.sa_flags = SA_RESTART; sigaction(SIGALRM, &a, 0); a.sa_flags |= SA_ONSTACK; sigaction(SIGPROF, &a, 0);
  struct sigaction b = {}; b.sa_sigaction = usr; b.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK; sigaction(SIGUSR1, &b, 0);
  struct sigaction f = {}; f.sa_sigaction = fault; f.sa_flags = SA_SIGINFO | SA_ONSTACK; sigaction(SIGSEGV, &f, 0);
  struct itimerval t = {{0, 700}, {0, 700}}; setitimer(ITIMER_REAL, &t, 0); struct itimerval p = {{0, 1000}, {0, 1000}}; setitimer(ITIMER_PROF, &p, 0);
  for (long i = 0; i < 8; i++) work_loads(i);
  pthread_t th[4]; for (long i = 0; i < 4; i++) pthread_create(&th[i], 0, run, (void *)i);
  time_t end = time(0) + seconds; long k = 0;
  while (time(0) < end) { pthread_kill(th[k++ & 3], SIGUSR1); usleep(300); }
  over = true; for (auto x : th) pthread_join(x, 0);
  printf("ticked %x\nfaulted %x\nbad %lx\n", ticks > 0, faults > 0, (long)bad);
  return bad != 0;
}
