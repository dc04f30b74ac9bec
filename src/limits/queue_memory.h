// SPDX-License-Identifier: Apache-2.0
//
// Kernel memory in the queue of one pipe, socket or instance of inotify.
//
// A pipe that is not empty counts as full, because a page may hold one byte. A socket says itself what it holds
// (SO_MEMINFO). For UNIX sockets that is what it has sent and its peer has not read: the message is charged to its
// sender, also after the sender was closed. Such a sender can no longer be asked; `unread_from_closed` says that this
// socket has one.
//
// What cannot be asked is charged with MostOfAQueue(), the most that the host's limits allow.
#pragma once

#include <cstdint>

namespace coffer::limits {

struct QueueMemory {
  uint64_t bytes = 0;
  int family = 0;  // AF_UNSPEC for pipes
  bool unread_from_closed = false;
  bool holds_nothing = false;  // an O_PATH descriptor: it keeps no queue alive, and cannot be asked
};

// `fd` is a descriptor of our own, or -1 if we could not get one.
QueueMemory MeasurePipe(int fd);
QueueMemory MeasureSocket(int fd);

// Bytes of unread events; 0 if `fd` is not an instance of inotify.
uint64_t MeasureEvents(int fd);

// By the host's pipe-max-size and wmem_max; a megabyte where these are the kernel's own.
uint64_t MostOfAQueue();

}  // namespace coffer::limits
