# A compiler cache and a fast linker, where they are installed.

# Clang allocates so many small pieces that it takes 3 to 7 % less time where the C library keeps what was freed and asks
# the system for much at a time. Another C library does not look at this.
set(compiler_launcher)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  string(JOIN ":" tunables glibc.malloc.tcache_count=20000 glibc.malloc.top_pad=33554432
         glibc.malloc.mmap_threshold=1073741824 glibc.malloc.trim_threshold=4294967296)
  set(compiler_launcher ${CMAKE_COMMAND} -E env GLIBC_TUNABLES=${tunables})
endif()
find_program(TENON_CCACHE ccache)
if(TENON_CCACHE)
  if(TENON_PCH)
    # ccache looks into a precompiled header only when allowed to trust its defines and dates. What a file depends on
    # it takes from the compiler, in place of running the preprocessor on each.
    if(NOT compiler_launcher)
      set(compiler_launcher ${CMAKE_COMMAND} -E env)
    endif()
    list(APPEND compiler_launcher CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1)
    add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
                        "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  endif()
  list(APPEND compiler_launcher ${TENON_CCACHE})
endif()
if(compiler_launcher AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${compiler_launcher})
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
