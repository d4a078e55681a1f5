# What an installation holds, and the Debian package of it. The program finds its modules in ../lib/interlock and its data in
# ../share/interlock, as seen from where it lies.

set(INTERLOCK_SHARE share/interlock)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME interlock)  # else: libinterlock-dev
install(TARGETS interlock RUNTIME DESTINATION bin)
# What a tarball brings is found there, also by libraries that bring others: that an RPATH does, and a RUNPATH does not.
set_target_properties(interlock PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/interlock" BUILD_WITH_INSTALL_RPATH ON)
target_link_options(interlock PRIVATE LINKER:--disable-new-dtags)
foreach(module interlock_simgrid interlock_harness_module interlock_cuda interlock_mpi)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION lib/interlock)
  endif()
endforeach()

# The program that libinterlock starts for SimGrid lies beside the module that it opens.
if(TARGET interlock_simgrid_process)
  set_target_properties(interlock_simgrid_process PROPERTIES INSTALL_RPATH "$ORIGIN")
  target_link_options(interlock_simgrid_process PRIVATE LINKER:--disable-new-dtags)
  install(TARGETS interlock_simgrid_process RUNTIME DESTINATION lib/interlock)
endif()

# The library finds what a tarball brings likewise. What find_package(interlock) reads, and headers, are a package of their own.
set_target_properties(interlock_library PROPERTIES INSTALL_RPATH "$ORIGIN/interlock")
target_link_options(interlock_library PRIVATE LINKER:--disable-new-dtags)
install(TARGETS interlock_library EXPORT interlock-targets
        LIBRARY DESTINATION lib NAMELINK_COMPONENT libinterlock-dev)
install(FILES include/interlock/interlock.h include/interlock/interlock_c.h DESTINATION include/interlock
        COMPONENT libinterlock-dev)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/interlock-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/interlock-config-version.cmake DESTINATION lib/cmake/interlock COMPONENT libinterlock-dev)
install(EXPORT interlock-targets FILE interlock-config.cmake NAMESPACE interlock:: DESTINATION lib/cmake/interlock
        COMPONENT libinterlock-dev)

foreach(folder models/zoo hardware/catalogue hardware/calibrated scenarios validate/published)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION ${INTERLOCK_SHARE}/${folder}
          FILES_MATCHING PATTERN "*.json" PATTERN "*.csv")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder}/ DESTINATION interlock/share/interlock/${folder}
          COMPONENT wheel EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.json" PATTERN "*.csv")
endforeach()
# A wheel of the Python package (python/CMakeLists.txt) brings the library, which finds its data beside itself.
if(INTERLOCK_HAS_PYTHON)
  install(TARGETS interlock_core interlock_library LIBRARY DESTINATION interlock COMPONENT wheel EXCLUDE_FROM_ALL NAMELINK_SKIP)
  if(TARGET interlock_simgrid_process)
    install(TARGETS interlock_simgrid interlock_simgrid_process
            LIBRARY DESTINATION interlock COMPONENT wheel EXCLUDE_FROM_ALL
            RUNTIME DESTINATION interlock COMPONENT wheel EXCLUDE_FROM_ALL)
  endif()
  install(DIRECTORY python/interlock DESTINATION . COMPONENT wheel EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN py.typed)
  install(FILES LICENSE DESTINATION interlock COMPONENT wheel EXCLUDE_FROM_ALL)
endif()
install(FILES README.md CHANGELOG.md DESTINATION share/doc/interlock)
install(FILES LICENSE DESTINATION share/doc/interlock RENAME copyright)
install(DIRECTORY docs DESTINATION share/doc/interlock)

# The manual page and the completions are what the program itself says; where it was compiled for another machine, by an emulator of that.
set(shell_folder ${PROJECT_BINARY_DIR}/shell)
set(said "${CMAKE_CROSSCOMPILING_EMULATOR} '$<TARGET_FILE:interlock>'")
set(shell_files interlock.1 interlock.bash _interlock interlock.fish)
list(TRANSFORM shell_files PREPEND ${shell_folder}/)
add_custom_command(
  OUTPUT ${shell_files}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${shell_folder}
  COMMAND ${CMAKE_COMMAND} -E env INTERLOCK_DATA=${PROJECT_SOURCE_DIR} sh -c
          "${said} man > interlock.1 && ${said} completion bash > interlock.bash && ${said} completion zsh > _interlock && ${said} completion fish > interlock.fish"
  WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/shell
  DEPENDS interlock
  VERBATIM)
file(MAKE_DIRECTORY ${shell_folder})
add_custom_target(shell_files ALL DEPENDS ${shell_files})
install(FILES ${shell_folder}/interlock.1 DESTINATION share/man/man1)
install(FILES ${shell_folder}/interlock.bash DESTINATION share/bash-completion/completions RENAME interlock)
install(FILES ${shell_folder}/_interlock DESTINATION share/zsh/vendor-completions)
install(FILES ${shell_folder}/interlock.fish DESTINATION share/fish/vendor_completions.d)

# `cpack` in the build folder makes interlock_VERSION_ARCHITECTURE.deb and libinterlock-dev_VERSION_ARCHITECTURE.deb, whose dependencies are what program and modules are linked to,
# SimGrid among them, and interlock-VERSION-Linux-ARCHITECTURE.tar.gz, which brings these libraries and runs from any folder of a system
# that is no older than the one that it was made on.
set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME interlock)
set(CPACK_PACKAGE_VENDOR "The interlock authors")
set(CPACK_PACKAGE_CONTACT "The interlock authors <interlock@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predict step time, utilisation and memory of model-parallel training")
set(CPACK_PACKAGE_DESCRIPTION "A JSON file names a model, a machine and how one is trained on the other; a table, a result file and a report page answer.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_SYSTEM_NAME ${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/bundle_libraries.cmake)
set(CPACK_DEBIAN_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL interlock libinterlock-dev)
set(CPACK_DEBIAN_INTERLOCK_PACKAGE_NAME interlock)
set(CPACK_DEBIAN_LIBINTERLOCK-DEV_PACKAGE_NAME libinterlock-dev)
set(CPACK_COMPONENT_LIBINTERLOCK-DEV_DESCRIPTION "headers of libinterlock, and what find_package(interlock) reads")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_LIBINTERLOCK-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "coinor-cbc, librsvg2-bin")
# A package of one release does not fit another: its name says which.
cmake_host_system_information(RESULT system QUERY DISTRIB_INFO)
if(system_ID STREQUAL "debian" OR system_ID STREQUAL "ubuntu")
  string(SUBSTRING ${system_ID} 0 3 short)
  set(CPACK_DEBIAN_PACKAGE_RELEASE 1~${short}${system_VERSION_ID})
endif()
set(version ${PROJECT_VERSION})
if(CPACK_DEBIAN_PACKAGE_RELEASE)
  string(APPEND version -${CPACK_DEBIAN_PACKAGE_RELEASE})
endif()
set(CPACK_DEBIAN_LIBINTERLOCK-DEV_PACKAGE_DEPENDS "interlock (= ${version})")
include(CPack)
