# gridbuf::gridbuf, the library with its headers; gridbuf::headers, the headers alone; gridbuf::fortran, the Fortran module, which
# your compiler builds, for projects with the languages C and Fortran.
include_guard(GLOBAL)
get_filename_component(_gridbuf_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

add_library(gridbuf::headers INTERFACE IMPORTED GLOBAL)
target_include_directories(gridbuf::headers INTERFACE "${_gridbuf_prefix}/include")

add_library(gridbuf::gridbuf SHARED IMPORTED GLOBAL)
set_target_properties(gridbuf::gridbuf PROPERTIES
  IMPORTED_LOCATION "${_gridbuf_prefix}/lib/libgridbuf.so.0"
  IMPORTED_SONAME libgridbuf.so.0
  INTERFACE_LINK_LIBRARIES gridbuf::headers)

get_property(_gridbuf_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if("Fortran" IN_LIST _gridbuf_languages AND "C" IN_LIST _gridbuf_languages)
  set(_gridbuf_modules "${CMAKE_BINARY_DIR}/gridbuf_fortran")
  add_library(gridbuf_fortran STATIC EXCLUDE_FROM_ALL
    "${_gridbuf_prefix}/share/gridbuf/gridbuf.f90" "${_gridbuf_prefix}/share/gridbuf/gridbuf_fortran.c")
  set_target_properties(gridbuf_fortran PROPERTIES Fortran_MODULE_DIRECTORY "${_gridbuf_modules}")
  target_include_directories(gridbuf_fortran INTERFACE "${_gridbuf_modules}")
  target_link_libraries(gridbuf_fortran PUBLIC gridbuf::gridbuf)
  add_library(gridbuf::fortran ALIAS gridbuf_fortran)
endif()
