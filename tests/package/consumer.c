/* A program as a user of the installed library writes it: one grouped product on the host backend, checked. */
#include <ggm/ggm.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  /* Two groups of 1 and 2 rows; k = 2, n = 1: d[row] = a[row][0] * b[group][0] + a[row][1] * b[group][1] */
  const int32_t sizes[2] = {1, 2};
  const float a[6] = {1, 2, 3, 4, 5, 6}, b[4] = {10, 1, 100, 1000}, expected[3] = {12, 4300, 6500};
  float d[3] = {0, 0, 0};
  ggm_create_params_t params = GGM_CREATE_PARAMS_INIT;
  ggm_grouped_gemm_problem_t problem = GGM_GROUPED_GEMM_PROBLEM_INIT;
  ggm_grouped_gemm_tensors_t tensors = GGM_GROUPED_GEMM_TENSORS_INIT;
  ggm_handle_t handle = NULL;
  size_t bytes = 0;
  void* workspace = NULL;
  int i, wrong = 0;

  params.backend = GGM_BACKEND_HOST;
  params.host_threads = 1;
  problem.groups = 2;
  problem.m = 3;
  problem.n = 1;
  problem.k = 2;
  problem.b_order = GGM_ORDER_NK;
  problem.a_type = problem.b_type = GGM_TYPE_FLOAT32;
  tensors.group_sizes = sizes;
  tensors.a = a;
  tensors.b = b;
  tensors.d = d;
  if (ggm_create(&params, &handle) != GGM_STATUS_SUCCESS ||
      ggm_grouped_gemm_workspace_size(handle, &problem, &bytes) != GGM_STATUS_SUCCESS)
    return fprintf(stderr, "%s\n", ggm_last_error()), 1;
  if (bytes > 0) workspace = aligned_alloc(GGM_WORKSPACE_ALIGNMENT, (bytes + 255) / 256 * 256);
  if (ggm_grouped_gemm(handle, &problem, &tensors, workspace, bytes, NULL) != GGM_STATUS_SUCCESS)
    return fprintf(stderr, "%s\n", ggm_last_error()), 1;
  for (i = 0; i < 3; ++i) wrong += d[i] != expected[i];
  printf("%s: d = %g %g %g, %s\n", ggm_build_info(), d[0], d[1], d[2], wrong ? "WRONG" : "right");
  free(workspace);
  ggm_destroy(handle);
  return wrong != 0 || ggm_version() != GGM_VERSION;
}
