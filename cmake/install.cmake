# `cmake --install build/release --prefix DIR`: headers, libraries, the command and its completions, and the files of
# find_package(Tenon) and pkg-config.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(FILES include/tenon/tenon.h include/tenon/tenon.hpp include/tenon/tensor.hpp include/tenon/plugin.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tenon)
install(TARGETS tenon RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS tenon_shared tenon_runtime_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# The command generates its completions.
set(completions ${PROJECT_BINARY_DIR}/completions)
foreach(shell IN ITEMS bash zsh fish)
  add_custom_command(OUTPUT ${completions}/${shell}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${completions}
    COMMAND tenon completions ${shell} > ${completions}/${shell}
    DEPENDS tenon VERBATIM)
  list(APPEND completion_files ${completions}/${shell})
endforeach()
add_custom_target(tenon_completions ALL DEPENDS ${completion_files})
install(FILES ${completions}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tenon)
install(FILES ${completions}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _tenon)
install(FILES ${completions}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME tenon.fish)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Tenon)
configure_package_config_file(cmake/TenonConfig.cmake.in ${PROJECT_BINARY_DIR}/TenonConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TenonConfig.cmake ${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake
  DESTINATION ${package})

file(RELATIVE_PATH TENON_PREFIX_FROM_PC /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
foreach(library IN ITEMS tenon tenon_runtime)
  configure_file(cmake/${library}.pc.in ${PROJECT_BINARY_DIR}/${library}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${library}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
