# libtenon_runtime.so, libtenon.so, and the carrier of `tenon compile -o MODEL.so`: the runtime as a shared object
# to which programs are appended. Each exports exactly the symbols of its list in src/shared.

# tenon_exports(TARGET LIST FOLDER...): links all of the FOLDERs, and exports the symbols of LIST.
function(tenon_exports target list)
  list(TRANSFORM ARGN REPLACE "(.+)" "tenon_\\1" OUTPUT_VARIABLE folders)
  list(TRANSFORM folders REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
  target_link_libraries(${target} PRIVATE ${folders} tenon_warnings)
  tenon_precompile(${target} tenon_precompiled)
  list(JOIN files "," files)
  target_link_options(${target} PRIVATE -Wl,--whole-archive,${files},--no-whole-archive)
  set(symbols ${PROJECT_SOURCE_DIR}/src/shared/${list})
  target_link_options(${target} PRIVATE -Wl,--version-script=${symbols} -Wl,-Bsymbolic -Wl,--as-needed)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${symbols})
endfunction()

set(runtime_only ${PROJECT_SOURCE_DIR}/src/shared/runtime_only.cpp)

add_library(tenon_runtime_shared SHARED ${runtime_only})
set_target_properties(tenon_runtime_shared PROPERTIES OUTPUT_NAME tenon_runtime VERSION 1.0 SOVERSION 1)
tenon_exports(tenon_runtime_shared tenon_runtime.symbols embed)

# Without a SONAME: a program that links against MODEL.so must depend on that file name.
add_library(tenon_model_carrier MODULE ${runtime_only})
set_target_properties(tenon_model_carrier PROPERTIES PREFIX "" OUTPUT_NAME model_carrier NO_SONAME ON)
tenon_exports(tenon_model_carrier tenon_runtime.symbols embed)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_link_options(tenon_runtime_shared PRIVATE -s)
  target_link_options(tenon_model_carrier PRIVATE -s)
endif()

# The folder models embeds the carrier as bytes.
set(carrier ${PROJECT_BINARY_DIR}/lib/model_carrier.so)
set(carrier_hash ${PROJECT_BINARY_DIR}/generated/models/carrier_hash.h)
add_custom_command(OUTPUT ${carrier_hash}
  COMMAND ${CMAKE_COMMAND} -DCARRIER=${carrier} -DHEADER=${carrier_hash} -P ${PROJECT_SOURCE_DIR}/cmake/carrier_hash.cmake
  DEPENDS tenon_model_carrier ${carrier} ${PROJECT_SOURCE_DIR}/cmake/carrier_hash.cmake
  COMMENT "Hashing the model carrier" VERBATIM)
add_custom_target(tenon_carrier_hash DEPENDS ${carrier_hash})
set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/models/shared_object.cpp PROPERTIES
  COMPILE_DEFINITIONS "TENON_MODEL_CARRIER=\"${carrier}\"" OBJECT_DEPENDS "${carrier};${carrier_hash}" SKIP_PRECOMPILE_HEADERS ON)
target_include_directories(tenon_models PRIVATE ${PROJECT_BINARY_DIR}/generated)
add_dependencies(tenon_models tenon_model_carrier tenon_carrier_hash)
