# tenon_warnings: linked privately by every target of Tenon's own code, never by generated code.

add_library(tenon_warnings INTERFACE)
target_compile_options(tenon_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion)
if(TENON_WERROR)
  target_compile_options(tenon_warnings INTERFACE -Werror)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Wrong about `"text" + std::string` in C++20: https://gcc.gnu.org/PR105651, mended in 13.
    target_compile_options(tenon_warnings INTERFACE -Wno-restrict)
  endif()
  if(TENON_PCH)
    # Precompiled, the standard library no longer counts as a system header for the warnings that look
    # into inlined code; the other presets have them.
    target_compile_options(tenon_warnings INTERFACE
      -Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread -Wno-dangling-pointer)
  endif()
  if(TENON_SANITIZE)
    # Instrumented code hides initialisations from this warning; the other presets have it.
    target_compile_options(tenon_warnings INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

if(TENON_UNITY)
  # Of files that are compiled together, one may have a name that is another's own; the other presets have these.
  target_compile_options(tenon_warnings INTERFACE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # GCC's -Wconversion leaves signs alone.
  target_compile_options(tenon_warnings INTERFACE -Wno-sign-conversion)
  if(TENON_PCH)
    # Of what the standard library says to itself: its sort takes a buffer from a function that is deprecated.
    target_compile_options(tenon_warnings INTERFACE -Wno-deprecated-declarations)
  endif()
endif()
