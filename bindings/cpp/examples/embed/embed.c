/* How a server embeds libggm: found at run time, all memory in one arena, a decode step captured once and replayed.
 *
 *     ggm_embed [--backend host|cuda] [path of libggm.so]
 *
 * The expert of this layer has two products, hidden -> inner and inner -> hidden. A step is three calls on one stream:
 *
 *     ggm_route          ids -> sorted rows, once for both products
 *     ggm_moe_forward    x by tokens -> rows, without routing weights
 *     ggm_moe_forward    rows -> y by tokens, with routing weights
 *
 * A server has the kernel of its activation between the last two. On CUDA the step is captured into a graph; each replay reads
 * the ids, x and number of tokens that were copied into the arena before it. On the host backend the same calls are made for
 * each step. All data are small integers and quarters, so that every sum is exact and y is compared bit for bit with plain
 * loops.
 *
 * Exit: 0 passed, 1 wrong results, 2 could not run, 3 the CUDA backend was asked for and is not to be had. */
#include <dlfcn.h>
#include <ggm/ggm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if GGM_EXAMPLE_CUDA
#include <cuda_runtime_api.h>
#endif

enum { kMaxTokens = 8, kTopK = 2, kExperts = 5, kHidden = 24, kInner = 40, kSteps = 6, kRows = kMaxTokens * kTopK };
enum { kPassed = 0, kWrong = 1, kCouldNotRun = 2, kNoCuda = 3 };

/* ---- The library, found at run time: one pointer for each function that is used ---- */

#define GGM_FUNCTIONS(X)            \
  X(ggm_version)                    \
  X(ggm_build_info)                 \
  X(ggm_status_string)              \
  X(ggm_last_error)                 \
  X(ggm_create)                     \
  X(ggm_destroy)                    \
  X(ggm_get_info)                   \
  X(ggm_route_workspace_size)       \
  X(ggm_route)                      \
  X(ggm_moe_forward_workspace_size) \
  X(ggm_moe_forward)

struct api {
#define MEMBER(name) __typeof__(name)* name;
  GGM_FUNCTIONS(MEMBER)
#undef MEMBER
};

static struct api ggm;

