// SPDX-License-Identifier: Apache-2.0
//
// The flags that the daemon was started with. Each has a default: `coffer serve` alone works.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace coffer::daemon {

struct Config {
  std::string state;               // directory; made if missing
  std::vector<std::string> tools;  // directories of manifests
  std::string default_tools;       // another one, which need not be there: none was named
  std::string host = "127.0.0.1";
  uint16_t port = 7433;     // 0: any free one
  std::string health_host;  // "": no listener of its own for probes
  uint16_t health_port = 0;
  std::string socket;  // path of the unix socket; default: coffer.sock in the state directory
  std::string tls_certificate;
  std::string tls_key;
  std::string jwt_issuer;
  std::string jwt_audience;
  std::string jwks;  // a file
  std::string file;  // the configuration file (config_file.h); empty: there is no place for one
  uid_t operator_uid = 0;               // whose manifests and configuration must be
  bool file_is_default = true;          // then it need not exist
  std::vector<std::string> names;       // further names that a Host header may have
  std::string warden;                   // the `coffer` executable
  std::vector<std::string> toolchains;  // of the operator, declared or usual: no call writes there
  bool allow_dangerous = false;
  bool json = false;
};

// From the flags that `coffer serve` passes on.
Result<Config> ParseConfig(std::span<const std::string_view> words);

std::string_view ServeHelp();

}  // namespace coffer::daemon
