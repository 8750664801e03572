# ggm_add_check(name COMMAND...): a script as a test labelled host. Exit 77 means that its tool is missing here: reported as skipped.
function(ggm_add_check name)
  add_test(NAME "check: ${name}" COMMAND ${ARGN})
  set_tests_properties("check: ${name}" PROPERTIES LABELS host TIMEOUT 300 SKIP_RETURN_CODE 77)
endfunction()
