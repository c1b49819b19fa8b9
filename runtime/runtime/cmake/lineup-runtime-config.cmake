# find_package(lineup-runtime) gives the imported targets lineup::runtime (shared) and lineup::runtime_static.
get_filename_component(_lineup_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET lineup::runtime)
  find_package(Threads REQUIRED)
  add_library(lineup::runtime SHARED IMPORTED)
  set_target_properties(lineup::runtime PROPERTIES
    IMPORTED_LOCATION "${_lineup_prefix}/lib/liblineup_runtime.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_lineup_prefix}/include"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
  add_library(lineup::runtime_static STATIC IMPORTED)
  set_target_properties(lineup::runtime_static PROPERTIES
    IMPORTED_LOCATION "${_lineup_prefix}/lib/liblineup_runtime.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_lineup_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()
