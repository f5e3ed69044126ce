# TENON_SANITIZE and TENON_FUZZ instrument the whole tree: libraries, generated code and tests.

if(TENON_SANITIZE)
  add_compile_options(
    -fsanitize=${TENON_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  if(TENON_SANITIZE MATCHES undefined AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # This check reads a function's type from the bytes before it, and a generated kernel may be at the start of a page.
    add_compile_options(-fno-sanitize=function)
  endif()
  add_link_options(-fsanitize=${TENON_SANITIZE})
endif()

if(TENON_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "TENON_FUZZ needs clang; tools/fuzz sets it up, or give CXX=clang++-19")
  endif()
  # Without the fuzzer's own main(): fuzz.cmake adds that to each target.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
