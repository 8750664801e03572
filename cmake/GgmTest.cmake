# ggm_add_test_executable(name SOURCES file... [INTERNAL] [TIMEOUT seconds] [LIBRARIES library...])
#
# Builds one test program on tests/support and registers each of its Catch2 test cases in CTest under the case's own name.
#   INTERNAL   link the static ggm_objects (unit tests that reach inside) instead of the shared library
#   TIMEOUT    seconds of one test case; default 120. A test tagged [large] gets four times that. The test's own watchdog goes
#              off a little earlier and prints the name of the test that hung.
#
# Every test case carries at least one of the tags [host], [gpu], [large]; they become its CTest labels. After each build
# the program lists its own tests (--list-for-ctest), so Catch2 2.13 and 3 need no script of Catch's. A GPU test on a
# machine without a GPU exits with 77, which CTest shows as "Skipped"; with GGM_REQUIRE_GPU=1 it fails.
function(ggm_add_test_executable name)
  cmake_parse_arguments(arg "INTERNAL" "TIMEOUT" "SOURCES;LIBRARIES" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS OR NOT arg_SOURCES)
    message(FATAL_ERROR "ggm_add_test_executable(${name}): SOURCES is required; unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(GGM_SANITIZE)  # the thread sanitizer makes the host backend ten times slower
    math(EXPR arg_TIMEOUT "6 * ${arg_TIMEOUT}")
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ggm_test_support ${arg_LIBRARIES})
  if(arg_INTERNAL)
    target_link_libraries(${name} PRIVATE ggm_objects)
  else()
    target_link_libraries(${name} PRIVATE ggm)
  endif()

  set(tests ${CMAKE_CURRENT_BINARY_DIR}/${name}_tests.cmake)
  add_custom_command(TARGET ${name} POST_BUILD BYPRODUCTS ${tests}
    COMMAND $<TARGET_FILE:${name}> --list-for-ctest ${tests} ${arg_TIMEOUT}
    COMMENT "Listing the tests of ${name}" VERBATIM)
  # A program that is not built shows as one failing test instead of silently missing tests.
  set(include_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake)
  file(WRITE ${include_file} "if(EXISTS \"${tests}\")
  include(\"${tests}\")
else()
  add_test(${name}_NOT_BUILT ${name}_NOT_BUILT)
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include_file})
endfunction()
