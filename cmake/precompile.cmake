# Precompiled headers and unity builds of the release preset: headers that most files include are precompiled, and
# batches of a folder's files are compiled together, so that shared headers are parsed and templates instantiated once.
# A first build takes less than half the time. The other presets use neither: they detect missing includes, and an edit
# compiles one file. With -DTENON_PCH=OFF objects in ccache are valid in any checkout.

string(COMPARE EQUAL "${CMAKE_BUILD_TYPE}" Release is_release)
option(TENON_PCH "Precompile the headers that most files include" ${is_release})
option(TENON_UNITY "Compile several files of a folder at a time" ${is_release})

# At lower optimisation GCC warns about initialised variables; Clang inlines as at -O2 without an option.
set(tenon_light_options -O1 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  "$<$<CXX_COMPILER_ID:Clang>:SHELL:-mllvm -inline-threshold=25>")

set(precompiled_headers
  <algorithm> <array> <cmath> <complex> <cstdint> <deque> <fstream> <functional> <map> <memory> <numeric> <optional> <set>
  <span> <string> <string_view> <unordered_map> <unordered_set> <utility> <variant> <vector>
  <nlohmann/json.hpp> ${PROJECT_SOURCE_DIR}/src/ir/graph.h)

# Clang accepts headers that were precompiled at another optimisation level, GCC does not.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(tenon_precompiled_light tenon_precompiled_light)
  set(tenon_precompiled_hot)
else()
  set(tenon_precompiled_light tenon_precompiled)
  set(tenon_precompiled_hot tenon_precompiled)
endif()

# tenon_precompiled_set(NAME [HEADERS header...] [OPTIONS option...] [LIBRARIES library...]): defines a set for tenon_precompile.
function(tenon_precompiled_set name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;OPTIONS;LIBRARIES")
  set(source ${PROJECT_BINARY_DIR}/generated/${name}.cpp)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "")
  endif()
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${precompiled_headers} ${arg_HEADERS})
endfunction()

# tenon_precompile(TARGET NAME): the target uses the precompiled headers NAME, if they are enabled.
function(tenon_precompile target name)
  if(TENON_PCH AND name)
    target_precompile_headers(${target} REUSE_FROM ${name})
    # A program with the libraries' compile options can share their precompiled headers.
    target_compile_options(${target} PRIVATE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-fPIC>)
  endif()
endfunction()

# tenon_batches(TARGET COUNT): compiles COUNT files per translation unit.
function(tenon_batches target count)
  if(TENON_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${count})
  endif()
endfunction()
