# A compiler cache and a fast linker, where they are installed.

find_program(TENON_CCACHE ccache)
if(TENON_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  if(TENON_PCH)
    # ccache looks into a precompiled header only when allowed to trust its defines and dates. What a file depends on
    # it takes from the compiler, in place of running the preprocessor on each.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 ${TENON_CCACHE})
    add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
                        "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  else()
    set(CMAKE_CXX_COMPILER_LAUNCHER ${TENON_CCACHE})
  endif()
endif()

find_program(TENON_MOLD mold)
if(TENON_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

# What of LLVM nobody calls is left out, and with it libraries that only that would need.
add_link_options(-Wl,--as-needed)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_link_options(-Wl,--gc-sections)
else()
  # Archives that only name their files: with debug information they are hundreds of megabytes, written anew for each
  # file that changes.
  set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> qcT <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> qT <TARGET> <LINK_FLAGS> <OBJECTS>")
endif()

# Colour survives Ninja's pipe only when it is asked for; asked for always, it would fill logs.
if(DEFINED ENV{TENON_COLOR})
  add_compile_options(-fdiagnostics-color=always)
endif()
