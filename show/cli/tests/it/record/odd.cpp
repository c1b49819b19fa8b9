// What is hard to follow: each function is recorded, and what they come to is printed.
#include <ucontext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <setjmp.h>
#include <execinfo.h>
#include <pthread.h>
#include <unistd.h>
#include <math.h>
#include <time.h>
#include <sys/time.h>
#include <locale.h>
#include <regex.h>
#include <stdexcept>
#include <thread>
#include <vector>
#include <future>
#include <regex>
#include <algorithm>
#include <sstream>
#include <iostream>
#include <alloca.h>
static ucontext_t a, b; static int steps; static char st[1<<16];
static void routine() { for (int i = 0; i < 5; i++) { steps += i; swapcontext(&b, &a); } }
extern "C" __attribute__((noinline)) int coroutines(int x) { getcontext(&b); b.uc_stack.ss_sp = st; b.uc_stack.ss_size = sizeof st; b.uc_link = &a; makecontext(&b, routine, 0); for (int i = 0; i < 5; i++) swapcontext(&a, &b); return steps + x; }
extern "C" __attribute__((noinline)) int heap_coroutines(int x) { char *s = (char*)malloc(1<<16); getcontext(&b); b.uc_stack.ss_sp = s; b.uc_stack.ss_size = 1<<16; b.uc_link = &a; makecontext(&b, routine, 0); for (int i = 0; i < 6; i++) swapcontext(&a, &b); free(s); return steps + x; }
static int cmp(const void *p, const void *q) { int x = *(int*)p, y = *(int*)q; if (x == 77 && y) throw std::runtime_error("in qsort"); return x - y; }
extern "C" __attribute__((noinline)) int sorts(int x) { std::vector<int> v; for (int i = 0; i < 100; i++) v.push_back((i * 37 + x) % 101); int r = 0; try { qsort(v.data(), v.size(), 4, cmp); } catch (const std::exception &e) { r = strlen(e.what()); } std::sort(v.begin(), v.end()); return v[50] + r; }
extern "C" __attribute__((noinline)) int traces(int x) { void *f[32]; int n = backtrace(f, 32); char **s = backtrace_symbols(f, n); int r = 0; for (int i = 0; i < n; i++) r += strchr(s[i], '(') != 0; free(s); return n > 2 && r > 2 ? x : -1; }
extern "C" __attribute__((noinline)) int commands(int x) { FILE *f = popen("echo 41", "r"); int v = 0; if (fscanf(f, "%d", &v) != 1) v = -1; int s = pclose(f); return v + s + WEXITSTATUS(system("exit 5")) + x; }
extern "C" __attribute__((noinline)) double sums(int x) { double s = 0; for (int i = 1; i < 50; i++) s += sin(i + x) * exp(-i) + pow(i, 0.3) + fmod(i, 3.1) + (long double)i / 7; char t[64]; snprintf(t, 64, "%.10Lg", (long double)s); return atof(t); }
extern "C" __attribute__((noinline)) int streams(int x) { std::ostringstream o; o << x << " " << 3.5 << std::hex << 255; std::regex r("([0-9]+) ([0-9.]+)"); std::smatch m; std::string t = o.str(); return std::regex_search(t, m, r) ? m[1].length() + m[2].length() : -1; }
extern "C" __attribute__((noinline)) int threads(int x) { std::vector<std::future<int>> f; for (int i = 0; i < 4; i++) f.push_back(std::async(std::launch::async, [=] { if (i == 3) throw std::logic_error("four"); return i * x; })); int r = 0; for (auto &g : f) try { r += g.get(); } catch (const std::logic_error &) { r += 100; } return r; }
static sigjmp_buf sj; static volatile int hits;
static void onsig(int s) { hits++; if (hits % 3 == 0) siglongjmp(sj, 1); }
extern "C" __attribute__((noinline)) int leaves(int x) { volatile int r = 0; if (sigsetjmp(sj, 1) == 0) { for (int i = 0; i < 4; i++) { raise(SIGUSR1); r += i; } } else r += 50; return r + x; }
extern "C" __attribute__((noinline)) int stacks(int x) { volatile char *p = (char*)alloca(200000 + x); for (int i = 0; i < 200000; i += 4096) p[i] = i; return p[4096] + x; }
extern "C" __attribute__((noinline)) long clocks(int x) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); struct timeval v; gettimeofday(&v, 0); return t.tv_sec > 0 && time(0) > 0 ? x : -1; }
static void *alone(void *) { pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0); for (volatile long i = 0;; i++); return 0; }
extern "C" __attribute__((noinline)) void *spins(void *) { pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0); for (volatile long i = 0;; i++); return 0; }
extern "C" __attribute__((noinline)) void *exits(void *p) { struct D { ~D() { steps += 1; } } d; pthread_exit(p); }
extern "C" __attribute__((noinline)) int instructions(int x) { unsigned a = 0, b2, c, d; __asm__ volatile("cpuid" : "+a"(a), "=b"(b2), "=c"(c), "=d"(d) : "2"(0)); unsigned long long t = __builtin_ia32_rdtsc(); __asm__ volatile("pushf; pushf; pop %%rax; popf; lahf; sahf" ::: "rax", "cc"); return a > 0 && t ? x : -1; }
int main() {
  struct sigaction s = {}; s.sa_handler = onsig; sigaction(SIGUSR1, &s, 0);
  long t = 0; double m = 0;
  for (int i = 0; i < 6; i++) { t = t * 3 + coroutines(i); t += heap_coroutines(i); t = t * 5 + sorts(i) + traces(i) + streams(i) + threads(i) + leaves(i) + stacks(i) + clocks(i) + instructions(i); m += sums(i); }
  t += commands(1) + commands(2);
  for (int i = 0; i < 4; i++) { pthread_t h; void *r; pthread_create(&h, 0, i % 2 ? spins : alone, 0); usleep(20000); pthread_cancel(h); pthread_join(h, &r); t += r == PTHREAD_CANCELED; pthread_create(&h, 0, exits, (void*)(long)i); pthread_join(h, &r); t += (long)r; }
  printf("t %ld m %.12g steps %d hits %d\n", t, m, steps, hits);
}
