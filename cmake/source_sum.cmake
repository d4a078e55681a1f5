# interlock_source_sum(target): gives `target` a source with a sum of all sources that compute (cli/studio/source_sum.h), as the program and
# the engine of an offline page have it: from different sources they would tell different numbers.
# It is made by this file as a script: cmake -DROOT=... -DOUTPUT=... "-DSOURCES=..." -P source_sum.cmake

if(CMAKE_SCRIPT_MODE_FILE)
  set(sums "")
  foreach(source ${SOURCES})
    file(SHA256 ${ROOT}/${source} sum)
    string(APPEND sums "${source} ${sum}\n")
  endforeach()
  string(SHA256 sum "${sums}")
  file(WRITE ${OUTPUT} "#include \"cli/studio/source_sum.h\"\n"
       "extern \"C\" const char* interlock_source_sum() { return \"interlock-sources-${sum}\"; }\n")
  return()
endif()

set(INTERLOCK_SOURCE_SUM ${CMAKE_CURRENT_LIST_FILE})
function(interlock_source_sum target)
  set(patterns "")
  foreach(folder base models hardware sim scenarios reports cli/console cli/studio)
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/${folder}/*.cc ${PROJECT_SOURCE_DIR}/${folder}/*.h)
  endforeach()
  file(GLOB_RECURSE sources RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${patterns})
  set(files ${sources})
  list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/source_sum.cc)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUTPUT=${output} "-DSOURCES=${sources}" -P ${INTERLOCK_SOURCE_SUM}
    DEPENDS ${files} ${INTERLOCK_SOURCE_SUM}
    VERBATIM)
  target_sources(${target} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
