/* Compiled as C99, C11, C++11 and C++20 with every warning an error, -Wpadded included: the header stands alone, no struct has
 * hidden padding, and every INIT macro fills every field. Run, it checks that INIT gives the size and zeros. */
#include "ggm/ggm.h"
/* The header comes first, so that it cannot lean on these. */
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void check_init(const char* name, const void* value, size_t bytes) {
  const unsigned char* byte = (const unsigned char*)value;
  uint32_t size;
  size_t i;
  memcpy(&size, value, sizeof size);
  if (size != bytes) {
    printf("%s: struct_size is %u, not %u\n", name, (unsigned)size, (unsigned)bytes);
    ++failures;
  }
  for (i = sizeof size; i < bytes; ++i) {
    if (byte[i] != 0) {
      printf("%s: byte %u is not zero\n", name, (unsigned)i);
      ++failures;
      return;
    }
  }
}

#define CHECK(type, init)                    \
  do {                                       \
    const type value = init;                 \
    check_init(#init, &value, sizeof value); \
  } while (0)

int main(void) {
  CHECK(ggm_create_params_t, GGM_CREATE_PARAMS_INIT);
  CHECK(ggm_info_t, GGM_INFO_INIT);
  CHECK(ggm_route_problem_t, GGM_ROUTE_PROBLEM_INIT);
  CHECK(ggm_route_tensors_t, GGM_ROUTE_TENSORS_INIT);
  CHECK(ggm_permute_problem_t, GGM_PERMUTE_PROBLEM_INIT);
  CHECK(ggm_permute_tensors_t, GGM_PERMUTE_TENSORS_INIT);
  CHECK(ggm_unpermute_backward_tensors_t, GGM_UNPERMUTE_BACKWARD_TENSORS_INIT);
  CHECK(ggm_grouped_gemm_problem_t, GGM_GROUPED_GEMM_PROBLEM_INIT);
  CHECK(ggm_grouped_gemm_tensors_t, GGM_GROUPED_GEMM_TENSORS_INIT);
  CHECK(ggm_grouped_gemm_array_problem_t, GGM_GROUPED_GEMM_ARRAY_PROBLEM_INIT);
  CHECK(ggm_grouped_gemm_array_tensors_t, GGM_GROUPED_GEMM_ARRAY_TENSORS_INIT);
  CHECK(ggm_moe_problem_t, GGM_MOE_PROBLEM_INIT);
  CHECK(ggm_moe_forward_tensors_t, GGM_MOE_FORWARD_TENSORS_INIT);
  CHECK(ggm_moe_backward_tensors_t, GGM_MOE_BACKWARD_TENSORS_INIT);
  printf("INIT macros: %d failures\n", failures);
  return failures != 0;
}
