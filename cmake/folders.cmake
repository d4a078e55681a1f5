# One static library for each folder, one test program for each folder of tests.

# Designated initialisers leave out what has a default; that is how structs are meant to be used here.
set(INTERLOCK_WARNINGS -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 takes "text" + std::string for an overlap (its bug 105651).
  list(APPEND INTERLOCK_WARNINGS -Wshadow=local -Wno-restrict)
endif()

# interlock_folder(name SOURCES file... USES library...)
function(interlock_folder name)
  cmake_parse_arguments(FOLDER "" "" "SOURCES;USES" ${ARGN})
  add_library(interlock_${name} STATIC ${FOLDER_SOURCES})
  target_include_directories(interlock_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(interlock_${name} PRIVATE ${INTERLOCK_WARNINGS})
  target_link_libraries(interlock_${name} PUBLIC ${FOLDER_USES})
endfunction()

# interlock_test(name SOURCES file... USES library...)
function(interlock_test name)
  cmake_parse_arguments(TEST "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name}_test ${TEST_SOURCES})
  target_compile_options(${name}_test PRIVATE ${INTERLOCK_WARNINGS})
  target_link_libraries(${name}_test PRIVATE interlock_test_main ${TEST_USES})
  add_test(NAME ${name} COMMAND ${name}_test)
  set_tests_properties(${name} PROPERTIES TIMEOUT 1800)
endfunction()
