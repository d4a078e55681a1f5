# The engine of the studio's offline page (interlock studio --out), for which Emscripten compiles the sources once more: a target of its own,
# studio_engine, that nothing else asks for. cli/studio/wasm is its project.

find_program(INTERLOCK_EMCMAKE emcmake)
mark_as_advanced(INTERLOCK_EMCMAKE)
set(engine_files interlock_studio.js interlock_studio.wasm)
if(INTERLOCK_EMCMAKE)
  set(engine_folder ${PROJECT_BINARY_DIR}/studio_engine)
  set(built_engine ${engine_files})
  list(TRANSFORM built_engine PREPEND ${engine_folder}/)
  # What is compiled through ccache here is so there. Flags of this compiler are not Emscripten's. A node that is not Debian's does not look where Debian's Emscripten has its packages.
  add_custom_target(studio_engine
    COMMAND ${CMAKE_COMMAND} -E env --unset=CXXFLAGS --unset=LDFLAGS "EM_COMPILER_WRAPPER=${CMAKE_CXX_COMPILER_LAUNCHER}"
            ${INTERLOCK_EMCMAKE} ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR}/cli/studio/wasm -B ${engine_folder} -G Ninja
            -DCODEMIRROR_FOLDER=${CODEMIRROR_FOLDER}
    COMMAND ${CMAKE_COMMAND} -E env "EM_COMPILER_WRAPPER=${CMAKE_CXX_COMPILER_LAUNCHER}" NODE_PATH=/usr/share/nodejs
            ${CMAKE_COMMAND} --build ${engine_folder}
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${built_engine} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
    USES_TERMINAL VERBATIM)
endif()
list(TRANSFORM engine_files PREPEND ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/)
install(FILES ${engine_files} DESTINATION lib/interlock OPTIONAL)
