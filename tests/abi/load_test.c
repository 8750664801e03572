/* Opens libggm.so as a program would that has no CUDA, in a fresh process each time: how long that takes, that the host backend
 * works there, and that CUDA is refused by name. Usage: load_test LIBRARY STATUS BYTES, the status that a CUDA handle must be
 * refused with where no GPU is visible; the environment hides the GPUs (CUDA_VISIBLE_DEVICES is set to nothing). And below
 * how many bytes the file must be, 0: any number. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ggm/ggm.h"

enum { RUNS = 5 };
static const double LIMIT_MS = 50.0;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

#define LOAD(name)                            \
  __typeof__(&name) p_##name;                 \
  *(void**)&p_##name = dlsym(library, #name); \
  if (!p_##name) return printf("no symbol " #name "\n"), 1

static int use(void* library, int cuda_status) {
  LOAD(ggm_create);
  LOAD(ggm_destroy);
  LOAD(ggm_route);
  LOAD(ggm_route_workspace_size);
  LOAD(ggm_last_error);
  LOAD(ggm_status_string);

  ggm_handle_t handle = NULL;
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  params.backend = GGM_BACKEND_CUDA;
  ggm_status_t status = p_ggm_create(&params, &handle);
  if (status != cuda_status || handle != NULL || p_ggm_last_error()[0] == 0)
    return printf("CUDA without a GPU: %s, expected %s; %s\n", p_ggm_status_string(status), p_ggm_status_string(cuda_status),
                  p_ggm_last_error()),
           1;

  params.backend = GGM_BACKEND_AUTO;
  status = p_ggm_create(&params, &handle);
  if (status != GGM_STATUS_SUCCESS) return printf("AUTO: %s\n", p_ggm_last_error()), 1;

  const int32_t ids[4] = {2, 0, 1, 2};
  int32_t offsets[4], row_assignment[4], assignment_row[4];
  ggm_route_problem_t problem = GGM_ROUTE_PROBLEM_INIT;
  problem.tokens = 2;
  problem.top_k = 2;
  problem.experts = 3;
  problem.id_type = GGM_INDEX_INT32;
  ggm_route_tensors_t tensors = GGM_ROUTE_TENSORS_INIT;
  tensors.ids = ids;
  tensors.group_offsets = offsets;
  tensors.row_assignment = row_assignment;
  tensors.assignment_row = assignment_row;
  size_t bytes = 0;
  if (p_ggm_route_workspace_size(handle, &problem, &bytes)) return printf("query: %s\n", p_ggm_last_error()), 1;
  void* workspace = bytes ? aligned_alloc(GGM_WORKSPACE_ALIGNMENT, (bytes + 255) / 256 * 256) : NULL;
  if (p_ggm_route(handle, &problem, &tensors, workspace, bytes, NULL)) return printf("route: %s\n", p_ggm_last_error()), 1;
  free(workspace);
  const int32_t expected[4] = {1, 2, 0, 3}; /* experts 0, 1, 2, 2 in the order of the slots */
  if (memcmp(row_assignment, expected, sizeof expected) != 0) return printf("route: wrong rows\n"), 1;
  p_ggm_destroy(handle);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const long long limit = atoll(argv[3]);
  struct stat file;
  if (stat(argv[1], &file) != 0) return printf("no file %s\n", argv[1]), 1;
  printf("size: %lld bytes (limit %lld)\n", (long long)file.st_size, limit);
  fflush(stdout); /* before processes are made of this one */
  if (limit > 0 && file.st_size >= limit) return 1;
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  double best = 1e9;
  for (int run = 0; run < RUNS; ++run) {
    int pipes[2];
    if (pipe(pipes) != 0) return 2;
    const pid_t child = fork();
    if (child == 0) {
      const double start = now_ms();
      void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
      const double ms = now_ms() - start;
      if (!library) return printf("dlopen: %s\n", dlerror()), 1;
      if (write(pipes[1], &ms, sizeof ms) != (ssize_t)sizeof ms) return 2;
      return use(library, atoi(argv[2]));
    }
    int child_status = 1;
    double ms = 1e9;
    close(pipes[1]);
    const int got = read(pipes[0], &ms, sizeof ms) == (ssize_t)sizeof ms;
    close(pipes[0]);
    waitpid(child, &child_status, 0);
    if (!got || child_status != 0) return printf("run %d failed\n", run), 1;
    if (ms < best) best = ms;
  }
  printf("load: %.1f ms at best of %d (limit %.0f ms)\n", best, RUNS, LIMIT_MS);
  return best < LIMIT_MS ? 0 : 1;
}
