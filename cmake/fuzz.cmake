# One libFuzzer target for each fuzz/NAME.cpp: bin/fuzz-NAME.

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/*.cpp)
foreach(source IN LISTS fuzz_sources)
  get_filename_component(name ${source} NAME_WE)
  file(STRINGS ${source} is_document REGEX "#include \"document.h\"")
  if(is_document AND NOT TENON_DOCUMENTS)
    continue()
  endif()
  add_executable(fuzz-${name} ${source})
  target_link_libraries(fuzz-${name} PRIVATE tenon_api tenon_warnings)
  target_link_options(fuzz-${name} PRIVATE -fsanitize=fuzzer)
endforeach()
