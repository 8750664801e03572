# Tests of the documents: links and names that lead somewhere, and the README's example. Included by CMakeLists.txt here.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME "documents: links, paths and names exist" COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/cmake/check_links.py)
  set_tests_properties("documents: links, paths and names exist" PROPERTIES LABELS host TIMEOUT 60)
  add_test(NAME "documents: the link check finds what is dead" COMMAND Python3::Interpreter
           ${CMAKE_CURRENT_SOURCE_DIR}/check_links_test.py ${PROJECT_SOURCE_DIR}/cmake/check_links.py)
  set_tests_properties("documents: the link check finds what is dead" PROPERTIES LABELS host TIMEOUT 60)
  add_test(NAME "documents: the performance page has the figures of the records" COMMAND Python3::Interpreter
           ${PROJECT_SOURCE_DIR}/cmake/performance_page.py --check)
  set_tests_properties("documents: the performance page has the figures of the records" PROPERTIES LABELS host TIMEOUT 60)
  # Exits with 77 where there is no doxygen.
  add_test(NAME "documents: the reference is made from the headers without a warning" COMMAND ${PROJECT_SOURCE_DIR}/cmake/docs.sh
           ${PROJECT_BINARY_DIR}/reference)
  set_tests_properties("documents: the reference is made from the headers without a warning" PROPERTIES LABELS host TIMEOUT 120
                       SKIP_RETURN_CODE 77)
  # A library with a sanitizer inside cannot be loaded by a plain program.
  if(NOT GGM_SANITIZE)
    add_test(NAME "documents: the example of the README compiles and prints what it says" COMMAND Python3::Interpreter
             ${CMAKE_CURRENT_SOURCE_DIR}/readme_example.py ${PROJECT_SOURCE_DIR}/README.md --cc ${CMAKE_C_COMPILER}
             --include ${PROJECT_SOURCE_DIR}/include --library $<TARGET_FILE:ggm>)
    set_tests_properties("documents: the example of the README compiles and prints what it says" PROPERTIES LABELS host TIMEOUT 60)
  endif()
endif()
