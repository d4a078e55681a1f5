# Whether the SimGrid engine is built, which runs what shares links. INTERLOCK_SIMGRID: AUTO builds it if there is a SimGrid that it knows,
# ON insists on one, OFF leaves it out. Sets INTERLOCK_HAS_SIMGRID. All else of the program knows no SimGrid.

set(INTERLOCK_SIMGRID AUTO CACHE STRING "Build the SimGrid engine: AUTO, ON or OFF")
set_property(CACHE INTERLOCK_SIMGRID PROPERTY STRINGS AUTO ON OFF)
set(INTERLOCK_HAS_SIMGRID OFF)
set(INTERLOCK_SIMGRID_KNOWN 3.32 3.34 3.35 3.36 4.0 4.1)  # what sim/engines/simgrid_network.h has been held to the sources of

# Sets `missing` to what is wrong with the SimGrid at hand; empty: nothing.
function(interlock_look_for_simgrid missing)
  find_library(SIMGRID_LIBRARY simgrid)
  find_path(SIMGRID_INCLUDE simgrid/version.h)
  if(NOT SIMGRID_LIBRARY OR NOT SIMGRID_INCLUDE)
    set(${missing} "there was no SimGrid" PARENT_SCOPE)
    return()
  endif()
  file(STRINGS ${SIMGRID_INCLUDE}/simgrid/version.h lines REGEX "^#define SIMGRID_VERSION_(MAJOR|MINOR) ")
  string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
  string(REPLACE ";" "." version "${numbers}")
  set(INTERLOCK_SIMGRID_VERSION "${version}" PARENT_SCOPE)
  if(NOT version IN_LIST INTERLOCK_SIMGRID_KNOWN)
    list(JOIN INTERLOCK_SIMGRID_KNOWN ", " known)
    set(${missing} "SimGrid was ${version}, and the engine knows ${known}" PARENT_SCOPE)
    return()
  endif()
  # A private layout that was guessed wrong shows as a wrong date, or a crash, of flows whose dates are known.
  set(key "${version} ${SIMGRID_LIBRARY} ${SIMGRID_INCLUDE} ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_FLAGS}")
  file(SHA256 ${PROJECT_SOURCE_DIR}/sim/engines/simgrid_network.h header)
  if((NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR) AND NOT INTERLOCK_SIMGRID_PROBED STREQUAL "${key} ${header}")
    try_run(ran compiled
      SOURCES ${PROJECT_SOURCE_DIR}/sim/engines/simgrid_probe.cc
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR};${SIMGRID_INCLUDE}" -DCMAKE_COMPILE_WARNING_AS_ERROR=OFF
      LINK_LIBRARIES ${SIMGRID_LIBRARY}
      NO_CACHE
      CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
      COMPILE_OUTPUT_VARIABLE said
      RUN_OUTPUT_VARIABLE told)
    if(NOT compiled)
      message(VERBOSE "${said}")
      set(${missing} "a small program against SimGrid ${version} did not compile (cmake --log-level=VERBOSE shows why)" PARENT_SCOPE)
      return()
    endif()
    if(NOT ran EQUAL 0)
      string(REGEX REPLACE "[\";\\\n]" " " told "${told}")
      string(STRIP "${told}" told)
      set(${missing} "SimGrid ${version} shared links in another way than the engine expects (${told}, exit code ${ran})" PARENT_SCOPE)
      return()
    endif()
    set(INTERLOCK_SIMGRID_PROBED "${key} ${header}" CACHE INTERNAL "The SimGrid that gave the dates that were expected")
  endif()
  set(${missing} "" PARENT_SCOPE)
endfunction()

if(INTERLOCK_SIMGRID)
  interlock_look_for_simgrid(missing)
  if(missing STREQUAL "")
    set(INTERLOCK_HAS_SIMGRID ON)
    message(STATUS "SimGrid engine: built with SimGrid ${INTERLOCK_SIMGRID_VERSION}")
  elseif(INTERLOCK_SIMGRID STREQUAL "AUTO")
    message(STATUS "SimGrid engine: not built, so runs that share links are refused: ${missing}")
  else()
    message(FATAL_ERROR "INTERLOCK_SIMGRID is ON, but ${missing}; install one (Debian: libsimgrid-dev), or use -DINTERLOCK_SIMGRID=AUTO to build without contention")
  endif()
else()
  set(missing "INTERLOCK_SIMGRID was OFF")
  message(STATUS "SimGrid engine: not built, as INTERLOCK_SIMGRID is OFF")
endif()
set(INTERLOCK_NO_SIMGRID "${missing}")

# interlock_opens_simgrid(TARGET...): programs that open the engine, where there is one.
function(interlock_opens_simgrid)
  foreach(target ${ARGN})
    if(INTERLOCK_HAS_SIMGRID)
      add_dependencies(${target} interlock_simgrid)
    endif()
  endforeach()
endfunction()
