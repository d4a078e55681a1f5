# One static library for each folder, one test program for each folder of tests.

# Designated initialisers leave out what has a default; that is how structs are meant to be used here.
set(INTERLOCK_WARNINGS -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 takes "text" + std::string for an overlap (its bug 105651).
  list(APPEND INTERLOCK_WARNINGS -Wshadow=local -Wno-restrict)
endif()

# interlock_compiled(target [QUICK]): how every target is compiled. QUICK: its speed is felt.
function(interlock_compiled target)
  cmake_parse_arguments(COMPILED "QUICK" "" "" ${ARGN})
  target_compile_options(${target} PRIVATE ${INTERLOCK_WARNINGS})
  if(COMPILED_QUICK)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O3>)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${INTERLOCK_UNITY} UNITY_BUILD_BATCH_SIZE 24)
endfunction()

# interlock_folder(name [QUICK] SOURCES file... USES library...)
function(interlock_folder name)
  cmake_parse_arguments(FOLDER "QUICK" "" "SOURCES;USES" ${ARGN})
  add_library(interlock_${name} STATIC ${FOLDER_SOURCES})
  target_include_directories(interlock_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(interlock_${name} PUBLIC ${FOLDER_USES})
  if(FOLDER_QUICK)
    interlock_compiled(interlock_${name} QUICK)
  else()
    interlock_compiled(interlock_${name})
  endif()
endfunction()

# interlock_unite(target file...): compiles tests together, and apart from them what supports them, a folder at a time:
# support means our CHECK where tests mean doctest's.
function(interlock_unite target)
  set(tests 0)
  foreach(source ${ARGN})
    file(STRINGS ${source} asserts REGEX "doctest" LIMIT_COUNT 1)
    if(asserts OR source MATCHES "_test\\.cc$")
      math(EXPR group "${tests} / 36")
      math(EXPR tests "${tests} + 1")
    else()
      cmake_path(GET source PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER "of_${folder}" group)
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${INTERLOCK_UNITY} UNITY_BUILD_MODE GROUP)
endfunction()

# interlock_compiled_for_tests(target file...): with -Og, which takes a quarter less time than -O1 and runs as fast.
function(interlock_compiled_for_tests target)
  interlock_compiled(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
  interlock_unite(${target} ${ARGN})
endfunction()

# interlock_test(name SOURCES file... USES library...)
function(interlock_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name}_test ${TEST_SOURCES})
  interlock_compiled_for_tests(${name}_test ${TEST_SOURCES})
  target_link_libraries(${name}_test PRIVATE interlock_test_main interlock_test_support ${TEST_USES})
  interlock_check(${name} ${name}_test)
endfunction()

# The longest tests, which begin first, so that no processor is idle at the end.
set(INTERLOCK_LONGEST validate cli package on_gpu_dry cuda_emulated scenarios search published sim papers)

# interlock_check(name command...): a test that is skipped by exit code 77. Its limit only ends what hangs.
function(interlock_check name)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 3600)
  list(FIND INTERLOCK_LONGEST ${name} place)
  if(place GREATER -1)
    math(EXPR cost "1000 - ${place}")
    set_tests_properties(${name} PROPERTIES COST ${cost})
  endif()
endfunction()

# interlock_skipped(name what package): a test that cannot be built here, and what it would take.
function(interlock_skipped name what package)
  add_test(NAME ${name} COMMAND sh -c "echo \"skipped: ${what}; install ${package} to run it\"; exit 77")
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()
