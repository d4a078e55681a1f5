# Puts the libraries that program and modules need beside the modules of the relocatable tarball, under lib/interlock, where the program's
# RPATH finds them: SimGrid and libzip have another soname in each release of Debian. Left to the system: what every C++ program there needs.
# Run by CPack when the files of a TGZ are staged; the package's staging folder is CPACK_TEMPORARY_DIRECTORY.
if(NOT CPACK_GENERATOR STREQUAL "TGZ")
  return()
endif()
set(modules ${CPACK_TEMPORARY_DIRECTORY}/lib/interlock)
file(GLOB opened ${modules}/libinterlock_simgrid.so ${modules}/libinterlock_harness.so)
if(opened)
  list(PREPEND opened MODULES)
endif()
file(GLOB started ${modules}/interlock-simgrid)
file(GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${CPACK_TEMPORARY_DIRECTORY}/bin/interlock ${started}
  ${opened}
  RESOLVED_DEPENDENCIES_VAR libraries
  UNRESOLVED_DEPENDENCIES_VAR unresolved
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s)\\.so")
if(unresolved)
  message(FATAL_ERROR "a tarball needs libraries that are not here: ${unresolved}")
endif()
set(licences ${CPACK_TEMPORARY_DIRECTORY}/share/doc/interlock/libraries)
file(MAKE_DIRECTORY ${modules} ${licences})
foreach(library ${libraries})
  cmake_path(GET library FILENAME name)
  file(COPY_FILE ${library} ${modules}/${name})
  # Their licences, as Debian keeps them.
  file(REAL_PATH ${library} real)
  execute_process(COMMAND dpkg-query --search ${library} ${real} OUTPUT_VARIABLE owner ERROR_QUIET)
  if(owner MATCHES "([^:\n]+)(:[a-z0-9]+)?: /")
    set(licence /usr/share/doc/${CMAKE_MATCH_1}/copyright)
    if(EXISTS ${licence})
      file(COPY_FILE ${licence} ${licences}/${CMAKE_MATCH_1})
    endif()
  endif()
endforeach()
