# Install rules and packages. (Filled by the packaging part.)
install(TARGETS ggm LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ggm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
