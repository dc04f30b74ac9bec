# SPDX-License-Identifier: Apache-2.0
#
# What `make install` and the Debian package hold: the programs, their manual pages, completions, changelog, licence.
include_guard()
include(GNUInstallDirs)

if(TARGET coffer)
  install(TARGETS coffer RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET cofferd)
  install(TARGETS cofferd RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/coffer)  # `coffer serve` finds it there
endif()

# Manual pages, from scdoc; compressed because Debian wants them so (-n: the same bytes each time).
find_program(SCDOC scdoc)
find_program(GZIP gzip)
file(GLOB man_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.scd)
if(SCDOC AND GZIP)
  set(man_pages)
  foreach(source IN LISTS man_sources)
    get_filename_component(page ${source} NAME_WLE)
    set(made ${CMAKE_BINARY_DIR}/man/${page}.gz)
    string(REGEX MATCH "[0-9]$" section ${page})
    add_custom_command(OUTPUT ${made}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/man
      COMMAND ${SCDOC} < ${source} > ${CMAKE_BINARY_DIR}/man/${page}
      COMMAND ${GZIP} -9nf -k ${CMAKE_BINARY_DIR}/man/${page}
      DEPENDS ${source} VERBATIM)
    list(APPEND man_pages ${made})
    install(FILES ${made} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endforeach()
  add_custom_target(man ALL DEPENDS ${man_pages})
else()
  message(STATUS "scdoc is missing: the manual page is neither made nor installed")
endif()

set(completions ${CMAKE_SOURCE_DIR}/deploy/completions)
install(FILES ${completions}/coffer.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME coffer)
install(FILES ${completions}/_coffer DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${completions}/coffer.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# For hosts that restrict user namespaces. Not in /etc/apparmor.d: parsers before AppArmor 4 cannot read it, so the
# package's postinst puts it there only where it is needed and can be read.
install(FILES ${CMAKE_SOURCE_DIR}/deploy/apparmor/coffer DESTINATION ${CMAKE_INSTALL_DATADIR}/coffer/apparmor)

include(packaging)
