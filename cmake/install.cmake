# SPDX-FileCopyrightText: the ckpt authors
# SPDX-License-Identifier: Apache-2.0
#
# `cmake --install build/release --prefix X`: library, header, the ckpt command, and what finds them
# (find_package(ckpt), pkg-config). All of it works from wherever X is moved to. Covered by
# tests/clients/package.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(ckpt::ckpt ALIAS ckpt) # the same name with add_subdirectory as with find_package

file(RELATIVE_PATH libdir_from_bindir "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}")
set_target_properties(ckpt_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${libdir_from_bindir}")

install(
  TARGETS ckpt ckpt_cli
  EXPORT ckpt
  INCLUDES
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES capi/include/ckpt.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# The library needs nothing that a consumer would have to find, so its targets are the whole config.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ckpt)
install(
  EXPORT ckpt
  NAMESPACE ckpt::
  FILE ckpt-config.cmake
  DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ckpt-config-version.cmake
                                 COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ckpt-config-version.cmake DESTINATION ${package_dir})

file(RELATIVE_PATH prefix_from_pc "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
configure_file(cmake/ckpt.pc.in ${PROJECT_BINARY_DIR}/ckpt.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ckpt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
