# SPDX-License-Identifier: Apache-2.0
#
# What `make install` and the Debian package hold, in this one place: the programs, the systemd unit, manual pages,
# completions, the documents that messages name, changelog, licence.
include_guard()
include(GNUInstallDirs)

if(TARGET coffer)
  install(TARGETS coffer RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET cofferd)
  install(TARGETS cofferd RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/coffer)  # `coffer serve` finds it there
endif()

# The unit names the program by its path below the prefix, which is known when it is installed.
install(CODE "set(COFFER_SOURCE \"${CMAKE_SOURCE_DIR}\")\nset(COFFER_BUILD \"${CMAKE_BINARY_DIR}\")\nset(COFFER_BINDIR \"${CMAKE_INSTALL_BINDIR}\")")
install(SCRIPT ${CMAKE_SOURCE_DIR}/cmake/install_unit.cmake)

# Manual pages, from scdoc; compressed because Debian wants them so (-n: the same bytes each time). Those of section 5 are
# made of the same text as `coffer help manifest` and `coffer help config` (help_topics.cmake).
find_program(SCDOC scdoc)
find_program(GZIP gzip)
find_program(PYTHON3 python3)
file(GLOB man_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.scd)
set(made_sources)
if(PYTHON3)
  set(page_maker ${CMAKE_SOURCE_DIR}/scripts/man_from_markdown.py)
  set(manifest_text ${CMAKE_SOURCE_DIR}/docs/MANIFEST.md)
  set(config_text ${CMAKE_SOURCE_DIR}/docs/OPERATIONS.md)
  set(made ${CMAKE_BINARY_DIR}/man/coffer-manifest.5.scd)
  add_custom_command(OUTPUT ${made}
    COMMAND ${PYTHON3} ${page_maker} manifest ${manifest_text} ${made} DEPENDS ${page_maker} ${manifest_text} VERBATIM)
  list(APPEND made_sources ${made})
  set(made ${CMAKE_BINARY_DIR}/man/coffer.toml.5.scd)
  add_custom_command(OUTPUT ${made}
    COMMAND ${PYTHON3} ${page_maker} config ${config_text} ${made} DEPENDS ${page_maker} ${config_text} VERBATIM)
  list(APPEND made_sources ${made})
endif()
if(SCDOC AND GZIP)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/man)
  set(man_pages)
  foreach(source IN LISTS man_sources made_sources)
    get_filename_component(page ${source} NAME_WLE)
    set(made ${CMAKE_BINARY_DIR}/man/${page}.gz)
    string(REGEX MATCH "[0-9]$" section ${page})
    add_custom_command(OUTPUT ${made}
      COMMAND ${SCDOC} < ${source} > ${CMAKE_BINARY_DIR}/man/${page}
      COMMAND ${GZIP} -9nf -k ${CMAKE_BINARY_DIR}/man/${page}
      DEPENDS ${source} VERBATIM)
    list(APPEND man_pages ${made})
    install(FILES ${made} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
  endforeach()
  add_custom_target(man ALL DEPENDS ${man_pages})
  if(PYTHON3)  # `man 5 manifest` finds it too
    install(CODE "file(CREATE_LINK coffer-manifest.5.gz \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_MANDIR}/man5/manifest.5.gz\" SYMBOLIC)")
  endif()
else()
  message(STATUS "scdoc is missing: the manual page is neither made nor installed")
endif()

# What messages, help and manual pages name.
install(FILES ${CMAKE_SOURCE_DIR}/docs/MANIFEST.md ${CMAKE_SOURCE_DIR}/docs/OPERATIONS.md ${CMAKE_SOURCE_DIR}/docs/HTTP.md
  ${CMAKE_SOURCE_DIR}/docs/RECEIPT.md ${CMAKE_SOURCE_DIR}/docs/HONEST_LIMITS.md ${CMAKE_SOURCE_DIR}/docs/AGENT_LOOP.md
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/coffer)

set(completions ${CMAKE_SOURCE_DIR}/deploy/completions)
install(FILES ${completions}/coffer.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME coffer)
install(FILES ${completions}/_coffer DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${completions}/coffer.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# For hosts that restrict user namespaces. Not in /etc/apparmor.d: parsers before AppArmor 4 cannot read it, so the
# package's postinst puts it there only where it is needed and can be read.
install(FILES ${CMAKE_SOURCE_DIR}/deploy/apparmor/coffer DESTINATION ${CMAKE_INSTALL_DATADIR}/coffer/apparmor)

include(packaging)
