// SPDX-License-Identifier: Apache-2.0
//
// A library that lies beside its program, found by $ORIGIN: the kind that a project brings along.
const char* OwnLibrary(void);
const char* OwnLibrary(void) { return "own library"; }
