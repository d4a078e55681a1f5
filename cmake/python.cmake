# Whether the Python package is built. INTERLOCK_PYTHON: AUTO builds it if pybind11 and Python's headers are there, ON insists on them, OFF leaves
# it out. Sets INTERLOCK_HAS_PYTHON, and Python_EXECUTABLE, which tests use too: Debian's, as its packages are for that one and not for a python3
# of pyenv or conda that comes first in PATH. -DPython_EXECUTABLE=... chooses another one.

set(INTERLOCK_PYTHON AUTO CACHE STRING "Build the Python package: AUTO, ON or OFF")
set_property(CACHE INTERLOCK_PYTHON PROPERTY STRINGS AUTO ON OFF)
if(NOT Python_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python 3.10 QUIET COMPONENTS Interpreter OPTIONAL_COMPONENTS Development.Module)
set(INTERLOCK_HAS_PYTHON OFF)
if(INTERLOCK_PYTHON STREQUAL "OFF")
  return()
endif()
if(Python_Development.Module_FOUND)
  set(PYBIND11_FINDPYTHON ON)
  find_package(pybind11 2.10 QUIET CONFIG)
endif()
if(pybind11_FOUND)
  set(INTERLOCK_HAS_PYTHON ON)
elseif(INTERLOCK_PYTHON STREQUAL "ON")
  message(FATAL_ERROR "INTERLOCK_PYTHON is ON, but pybind11, or the headers of ${Python_EXECUTABLE}, are missing (Debian: pybind11-dev python3-dev)")
endif()
