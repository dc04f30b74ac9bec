// SPDX-License-Identifier: Apache-2.0
//
// Gives back memory that a process will hardly touch again: its own text, page by page still in the page cache, and the
// part of the stack that deeper calls have used.
//
// Starting a boundary touches most of the program; waiting for it touches very little. The kernel maps text in windows
// of 64 KiB, so without this every waiting supervisor keeps all of it mapped.
#pragma once

#include <cstddef>

namespace coffer {

// The next use of each page faults it in again. Async-signal-safe.
void TrimText();

// Async-signal-safe.
void TrimStack();

// Drops the contents of whole pages in [start, end): they read as zeroes afterwards. Only for a process that will never
// use them again. Async-signal-safe.
void TrimPages(char* start, char* end);

}  // namespace coffer
