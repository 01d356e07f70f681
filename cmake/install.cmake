# cmake --install: the program, the library's stages and headers, and a package that find_package(holdfast) finds.
include(CMakePackageConfigHelpers)

add_library(holdfast_all INTERFACE)
set_target_properties(holdfast_all PROPERTIES EXPORT_NAME holdfast)
holdfast_libraries(libraries "")
target_link_libraries(holdfast_all INTERFACE ${libraries})
add_library(holdfast::holdfast ALIAS holdfast_all)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
install(TARGETS holdfast RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS holdfast_all holdfast_parts holdfast_onnx ${libraries} EXPORT holdfast_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/holdfast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT holdfast_targets NAMESPACE holdfast:: DESTINATION ${package_folder})
configure_package_config_file(cmake/holdfastConfig.cmake.in ${CMAKE_BINARY_DIR}/holdfastConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/holdfastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/holdfastConfig.cmake ${CMAKE_BINARY_DIR}/holdfastConfigVersion.cmake DESTINATION ${package_folder})
