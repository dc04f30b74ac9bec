# SPDX-License-Identifier: Apache-2.0
#
# Runs while installing: the unit names the program that is installed, which is known only then (--prefix, or /usr in the
# package). CPack installs into a directory of its own first; what follows it is the prefix on the machine.
string(REGEX REPLACE "^.*/_CPack_Packages/[^/]+/[^/]+/[^/]+" "" COFFER_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(COFFER_PROGRAM "${COFFER_PREFIX}/${COFFER_BINDIR}/coffer")
configure_file("${COFFER_SOURCE}/deploy/coffer.service.in" "${COFFER_BUILD}/deploy/coffer.service" @ONLY)
file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/lib/systemd/system" TYPE FILE
  PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
  FILES "${COFFER_BUILD}/deploy/coffer.service")
