/* A plan's kernels on threads: one native call for all of them.

   Kernels come in phases; those of one phase do not depend on each other. Each kernel's steps are
   cut into chunks, which the threads of one OpenMP team share out: every thread takes those of its
   own part first, then what others have left. Nobody waits for a thread that is not running: all
   that a phase needs is that its chunks are done. So it costs little to be interrupted, above all
   by another program on the same cores. A kernel computes the same bits however it is cut. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum {LINE = 64, SPINS = 2000};
typedef void (*entry)(void** arrays, char* scratch, long first, long last);
typedef struct { entry run; long arrays, steps, chunks; } task;
typedef struct { _Alignas(LINE) atomic_long n; } counter;
typedef struct { long task, thread, start, stop; } span;  /* when a chunk was done, in ns */
typedef struct {
  const task* tasks;
  void** arrays;
  long threads;
  span* log;  /* NULL where nobody wants to know */
  char* scratch;  /* memory of each thread's own, so many bytes */
  long scratch_bytes;
  atomic_long logged;
} job;

static inline void rest(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static inline long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec*1000000000L+t.tv_nsec;
}

/* Steps [first, last) of the k-th task. */
static inline void run(job* j, long k, long first, long last, long thread) {
  const task* t = j->tasks+k;
  char* scratch = j->scratch+thread*j->scratch_bytes;
  if (!j->log) {
    t->run(j->arrays+t->arrays, scratch, first, last);
    return;
  }
  span* s = j->log+atomic_fetch_add(&j->logged, 1);
  *s = (span){k, thread, now(), 0};
  t->run(j->arrays+t->arrays, scratch, first, last);
  s->stop = now();
}

/* The k-th task's chunks that are thread t's own. */
static inline long share(const job* j, long k, long t, long* first) {
  long chunks = j->tasks[k].chunks, turn = (t+k)%j->threads;
  *first = chunks*turn/j->threads;
  return chunks*(turn+1)/j->threads - *first;
}

/* Take chunks of thread t's part of tasks [a, b) as long as there are any; returns how many. */
static long take(job* j, long a, long b, long t, counter* next, long me) {
  long taken = 0, k = a, before = 0, first, own = share(j, a, t, &first);
  for (;;) {
    long n = atomic_fetch_add_explicit(&next->n, 1, memory_order_relaxed);
    while (n >= before+own) {
      before += own;
      if (++k == b) return taken;
      own = share(j, k, t, &first);
    }
    long chunk = first+n-before, steps = j->tasks[k].steps, chunks = j->tasks[k].chunks;
    run(j, k, steps*chunk/chunks, steps*(chunk+1)/chunks, me);
    taken++;
  }
}

/* One thread's way through all phases; counters has for each phase one per thread, and one more. */
static void work(job* j, long me, long phases, const long* ends, counter* counters) {
  for (long p = 0, a = 0; p < phases; a = ends[p++]) {
    counter* next = counters+p*(j->threads+1);
    counter* done = next+j->threads;
    long all = 0, taken = 0;
    for (long k = a; k < ends[p]; k++) all += j->tasks[k].chunks;
    if (atomic_load_explicit(&done->n, memory_order_acquire) == all) continue;
    for (long t = 0; t < j->threads; t++) {
      long owner = (me+t)%j->threads;
      taken += take(j, a, ends[p], owner, next+owner, me);
    }
    atomic_fetch_add_explicit(&done->n, taken, memory_order_acq_rel);
    for (long spins = 0; atomic_load_explicit(&done->n, memory_order_acquire) < all; spins++)
      if (spins < SPINS) rest(); else sched_yield();
  }
}

static int is_child = 0;  /* a forked one has none of its parent's threads */

extern long threads(void) {
#ifdef _OPENMP
  return is_child ? 1 : omp_get_max_threads();
#else
  return 1;
#endif
}

extern void one_thread(void) {
  is_child = 1;
}

static void* wait_for(void* mutex) {
  pthread_mutex_lock(mutex);
  pthread_mutex_unlock(mutex);
  return NULL;
}

/* How many of so many threads the system has room for at one time, this one among them: OpenMP ends
   the process where it cannot start one. */
extern long room_for(long threads) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_t* others = malloc(threads*sizeof(pthread_t));
  long n = 0;
  pthread_mutex_lock(&mutex);
  while (others && n < threads-1 && !pthread_create(&others[n], NULL, wait_for, &mutex)) n++;
  pthread_mutex_unlock(&mutex);
  for (long k = 0; k < n; k++) pthread_join(others[k], NULL);
  free(others);
  return n+1;
}

/* Run phases of tasks, none of them empty; ends[p] is the first task that is not of phase p. `log`
   is NULL, or has room for every chunk; `scratch` has room for each thread. */
extern void launch(long threads, long phases, const long* ends, const task* tasks, void** arrays,
                   span* log, char* scratch, long scratch_bytes) {
  if (is_child) threads = 1;
  job j = {tasks, arrays, threads, log, scratch, scratch_bytes, 0};
#ifdef _OPENMP
  size_t size = phases*(threads+1)*sizeof(counter);
  counter* counters = threads > 1 ? aligned_alloc(LINE, size) : NULL;
  if (counters) {
    for (long k = 0; k < phases*(threads+1); k++) atomic_init(&counters[k].n, 0);
#pragma omp parallel num_threads(threads)
    work(&j, omp_get_thread_num(), phases, ends, counters);
    free(counters);
    return;
  }
#endif
  for (long k = 0; phases && k < ends[phases-1]; k++) run(&j, k, 0, tasks[k].steps, 0);
}
