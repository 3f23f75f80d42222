// Imitates what a text in CUDA C finds on a GPU: each thread of a block is a context of its own, and a barrier lets the
// next one go on.
#include <ucontext.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(threads)
#define __align__(bytes) __attribute__((aligned(bytes)))
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
static dim3 blockIdx, threadIdx;
using std::min;
static ucontext_t scheduler;
static std::vector<ucontext_t> contexts;
static unsigned current, running;
static std::vector<char> done;
static void __syncthreads() { swapcontext(&contexts[current], &scheduler); }
static void (*body)();
static void start() {
  body();
  done[current] = 1;
}
// Runs a block. All threads come to each barrier, or end.
static void block(unsigned threads, void (*function)()) {
  static std::vector<char> stacks;
  const size_t size = 64 << 10;
  stacks.resize(threads * size);
  contexts.resize(threads);
  done.assign(threads, 0);
  body = function;
  for (unsigned t = 0; t < threads; t++) {
    getcontext(&contexts[t]);
    contexts[t].uc_stack.ss_sp = &stacks[t * size];
    contexts[t].uc_stack.ss_size = size;
    contexts[t].uc_link = &scheduler;
    makecontext(&contexts[t], start, 0);
  }
  for (running = threads; running > 0;) {
    for (current = 0; current < threads; current++) {
      if (done[current]) continue;
      threadIdx = dim3(current, 0, 0);
      swapcontext(&scheduler, &contexts[current]);
      running -= done[current];
    }
  }
}
// Reads so many values from a file.
template <class T> static std::vector<T> load(FILE* file, size_t count) {
  std::vector<T> values(count);
  if (fread(values.data(), sizeof(T), count, file) != count) exit(2);
  return values;
}
