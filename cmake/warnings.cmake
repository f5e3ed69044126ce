# tenon_warnings: linked privately by every target of Tenon's own code, never by generated code.

add_library(tenon_warnings INTERFACE)
target_compile_options(tenon_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion)
if(TENON_WERROR)
  target_compile_options(tenon_warnings INTERFACE -Werror)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # False positive for `"text" + std::string` in C++20: https://gcc.gnu.org/PR105651, fixed in GCC 13.
    target_compile_options(tenon_warnings INTERFACE -Wno-restrict)
  endif()
  if(TENON_PCH)
    # A precompiled standard library does not count as a system header for warnings about inlined code; the other
    # presets have these warnings.
    target_compile_options(tenon_warnings INTERFACE
      -Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread -Wno-dangling-pointer)
  endif()
  if(TENON_SANITIZE)
    # Instrumented code hides initialisations from this warning; the other presets have it.
    target_compile_options(tenon_warnings INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()

if(TENON_UNITY)
  # In a unity build a name may shadow one of another file; the other presets have these warnings.
  target_compile_options(tenon_warnings INTERFACE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # GCC's -Wconversion does not include sign conversions.
  target_compile_options(tenon_warnings INTERFACE -Wno-sign-conversion)
  if(TENON_PCH)
    # The standard library itself calls a deprecated function for the buffer of its sort.
    target_compile_options(tenon_warnings INTERFACE -Wno-deprecated-declarations)
  endif()
endif()
