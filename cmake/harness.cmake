# Whether the harness is built, which trains for real: the module that train, calibrate and validate open. Sets INTERLOCK_HAS_HARNESS,
# and those of CUDA to OFF without it. The program itself needs nothing of this.

find_package(Eigen3 QUIET NO_MODULE)
find_path(ZIP_HEADERS zip.h)
find_library(ZIP_LIBRARY zip)
set(INTERLOCK_HAS_HARNESS OFF)
if(TARGET Eigen3::Eigen AND ZIP_HEADERS AND ZIP_LIBRARY)
  set(INTERLOCK_HAS_HARNESS ON)
elseif(INTERLOCK_CUDA STREQUAL "ON")
  message(FATAL_ERROR "INTERLOCK_CUDA is ON, but Eigen or libzip is missing (Debian: libeigen3-dev libzip-dev)")
else()
  set(INTERLOCK_HAS_CUDA OFF)
  set(INTERLOCK_EMULATES_CUDA OFF)
endif()
