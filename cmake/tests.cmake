# bin/tenon-test (the runner of tests/**/*.test), bin/tenon-verify-passes (passes over random graphs),
# bin/tenon-mutate-onnx (changed ONNX models) and bin/tenon-unit-tests (GoogleTest).

file(GLOB_RECURSE runner_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/runner/*.cpp)
if(runner_sources)
  add_executable(tenon-test ${runner_sources})
  target_include_directories(tenon-test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(tenon-test PRIVATE
    tenon_cli CLI11::CLI11 nlohmann_json::nlohmann_json tenon_warnings)
endif()

file(GLOB verify_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/verify_passes/*.cpp)
add_executable(tenon-verify-passes ${verify_sources})
target_link_libraries(tenon-verify-passes PRIVATE tenon_driver Threads::Threads tenon_warnings)

file(GLOB mutate_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/mutate_onnx/*.cpp)
add_executable(tenon-mutate-onnx ${mutate_sources} ${PROJECT_SOURCE_DIR}/tests/verify_passes/thin.cpp)
target_include_directories(tenon-mutate-onnx PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(tenon-mutate-onnx PRIVATE tenon_driver tenon_onnx_schema Threads::Threads tenon_warnings)

file(GLOB_RECURSE unit_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/*.cpp)
if(unit_sources)
  find_package(GTest REQUIRED)
  add_executable(tenon-unit-tests ${unit_sources})
  target_include_directories(tenon-unit-tests PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(tenon-unit-tests PRIVATE
    tenon_api tenon_onnx_schema GTest::gtest GTest::gtest_main nlohmann_json::nlohmann_json tenon_warnings)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(tenon-unit-tests PRIVATE -O1 $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  endif()
  tenon_precompile(tenon-unit-tests <gtest/gtest.h>)
endif()

# bin/example-NAME for each file of examples/, so that they stay true.
file(GLOB example_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp)
foreach(source IN LISTS example_sources)
  get_filename_component(stem ${source} NAME_WE)
  add_executable(example-${stem} ${source})
  target_link_libraries(example-${stem} PRIVATE tenon_cli tenon_warnings)
endforeach()
