// ggm.hpp and the library's own headers in one file: their names in namespace ggm do not clash, not even under a using
// directive.
#include "base/checked.h"
#include "base/convert.h"
#include "base/log.h"
#include "base/status.h"
#include "base/types.h"
#include "ggm/ggm.hpp"
#include "plan/backend.h"
#include "plan/host_config.h"
#include "support/test.h"

using namespace ggm;

TEST_CASE("C++ layer: its names and those of the library's own headers live together", "[host]") {
  const ggm_moe_problem_t problem = moe_problem({3, 2, 4}, 5, 6, GGM_TYPE_FLOAT32, GGM_ORDER_NK);
  const routing_sizes sizes{3, 2, 4};
  CHECK(problem.tokens == sizes.tokens);
  CHECK(type_code<float>::value == static_cast<std::int32_t>(Type::float32));
  CHECK(Region{}.bytes == 0);
}
