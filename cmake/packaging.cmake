# SPDX-License-Identifier: Apache-2.0
#
# `make package`: a .deb made by CPack. `coffer` is static; what the package depends on, `cofferd` needs.
include_guard()

if(GZIP)
  set(doc_dir ${CMAKE_INSTALL_DATADIR}/doc/coffer)
  # gzip reads standard input, so that no name and no time gets into the file.
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/changelog.gz ${CMAKE_BINARY_DIR}/changelog.Debian.gz
    COMMAND ${GZIP} -9n < ${CMAKE_SOURCE_DIR}/CHANGELOG.md > ${CMAKE_BINARY_DIR}/changelog.gz
    COMMAND ${GZIP} -9n < ${CMAKE_SOURCE_DIR}/deploy/debian/changelog > ${CMAKE_BINARY_DIR}/changelog.Debian.gz
    DEPENDS ${CMAKE_SOURCE_DIR}/CHANGELOG.md ${CMAKE_SOURCE_DIR}/deploy/debian/changelog VERBATIM)
  add_custom_target(package_docs ALL DEPENDS ${CMAKE_BINARY_DIR}/changelog.gz)
  install(FILES ${CMAKE_BINARY_DIR}/changelog.gz ${CMAKE_BINARY_DIR}/changelog.Debian.gz DESTINATION ${doc_dir})
  install(FILES ${CMAKE_SOURCE_DIR}/deploy/debian/copyright DESTINATION ${doc_dir})
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME coffer)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "Cofferdam maintainers <maintainers@cofferdam.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run untrusted commands in a disposable boundary")
set(CPACK_PACKAGE_DESCRIPTION
"coffer puts a command where its worst case is small: own namespaces, a private\nroot, no network, no host files, bounded time, memory, processes and output.\nIt needs no daemon, no container engine and no root.")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  "${CMAKE_SOURCE_DIR}/deploy/debian/postinst;${CMAKE_SOURCE_DIR}/deploy/debian/prerm")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_OUTPUT_FILE_PREFIX ${CMAKE_BINARY_DIR}/packages)
include(CPack)
