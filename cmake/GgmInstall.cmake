# Install rules: the library, its headers, ggmConfig.cmake and ggm.pc. All of them are relocatable: paths are computed from where
# the file lies, so an installed tree may be moved or unpacked anywhere. ggm::ggm needs no other package.
include(CMakePackageConfigHelpers)

install(TARGETS ggm EXPORT ggmTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ggm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(ggm_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ggm)
install(EXPORT ggmTargets NAMESPACE ggm:: DESTINATION ${ggm_config_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/ggmConfig.cmake.in ${PROJECT_BINARY_DIR}/ggmConfig.cmake
                              INSTALL_DESTINATION ${ggm_config_dir})
# While the version is 0.x every minor version may break the ABI, as the SONAME says.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ggmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ggmConfig.cmake ${PROJECT_BINARY_DIR}/ggmConfigVersion.cmake DESTINATION ${ggm_config_dir})

# pkg-config: the prefix is found from the place of ggm.pc itself. An absolute libdir or includedir is kept as it is.
function(ggm_pc_path result dir)
  if(IS_ABSOLUTE "${dir}")
    set(${result} "${dir}" PARENT_SCOPE)
  else()
    set(${result} "\${prefix}/${dir}" PARENT_SCOPE)
  endif()
endfunction()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(ggm_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  file(RELATIVE_PATH ggm_pc_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" ggm_pc_up "${ggm_pc_up}")
  set(ggm_pc_prefix "\${pcfiledir}/${ggm_pc_up}")
endif()
ggm_pc_path(ggm_pc_libdir "${CMAKE_INSTALL_LIBDIR}")
ggm_pc_path(ggm_pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/ggm.pc.in ${PROJECT_BINARY_DIR}/ggm.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ggm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# `cpack` in the build folder makes a .tar.gz and, where dpkg is present, a .deb. A project that embeds ggm packs itself.
if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_PACKAGE_NAME libggm)
  set(CPACK_PACKAGE_VENDOR "libggm")
  set(CPACK_PACKAGE_CONTACT "libggm maintainers <libggm@localhost>")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_GENERATOR TGZ)
  find_program(GGM_DPKG_DEB dpkg-deb)
  mark_as_advanced(GGM_DPKG_DEB)
  if(GGM_DPKG_DEB)
    list(APPEND CPACK_GENERATOR DEB)
    set(CPACK_DEBIAN_PACKAGE_SECTION libs)
    set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
    set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libstdc++6, libgcc-s1")
  endif()
  include(CPack)
endif()
