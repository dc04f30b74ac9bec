// SPDX-License-Identifier: Apache-2.0
//
// Only in the static executable. Before main, the C library asks /proc where the program lies, which takes 30 to 45 us,
// in order to expand $ORIGIN in the names of libraries. There are none here, and nothing calls dlopen.

// -1 is the C library's own word for "not known".
extern "C" const char* _dl_get_origin() { return reinterpret_cast<const char*>(-1); }
