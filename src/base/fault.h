// SPDX-License-Identifier: Apache-2.0
//
// Fault injection for tests: fail the Nth system call that goes through base/sys.
//
// Exists only in builds with COFFER_FAULT_INJECTION. COFFER_FAULT_AT=N (1, 2, 3, ...) and COFFER_FAULT_ERRNO=E in
// the environment arm it. The counter lives in memory shared by the whole process family, so the Nth call may be
// one of the supervisor, of init, or of the child that is about to exec. When the run ends, the number of calls
// seen is written to the file COFFER_FAULT_COUNT names, so that a test knows when N has passed the end.
#pragma once

namespace coffer::fault {

#ifdef COFFER_FAULT_INJECTION
// Reads the environment; call once, first thing in main.
void Arm();
// The errno to fail with, or 0 to let the call through. Async-signal-safe.
int Next(long number);
#else
inline void Arm() {}
inline int Next(long /*number*/) { return 0; }
#endif

}  // namespace coffer::fault
