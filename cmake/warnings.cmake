# tenon_warnings: linked privately by every target of Tenon's own code, never by generated code.

add_library(tenon_warnings INTERFACE)
target_compile_options(tenon_warnings INTERFACE -Wall -Wextra -Wshadow -Wconversion)
if(TENON_WERROR)
  target_compile_options(tenon_warnings INTERFACE -Werror)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Wrong about `"text" + std::string` in C++20: https://gcc.gnu.org/PR105651, mended in 13. The second
    # sees the same thing past the strings of a list when the headers are precompiled.
    target_compile_options(tenon_warnings INTERFACE -Wno-restrict -Wno-array-bounds)
  endif()
  if(TENON_SANITIZE)
    # Instrumented code hides initialisations from this warning; the other presets have it.
    target_compile_options(tenon_warnings INTERFACE -Wno-maybe-uninitialized)
  endif()
endif()
