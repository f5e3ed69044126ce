# A compiler cache and a fast linker, if they are installed.

# Clang makes many small allocations: it takes 3 to 7 % less time if the C library retains freed memory and requests
# large blocks from the system. C libraries other than glibc ignore this.
set(compiler_launcher)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  string(JOIN ":" tunables glibc.malloc.tcache_count=20000 glibc.malloc.top_pad=33554432
         glibc.malloc.mmap_threshold=1073741824 glibc.malloc.trim_threshold=4294967296)
  set(compiler_launcher ${CMAKE_COMMAND} -E env GLIBC_TUNABLES=${tunables})
endif()
find_program(TENON_CCACHE ccache)
if(TENON_CCACHE)
  if(TENON_PCH)
    # ccache supports precompiled headers only if it may trust their defines and dates. It takes the dependencies of a
    # file from the compiler, in place of running the preprocessor.
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

# Drops unused parts of LLVM, and the libraries that only those need.
add_link_options(-Wl,--as-needed)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_link_options(-Wl,--gc-sections)
else()
  # Thin archives: with debug information full ones have hundreds of megabytes, rewritten for each changed file.
  set(CMAKE_CXX_ARCHIVE_CREATE "<CMAKE_AR> qcT <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_CXX_ARCHIVE_APPEND "<CMAKE_AR> qT <TARGET> <LINK_FLAGS> <OBJECTS>")
endif()

# Colour must be forced through Ninja's pipe, but not into logs.
if(DEFINED ENV{TENON_COLOR})
  add_compile_options(-fdiagnostics-color=always)
endif()
