// SPDX-License-Identifier: Apache-2.0
#include "isolation/machine_files.h"

#include <gtest/gtest.h>
#include <sys/sysinfo.h>

#include <map>

namespace coffer::isolation {
namespace {

std::map<std::string, std::string> MachineFilesOf(const Machine& machine) {
  std::map<std::string, std::string> files;
  for (const auto& list : {ProcFiles(machine), SysFiles(machine)}) {
    for (const PrivateFile& file : list) {
      EXPECT_TRUE(files.emplace(file.at, file.content).second) << "twice: " << file.at;
    }
  }
  return files;
}

constexpr const char* kArm =
    "processor\t: 0\nBogoMIPS\t: 2100.00\nFeatures\t: fp asimd\n\nprocessor\t: 1\nBogoMIPS\t: "
    "2100.00\n\n";
constexpr const char* kIntel =
    "processor\t: 5\nmodel name\t: A: CPU\nmicrocode\t: 0xd0\nphysical id\t: 1\nsiblings\t: "
    "64\ncore id\t\t: 9\ncpu "
    "cores\t: 32\napicid\t\t: 18\nflags\t\t: fpu vme\nbugs\t\t: spectre_v1 mds\n\n";

TEST(MachineFiles, NumbersAreThoseTheBoundaryMayRunOn) {
  Machine machine{{0, 1, 2, 7, 9}, 64ULL << 20, FirstCpu(kArm), 1000};
  auto files = MachineFilesOf(machine);
  EXPECT_EQ(files["/sys/devices/system/cpu/online"], "0-2,7,9\n");
  EXPECT_EQ(files["/sys/devices/system/cpu/possible"], "0-9\n") << "programs index by them";
  EXPECT_NE(files["stat"].find("\ncpu9 "), std::string::npos);
  EXPECT_EQ(files["stat"].find("\ncpu3 "), std::string::npos);
  EXPECT_NE(files["stat"].find("\nbtime 1000\n"), std::string::npos);
  EXPECT_TRUE(
      files["cpuinfo"].ends_with("processor\t: 9\nBogoMIPS\t: 2100.00\nFeatures\t: fp asimd\n\n"));
  EXPECT_TRUE(files["meminfo"].starts_with("MemTotal:          65536 kB\n"));
}

// One socket, and nothing that says how well the host is patched.
TEST(MachineFiles, CoresAreCountedAsTheBoundaryHasThem) {
  const Machine machine{{3, 4}, 1 << 20, FirstCpu(kIntel), 0};
  EXPECT_EQ(MachineFilesOf(machine)["cpuinfo"],
            "processor\t: 3\nmodel name\t: A: CPU\nphysical id\t: 0\nsiblings\t: 2\ncore id\t\t: "
            "3\ncpu cores\t: 2\napicid\t\t: 3\nflags\t\t: fpu vme\n\n"
            "processor\t: 4\nmodel name\t: A: CPU\nphysical id\t: 0\nsiblings\t: 2\ncore id\t\t: "
            "4\ncpu cores\t: 2\napicid\t\t: 4\nflags\t\t: fpu vme\n\n");
}

// What lscpu counts threads, cores and sockets by.
TEST(MachineFiles, EachCpuIsACoreOfOneSocket) {
  auto files = MachineFilesOf({{1, 33}, 1 << 20, FirstCpu(kIntel), 0});
  const std::string cpus = "/sys/devices/system/cpu/";
  EXPECT_EQ(files[cpus + "cpu1/topology/thread_siblings"], "00000002\n");
  EXPECT_EQ(files[cpus + "cpu33/topology/thread_siblings"], "00000002,00000000\n");
  EXPECT_EQ(files[cpus + "cpu1/topology/core_siblings"], "00000002,00000002\n");
  EXPECT_EQ(files[cpus + "cpu33/topology/core_siblings"], "00000002,00000002\n");
  EXPECT_FALSE(files.contains(cpus + "cpu0/topology/thread_siblings"));
}

TEST(MachineFiles, ManyCpusHaveNoFilesOfTheirOwn) {
  Machine machine{{}, 1 << 20, FirstCpu(kIntel), 0};
  for (unsigned cpu = 0; cpu < 16; ++cpu) {
    machine.cpus.push_back(cpu);
  }
  EXPECT_EQ(SysFiles(machine).size(), 3U + 2 * 16U);
  machine.cpus.push_back(16);
  EXPECT_EQ(SysFiles(machine).size(), 3U);
}

TEST(MachineFiles, AnEmptyOrStrangeFileStillNamesTheCpus) {
  for (const char* text : {"", "strange", "\n\n"}) {
    const Machine machine{{0}, 1 << 20, FirstCpu(text), 0};
    EXPECT_EQ(MachineFilesOf(machine)["cpuinfo"], "processor\t: 0\n\n") << text;
    EXPECT_EQ(MachineFilesOf(machine)["/sys/devices/system/cpu/possible"], "0\n");
  }
}

TEST(MachineFiles, ThisMachineCanBeRead) {
  const Machine machine = ReadMachine(1 << 20);
  EXPECT_FALSE(machine.cpus.empty());
  EXPECT_TRUE(machine.cpu_model.starts_with("processor"));
  EXPECT_EQ(machine.memory, 1U << 20);
  struct sysinfo host{};
  ASSERT_EQ(::sysinfo(&host), 0);
  EXPECT_EQ(ReadMachine(uint64_t{1} << 50).memory, uint64_t{host.totalram} * host.mem_unit)
      << "a cap above the host's memory";
}

}  // namespace
}  // namespace coffer::isolation
