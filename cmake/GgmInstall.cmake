# Install rules: the library, its headers, ggmConfig.cmake and ggm.pc. All of them are relocatable: paths are computed from where
# the file lies, so an installed tree may be moved or unpacked anywhere. ggm::ggm needs no other package.
# Two components: Runtime is what a built program needs, Development what building one needs beside it. The licence is a third.
include(CMakePackageConfigHelpers)

install(TARGETS ggm EXPORT ggmTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Runtime NAMELINK_COMPONENT Development
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT Runtime
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ggm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT Development
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# Of no package's component: a .deb has its copyright file, and two minor versions may not share a path.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT Licence)

set(ggm_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ggm)
install(EXPORT ggmTargets NAMESPACE ggm:: DESTINATION ${ggm_config_dir} COMPONENT Development)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/ggmConfig.cmake.in ${PROJECT_BINARY_DIR}/ggmConfig.cmake
                              INSTALL_DESTINATION ${ggm_config_dir})
# While the version is 0.x every minor version may break the ABI, as the SONAME says.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ggmConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ggmConfig.cmake ${PROJECT_BINARY_DIR}/ggmConfigVersion.cmake DESTINATION ${ggm_config_dir}
        COMPONENT Development)

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
install(FILES ${PROJECT_BINARY_DIR}/ggm.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT Development)

# `cpack` in the build folder makes a .tar.gz of everything and, where dpkg-deb is present, two .deb: libggm0.1, named by its
# SONAME so that two minor versions can be installed beside each other, and libggm-dev. A project that embeds ggm packs itself.
if(PROJECT_IS_TOP_LEVEL)
  set(ggm_soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  if(GGM_WITH_CUDA)
    string(REGEX MATCH "^[0-9]+" ggm_cuda_major "${CMAKE_CUDA_COMPILER_VERSION}")
    set(ggm_package_kind cuda${ggm_cuda_major})
    set(ggm_package_backends "With the CUDA backend, built by CUDA ${CMAKE_CUDA_COMPILER_VERSION}, and the host backend.\n\
The CUDA runtime is inside; on a machine without a driver the host backend serves.")
  else()
    set(ggm_package_kind host)
    set(ggm_package_backends "This build has the host backend alone.")
  endif()
  string(TOLOWER "${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR}" ggm_package_system)
  set(CPACK_PACKAGE_NAME libggm)
  set(CPACK_PACKAGE_VENDOR "libggm")
  if(NOT CPACK_PACKAGE_CONTACT)  # -DCPACK_PACKAGE_CONTACT="Name <address>" puts whoever builds a package there
    set(CPACK_PACKAGE_CONTACT "libggm maintainers <libggm@localhost>")
  endif()
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
  set(CPACK_PACKAGE_FILE_NAME libggm-${PROJECT_VERSION}-${ggm_package_system}-${ggm_package_kind})
  set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
  set(CPACK_COMPONENTS_ALL Runtime Development)
  set(CPACK_COMPONENTS_GROUPING IGNORE)
  set(CPACK_GENERATOR TGZ)
  find_program(GGM_DPKG_DEB dpkg-deb)
  find_program(GGM_DPKG_SHLIBDEPS dpkg-shlibdeps)
  find_program(GGM_FILE file)
  mark_as_advanced(GGM_DPKG_DEB GGM_DPKG_SHLIBDEPS GGM_FILE)
  if(GGM_DPKG_DEB)
    list(APPEND CPACK_GENERATOR DEB)
    set(ggm_deb_names libggm${ggm_soversion} libggm-dev)
    set(CPACK_DEB_COMPONENT_INSTALL ON)
    set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
    set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "The shared library. ${ggm_package_backends}")
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libggm${ggm_soversion})
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
    # The versions that the library needs are read off its symbols where dpkg-dev, and file, which CPack takes for it, are present.
    if(GGM_DPKG_SHLIBDEPS AND GGM_FILE)
      set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
    else()
      set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "libc6, libstdc++6, libgcc-s1")
    endif()
    # shlibs: packages of programs find their dependency on this one there. triggers: dpkg tells the loader about the library.
    file(WRITE ${PROJECT_BINARY_DIR}/deb/shlibs "libggm ${ggm_soversion} libggm${ggm_soversion} (>= ${PROJECT_VERSION})\n")
    file(WRITE ${PROJECT_BINARY_DIR}/deb/triggers "activate-noawait ldconfig\n")
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/deb/shlibs ${PROJECT_BINARY_DIR}/deb/triggers)
    set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers for C and C++, the CMake package ggm and ggm.pc.")
    set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libggm-dev)
    set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
    set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libggm${ggm_soversion} (= ${PROJECT_VERSION})")
    # Where Debian looks for a package's licence; in an install of everything it lies in one place only.
    foreach(component package IN ZIP_LISTS CPACK_COMPONENTS_ALL ggm_deb_names)
      install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package} RENAME copyright
              COMPONENT ${component} EXCLUDE_FROM_ALL)
    endforeach()
  endif()
  include(CPack)
endif()
