# tenon_precompile(TARGET [HEADER...]): reads the headers that most files include, and HEADERs, once for
# the target. A first build takes two thirds of the time. The other presets go without, so that a file
# which forgets an include is found there. With -DTENON_PCH=OFF objects in ccache serve any checkout.

string(COMPARE EQUAL "${CMAKE_BUILD_TYPE}" Release is_release)
option(TENON_PCH "Precompile the headers that most files include" ${is_release})

function(tenon_precompile target)
  if(TENON_PCH)
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <cmath> <complex> <cstdint> <functional> <map> <memory> <numeric> <optional> <set>
      <span> <string> <string_view> <unordered_map> <unordered_set> <utility> <variant> <vector>
      ${PROJECT_SOURCE_DIR}/src/ir/graph.h ${ARGN})
  endif()
endfunction()

# tenon_precompile_as(TARGET OTHER): what was precompiled for another target serves this one too.
function(tenon_precompile_as target other)
  if(TENON_PCH)
    target_precompile_headers(${target} REUSE_FROM ${other})
  endif()
endfunction()