static int load_library(const char* path) {
  /* RTLD_LOCAL: no symbol of libggm can be taken for one of the program's or of another library. It is never closed: the CUDA
     runtime inside it has work to do at the end of the process. */
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return fprintf(stderr, "ggm_embed: %s\n", dlerror()), 0;
#define FIND(name)                            \
  *(void**)&ggm.name = dlsym(library, #name); \
  if (ggm.name == NULL) return fprintf(stderr, "ggm_embed: %s has no %s\n", path, #name), 0;
  GGM_FUNCTIONS(FIND)
#undef FIND
  /* While the version is 0.x every minor version may change the interface; a later patch of the same one may not. */
  if (ggm.ggm_version() / 100 != GGM_VERSION / 100 || ggm.ggm_version() < GGM_VERSION)
    return fprintf(stderr, "ggm_embed: the library has version %d, the header %d\n", (int)ggm.ggm_version(), GGM_VERSION), 0;
  return 1;
}

static int succeeded(ggm_status_t status, const char* what) {
  if (status == GGM_STATUS_SUCCESS) return 1;
  fprintf(stderr, "ggm_embed: %s: %s: %s\n", what, ggm.ggm_status_string(status), ggm.ggm_last_error());
  return 0;
}

/* ---- Memory of the backend: plain memory on the host, device memory on CUDA ---- */

#if GGM_EXAMPLE_CUDA
static int cuda_succeeded(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return 1;
  fprintf(stderr, "ggm_embed: %s: %s\n", what, cudaGetErrorString(error));
  return 0;
}
#endif

static void* make_arena(int on_cuda, size_t bytes) {
  void* arena = NULL;
#if GGM_EXAMPLE_CUDA
  if (on_cuda) {
    if (!cuda_succeeded(cudaMalloc(&arena, bytes), "cudaMalloc")) return NULL;
    return cuda_succeeded(cudaMemset(arena, 0, bytes), "cudaMemset") ? arena : NULL;
  }
#endif
  (void)on_cuda;
  arena = aligned_alloc(GGM_WORKSPACE_ALIGNMENT, bytes);
  return arena != NULL ? memset(arena, 0, bytes) : NULL;
}

static void free_arena(int on_cuda, void* arena) {
#if GGM_EXAMPLE_CUDA
  if (on_cuda) {
    cudaFree(arena);
    return;
  }
#endif
  (void)on_cuda;
  free(arena);
}

/* Puts a copy on the stream; what it reads or writes on the host must stay until the stream is synchronised. */
static int copy(int on_cuda, void* to, const void* from, size_t bytes, ggm_stream_t stream) {
#if GGM_EXAMPLE_CUDA
  if (on_cuda) return cuda_succeeded(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
#endif
  (void)on_cuda;
  (void)stream;
  memcpy(to, from, bytes);
  return 1;
}

/* ---- The layer: its problems, its place in the arena, its step ---- */

struct layer {
  ggm_handle_t handle;
  int on_cuda;
  ggm_route_problem_t route;
  ggm_moe_problem_t up, down;
  ggm_route_tensors_t route_tensors;
  ggm_moe_forward_tensors_t up_tensors, down_tensors;
  /* Where the program writes before a step, and reads after it. */
  int32_t *ids, *num_tokens;
  float *x, *routing_weights, *up_weight, *down_weight, *y;
  uint32_t* faults;
  void* workspace;
  size_t workspace_bytes;
};

static void describe(struct layer* layer) {
  layer->route = (ggm_route_problem_t)GGM_ROUTE_PROBLEM_INIT;
  layer->route.tokens = kMaxTokens;
  layer->route.top_k = kTopK;
  layer->route.experts = kExperts;
  layer->route.id_type = GGM_INDEX_INT32;

  layer->up = (ggm_moe_problem_t)GGM_MOE_PROBLEM_INIT;
  layer->up.tokens = kMaxTokens;
  layer->up.top_k = kTopK;
  layer->up.experts = kExperts;
  layer->up.in_features = kHidden;
  layer->up.out_features = kInner;
  layer->up.x_type = layer->up.weight_type = GGM_TYPE_FLOAT32;
  layer->up.weight_order = GGM_ORDER_NK;
  layer->down = layer->up;
  layer->up.output_rows = GGM_ROWS_GROUPED;
  layer->down.in_features = kInner;
  layer->down.out_features = kHidden;
  layer->down.input_rows = GGM_ROWS_GROUPED;
  layer->down.routing_weight_type = GGM_TYPE_FLOAT32;
}

/* All calls follow each other on one stream, so the largest workspace serves all of them. */
static int ask_workspace(struct layer* layer) {
  size_t bytes[3] = {0, 0, 0};
  int i;
  if (!succeeded(ggm.ggm_route_workspace_size(layer->handle, &layer->route, &bytes[0]), "route") ||
      !succeeded(ggm.ggm_moe_forward_workspace_size(layer->handle, &layer->up, &bytes[1]), "first product") ||
      !succeeded(ggm.ggm_moe_forward_workspace_size(layer->handle, &layer->down, &bytes[2]), "second product"))
    return 0;
  layer->workspace_bytes = 0;
  for (i = 0; i < 3; ++i)
    if (bytes[i] > layer->workspace_bytes) layer->workspace_bytes = bytes[i];
  return 1;
}

/* The next piece of the arena; with a NULL base it only counts. */
static void* take(char* base, size_t* used, size_t bytes) {
  void* place = base != NULL ? base + *used : NULL;
  *used += (bytes + GGM_WORKSPACE_ALIGNMENT - 1) / GGM_WORKSPACE_ALIGNMENT * GGM_WORKSPACE_ALIGNMENT;
  return place;
}

/* Gives everything its place; returns the size of the arena. Called twice, for the size and for the places. */
static size_t place(struct layer* layer, char* base) {
  size_t used = 0;
  int32_t *offsets, *row_assignment, *assignment_row;
  float* rows;
  layer->ids = take(base, &used, sizeof(int32_t) * kRows);
  layer->num_tokens = take(base, &used, sizeof(int32_t));
  layer->routing_weights = take(base, &used, sizeof(float) * kRows);
  layer->x = take(base, &used, sizeof(float) * kMaxTokens * kHidden);
  layer->y = take(base, &used, sizeof(float) * kMaxTokens * kHidden);
  layer->up_weight = take(base, &used, sizeof(float) * kExperts * kInner * kHidden);
  layer->down_weight = take(base, &used, sizeof(float) * kExperts * kHidden * kInner);
  layer->faults = take(base, &used, sizeof(uint32_t) * GGM_FAULT_WORDS);
  offsets = take(base, &used, sizeof(int32_t) * (kExperts + 1));
  row_assignment = take(base, &used, sizeof(int32_t) * kRows);
  assignment_row = take(base, &used, sizeof(int32_t) * kRows);
  rows = take(base, &used, sizeof(float) * kRows * kInner);
  layer->workspace = take(base, &used, layer->workspace_bytes);

  layer->route_tensors = (ggm_route_tensors_t)GGM_ROUTE_TENSORS_INIT;
  layer->route_tensors.ids = layer->ids;
  layer->route_tensors.num_tokens = layer->num_tokens;
  layer->route_tensors.faults = layer->faults;
  layer->route_tensors.group_offsets = offsets;
  layer->route_tensors.row_assignment = row_assignment;
  layer->route_tensors.assignment_row = assignment_row;

  layer->up_tensors = (ggm_moe_forward_tensors_t)GGM_MOE_FORWARD_TENSORS_INIT;
  layer->up_tensors.group_offsets = offsets;
  layer->up_tensors.row_assignment = row_assignment;
  layer->up_tensors.assignment_row = assignment_row;
  layer->up_tensors.num_tokens = layer->num_tokens;
  layer->up_tensors.faults = layer->faults;
  layer->down_tensors = layer->up_tensors;
  layer->up_tensors.x = layer->x;
  layer->up_tensors.weight = layer->up_weight;
  layer->up_tensors.y = rows;
  layer->down_tensors.x = rows;
  layer->down_tensors.weight = layer->down_weight;
  layer->down_tensors.routing_weights = layer->routing_weights;
  layer->down_tensors.y = layer->y;
  return used;
}

static int decode(const struct layer* layer, ggm_stream_t stream) {
  void* workspace = layer->workspace;
  const size_t bytes = layer->workspace_bytes;
  return succeeded(ggm.ggm_route(layer->handle, &layer->route, &layer->route_tensors, workspace, bytes, stream), "route") &&
         succeeded(ggm.ggm_moe_forward(layer->handle, &layer->up, &layer->up_tensors, workspace, bytes, stream),
                   "first product") &&
         succeeded(ggm.ggm_moe_forward(layer->handle, &layer->down, &layer->down_tensors, workspace, bytes, stream),
                   "second product");
}

/* ---- The data of a step, and what must come out ---- */

struct data {
  int32_t ids[kRows], tokens;
  float routing_weights[kRows], x[kMaxTokens * kHidden], y[kMaxTokens * kHidden];
};
static float up_weight[kExperts * kInner * kHidden], down_weight[kExperts * kHidden * kInner];

static unsigned next_random(void) {
  static unsigned state = 20260101u;
  state = state * 1664525u + 1013904223u;
  return state >> 16;
}

static void draw(struct data* step, int number) {
  int i;
  step->tokens = 1 + (number * 5) % kMaxTokens; /* batches of every size, through one graph */
  for (i = 0; i < kRows; ++i) {
    step->ids[i] = (int32_t)(next_random() % (kExperts + 1)) - 1; /* -1: the slot is dropped */
    step->routing_weights[i] = 0.25f * (float)(next_random() % 5);
  }
  for (i = 0; i < kMaxTokens * kHidden; ++i) step->x[i] = (float)(next_random() % 5) - 2.0f;
}

/* y[t] = sum_j w[t,j] * ( down[e] @ ( up[e] @ x[t] ) ); +0 from `tokens` on. */
static void reference(const struct data* step, float* y) {
  int t, j, n, k;
  memset(y, 0, sizeof(float) * kMaxTokens * kHidden);
  for (t = 0; t < step->tokens; ++t) {
    for (j = 0; j < kTopK; ++j) {
      const int e = step->ids[t * kTopK + j];
      double inner[kInner];
      if (e < 0) continue;
      for (n = 0; n < kInner; ++n) {
        inner[n] = 0;
        for (k = 0; k < kHidden; ++k) inner[n] += (double)up_weight[(e * kInner + n) * kHidden + k] * step->x[t * kHidden + k];
      }
      for (n = 0; n < kHidden; ++n) {
        double sum = 0;
        for (k = 0; k < kInner; ++k) sum += down_weight[(e * kHidden + n) * kInner + k] * inner[k];
        y[t * kHidden + n] += (float)(step->routing_weights[t * kTopK + j] * sum);
      }
    }
  }
}

static int write_step(const struct layer* layer, const struct data* step, ggm_stream_t stream) {
  return copy(layer->on_cuda, layer->ids, step->ids, sizeof step->ids, stream) &&
         copy(layer->on_cuda, layer->num_tokens, &step->tokens, sizeof step->tokens, stream) &&
         copy(layer->on_cuda, layer->routing_weights, step->routing_weights, sizeof step->routing_weights, stream) &&
         copy(layer->on_cuda, layer->x, step->x, sizeof step->x, stream);
}

static int check_step(const struct data* step, int number) {
  static float expected[kMaxTokens * kHidden];
  int i;
  reference(step, expected);
  for (i = 0; i < kMaxTokens * kHidden; ++i) {
    if (step->y[i] != expected[i]) {
      printf("step %d: y[%d,%d] is %g, expected %g\n", number, i / kHidden, i % kHidden, step->y[i], expected[i]);
      return 0;
    }
  }
  printf("step %d: %d tokens, y as expected\n", number, (int)step->tokens);
  return 1;
}

/* ---- The two loops ---- */

static int run_on_host(const struct layer* layer) {
  static struct data step;
  int number;
  for (number = 0; number < kSteps; ++number) {
    draw(&step, number);
    if (!write_step(layer, &step, NULL) || !decode(layer, NULL) || !copy(0, step.y, layer->y, sizeof step.y, NULL))
      return kCouldNotRun;
    if (!check_step(&step, number)) return kWrong;
  }
  return kPassed;
}

#if GGM_EXAMPLE_CUDA
static int run_on_cuda(const struct layer* layer) {
  static struct data step;
  cudaStream_t stream = NULL;
  cudaGraph_t graph = NULL;
  cudaGraphExec_t replay = NULL;
  int number, captured, result = kPassed;
  if (!cuda_succeeded(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate") ||
      !cuda_succeeded(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture"))
    return kCouldNotRun;
  captured = decode(layer, stream); /* the first call ever; nothing runs yet */
  if (!cuda_succeeded(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture") || !captured ||
      !cuda_succeeded(cudaGraphInstantiate(&replay, graph, 0), "cudaGraphInstantiate"))
    return kCouldNotRun;
  cudaGraphDestroy(graph);
  for (number = 0; number < kSteps && result == kPassed; ++number) {
    draw(&step, number);
    if (!write_step(layer, &step, stream) || !cuda_succeeded(cudaGraphLaunch(replay, stream), "cudaGraphLaunch") ||
        !copy(1, step.y, layer->y, sizeof step.y, stream) ||
        !cuda_succeeded(cudaStreamSynchronize(stream), "cudaStreamSynchronize"))
      result = kCouldNotRun;
    else if (!check_step(&step, number))
      result = kWrong;
  }
  cudaGraphExecDestroy(replay);
  cudaStreamDestroy(stream);
  return result;
}
#endif

static int run(struct layer* layer) {
  size_t bytes;
  void* arena;
  uint32_t faults[GGM_FAULT_WORDS];
  int i, result = kCouldNotRun;
  describe(layer);
  if (!ask_workspace(layer)) return kCouldNotRun;
  bytes = place(layer, NULL);
  arena = make_arena(layer->on_cuda, bytes);
  if (arena == NULL) return fprintf(stderr, "ggm_embed: no arena of %zu bytes\n", bytes), kCouldNotRun;
  place(layer, arena);
  printf("arena: %zu bytes, %zu of them workspace\n", bytes, layer->workspace_bytes);
  for (i = 0; i < kExperts * kInner * kHidden; ++i) {
    up_weight[i] = (float)(next_random() % 5) - 2.0f;
    down_weight[i] = (float)(next_random() % 5) - 2.0f;
  }
  if (copy(layer->on_cuda, layer->up_weight, up_weight, sizeof up_weight, NULL) &&
      copy(layer->on_cuda, layer->down_weight, down_weight, sizeof down_weight, NULL)) {
#if GGM_EXAMPLE_CUDA
    /* The stream of the steps does not wait for the default stream, which copied the weights. */
    if (layer->on_cuda) result = cuda_succeeded(cudaDeviceSynchronize(), "copying weights") ? run_on_cuda(layer) : kCouldNotRun;
#endif
    if (!layer->on_cuda) result = run_on_host(layer);
  }
  if (result == kPassed) {
    if (!copy(layer->on_cuda, faults, layer->faults, sizeof faults, NULL)) result = kCouldNotRun;
#if GGM_EXAMPLE_CUDA
    if (layer->on_cuda && !cuda_succeeded(cudaDeviceSynchronize(), "reading the fault words")) result = kCouldNotRun;
#endif
    for (i = 0; i < GGM_FAULT_WORDS && result == kPassed; ++i)
      if (faults[i] != 0) {
        printf("fault word %d is %u\n", i, (unsigned)faults[i]);
        result = kWrong;
      }
  }
  free_arena(layer->on_cuda, arena);
  return result;
}

int main(int argc, char** argv) {
  static struct layer layer;
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  ggm_info_t info = GGM_INFO_INIT;
  ggm_status_t status;
  char soname[64];
  const char* path = soname;
  int i, result;
  snprintf(soname, sizeof soname, "libggm.so.%d.%d", GGM_VERSION_MAJOR, GGM_VERSION_MINOR);
  for (i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc && strcmp(argv[i + 1], "host") == 0)
      params.backend = GGM_BACKEND_HOST, ++i;
    else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc && strcmp(argv[i + 1], "cuda") == 0)
      params.backend = GGM_BACKEND_CUDA, ++i;
    else if (argv[i][0] != '-')
      path = argv[i];
    else
      return fprintf(stderr, "usage: ggm_embed [--backend host|cuda] [path of libggm.so]\n"), kCouldNotRun;
  }
#if !GGM_EXAMPLE_CUDA
  /* Without the CUDA runtime this program has no device memory to give, whatever the library that it finds can do. */
  if (params.backend == GGM_BACKEND_CUDA) return fprintf(stderr, "ggm_embed: this program was built without CUDA\n"), kNoCuda;
  params.backend = GGM_BACKEND_HOST;
#endif
  if (!load_library(path)) return kCouldNotRun;
  printf("%s\n", ggm.ggm_build_info());
  status = ggm.ggm_create(&params, &layer.handle);
  if (!succeeded(status, "ggm_create"))
    return status == GGM_STATUS_UNSUPPORTED_DEVICE || status == GGM_STATUS_BACKEND_UNAVAILABLE ? kNoCuda : kCouldNotRun;
  result = kCouldNotRun;
  if (succeeded(ggm.ggm_get_info(layer.handle, &info), "ggm_get_info")) {
    layer.on_cuda = info.backend == GGM_BACKEND_CUDA;
#if GGM_EXAMPLE_CUDA
    if (!layer.on_cuda || cuda_succeeded(cudaSetDevice(info.device), "cudaSetDevice"))
#endif
      result = run(&layer);
  }
  ggm.ggm_destroy(layer.handle);
  printf("%s\n", result == kPassed ? "All steps passed." : "FAILED: see above.");
  return result;
}
