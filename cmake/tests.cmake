# bin/tenon-test (the runner of tests/**/*.test), bin/tenon-verify-passes (passes over random graphs),
# bin/tenon-mutate-onnx (mutated ONNX models), bin/tenon-sweep-sizes (compilation of many sizes) and
# bin/tenon-unit-tests (GoogleTest).

find_package(GTest REQUIRED)
if(TENON_PCH)
  tenon_precompiled_set(tenon_precompiled_tests
    HEADERS <gtest/gtest.h> ${PROJECT_SOURCE_DIR}/src/driver/compile.h ${PROJECT_SOURCE_DIR}/src/models/inputs.h
    OPTIONS -O0 LIBRARIES fmt::fmt nlohmann_json::nlohmann_json GTest::gtest)
endif()

# tenon_test_program(NAME): a test program without optimisation, which halves its compile time; the hot code is in
# Tenon's optimised libraries. Template instantiations of both must resolve to the optimised ones: the archives are
# linked whole, before the tests.
get_property(folders GLOBAL PROPERTY tenon_folders)
list(TRANSFORM folders REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
list(JOIN archives "," archives)
function(tenon_test_program name)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE nlohmann_json::nlohmann_json tenon_warnings)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name} PRIVATE -O0)
    target_link_libraries(${name} PRIVATE ${folders})
    target_link_options(${name} PRIVATE -Wl,--whole-archive,${archives},--no-whole-archive)
  endif()
  tenon_precompile(${name} tenon_precompiled_tests)
  tenon_batches(${name} 40)
endfunction()

file(GLOB_RECURSE runner_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/runner/*.cpp)
if(runner_sources)
  add_executable(tenon-test ${runner_sources})
  target_link_libraries(tenon-test PRIVATE tenon_cli CLI11::CLI11)
  tenon_test_program(tenon-test)
endif()

file(GLOB verify_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/verify_passes/*.cpp)
add_executable(tenon-verify-passes ${verify_sources})
target_link_libraries(tenon-verify-passes PRIVATE tenon_driver Threads::Threads)
tenon_test_program(tenon-verify-passes)

file(GLOB mutate_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/mutate_onnx/*.cpp)
add_executable(tenon-mutate-onnx ${mutate_sources} ${PROJECT_SOURCE_DIR}/tests/verify_passes/thin.cpp)
target_link_libraries(tenon-mutate-onnx PRIVATE tenon_driver tenon_onnx_schema Threads::Threads)
tenon_test_program(tenon-mutate-onnx)

file(GLOB sweep_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/sweep_sizes/*.cpp)
add_executable(tenon-sweep-sizes ${sweep_sources} ${PROJECT_SOURCE_DIR}/tests/mutate_onnx/workers.cpp
  ${PROJECT_SOURCE_DIR}/tests/verify_passes/thin.cpp)
target_link_libraries(tenon-sweep-sizes PRIVATE tenon_driver tenon_onnx_schema Threads::Threads)
tenon_test_program(tenon-sweep-sizes)

file(GLOB_RECURSE unit_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/*.cpp)
if(NOT TENON_DOCUMENTS)
  # Tests that include headers of documents are about documents; others skip a case with "needs documents".
  foreach(source IN LISTS unit_sources)
    file(STRINGS ${source} includes REGEX "#include \"(documents/|unit/documents/)")
    if(includes OR source MATCHES "/tests/unit/documents/")
      list(REMOVE_ITEM unit_sources ${source})
    endif()
  endforeach()
endif()
if(unit_sources)
  add_executable(tenon-unit-tests ${unit_sources})
  target_link_libraries(tenon-unit-tests PRIVATE tenon_api tenon_cli tenon_onnx_schema GTest::gtest)
  tenon_test_program(tenon-unit-tests)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    # Iterates over every weight of a network.
    set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/unit/quantize/relay_interpreter.cpp PROPERTIES
      COMPILE_OPTIONS -O2 SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
  endif()
endif()

# bin/example-NAME for each file of examples/, to keep the examples compiling.
file(GLOB example_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp)
foreach(source IN LISTS example_sources)
  get_filename_component(stem ${source} NAME_WE)
  add_executable(example-${stem} ${source})
  target_link_libraries(example-${stem} PRIVATE tenon_cli tenon_warnings)
  tenon_precompile(example-${stem} tenon_precompiled)
endforeach()
