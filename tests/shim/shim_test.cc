// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The shim itself: what it counts, kills, fails, shortens, refuses and fakes, and that it sees
// every file call of libckpt. Each body runs in a rank of its own, so that a plan ends with it.
#include "shim/shim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "process/process.h"

namespace ckpt_test {
namespace {

using safetensors::ReadBytes;

class Shim : public testing::Test {
 protected:
  Shim() { std::filesystem::create_directory(root); }

  void Plan(const std::string& rules) const {
    shim_reset(("root " + root + "\nlog " + log + "\n" + rules).c_str());
  }
  Result InARank(const std::function<void(Rank&)>& body, int ranks = 1) const {
    return launch::Run({.ranks = ranks, .deadline_s = 10}, body);
  }
  void ExpectInARank(const std::function<void(Rank&)>& body) const {
    const Result r = InARank(body);
    EXPECT_TRUE(r.ok()) << r.report();
  }
  // One event each: create, write, fsync, close, rename.
  void SaveAFile() const {
    const int fd = open((root + "/a.tmp").c_str(), O_CREAT | O_WRONLY, 0600);
    EXPECT_EQ(pwrite(fd, "0123456789", 10, 0), 10);
    EXPECT_EQ(fsync(fd), 0);
    EXPECT_EQ(close(fd), 0);
    EXPECT_EQ(rename((root + "/a.tmp").c_str(), (root + "/a").c_str()), 0);
  }
  int Exchange(const std::string& a, const std::string& b) const {
    return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, (root + "/" + a).c_str(), AT_FDCWD,
                                    (root + "/" + b).c_str(), RENAME_EXCHANGE));
  }

  const Scratch scratch;
  const std::string root = scratch / "root", log = scratch / "log";
};

TEST_F(Shim, CountsAndLogsTheEventsBelowTheRoot) {
  ExpectInARank([&](Rank&) {
    Plan("");
    SaveAFile();
    EXPECT_EQ(shim_events(), 5u);
    shim_reset("");
    SaveAFile();
  });
  EXPECT_EQ(ReadBytes(log), "1 create " + root + "/a.tmp\n2 write " + root + "/a.tmp\n3 fsync " +
                                root + "/a.tmp\n4 close " + root + "/a.tmp\n5 rename " + root +
                                "/a.tmp -> " + root + "/a\n");
}

TEST_F(Shim, WhatIsElsewhereOrOnlyReadIsNoEvent) {
  safetensors::WriteBytes(root + "/there", "x");
  ExpectInARank([&](Rank&) {
    Plan("fail EIO every");
    safetensors::WriteBytes(root + "2", "a name that begins like the root's");
    EXPECT_EQ(ReadBytes(root + "/there"), "x");
    EXPECT_EQ(shim_events(), 0u);
  });
}

TEST_F(Shim, NamesInAFolderAreResolvedThroughItsDescriptor) {
  ExpectInARank([&](Rank&) {
    Plan("fail EIO op=mkdir end=/root/sub/x\nfail EXDEV op=link\nfail EBUSY op=rmdir");
    const int at = open(root.c_str(), O_RDONLY | O_DIRECTORY);
    EXPECT_EQ(mkdirat(at, "sub", 0700), 0);
    EXPECT_EQ(mkdirat(at, "sub/x", 0700), -1);
    EXPECT_EQ(errno, EIO);
    EXPECT_EQ(linkat(at, "a", at, "b", 0), -1);
    EXPECT_EQ(errno, EXDEV);
    EXPECT_EQ(unlinkat(at, "sub", AT_REMOVEDIR), -1);
    EXPECT_EQ(errno, EBUSY);
    EXPECT_EQ(unlinkat(at, "sub", AT_REMOVEDIR), 0);
  });
}

TEST_F(Shim, KillsThisProcessBeforeTheEvent) {
  const Result r = InARank(
      [&](Rank& rank) {
        if (rank.is(0)) Plan("kill at=5");
        if (rank.is(0)) SaveAFile();
      },
      2);
  EXPECT_EQ(r.rank(0).signal, SIGKILL) << r.report();
  EXPECT_TRUE(r.rank(1).good()) << r.report();
  EXPECT_EQ(List(root), std::set<std::string>{"a.tmp"});
  EXPECT_NE(ReadBytes(log).find("5 rename " + root + "/a.tmp -> " + root + "/a !kill\n"),
            std::string::npos);
}

TEST_F(Shim, KillsTheWholeGroupBeforeTheEvent) {
  const Result r = InARank(
      [&](Rank& rank) {
        if (rank.is(1)) rank.WaitFor("never");
        Plan("killall op=fsync");
        SaveAFile();
      },
      2);
  EXPECT_EQ(r.rank(0).signal, SIGKILL) << r.report();
  EXPECT_EQ(r.rank(1).signal, SIGKILL) << r.report();
}

TEST_F(Shim, FailsOnceTheNthOrEvery) {
  ExpectInARank([&](Rank&) {
    Plan("fail EIO op=write\nfail ENOSPC op=write nth=3\nfail EROFS op=write from=5 every");
    const int fd = open((root + "/a").c_str(), O_CREAT | O_WRONLY, 0600);  // event 1
    const auto result = [&] { return write(fd, "x", 1) == 1 ? 0 : errno; };
    EXPECT_EQ(result(), EIO);
    EXPECT_EQ(result(), 0);
    EXPECT_EQ(result(), ENOSPC);
    EXPECT_EQ(result(), EROFS);
    EXPECT_EQ(result(), EROFS);
    EXPECT_EQ(lseek(fd, 0, SEEK_END), 1);
  });
  EXPECT_NE(ReadBytes(log).find("2 write " + root + "/a !fail EIO\n"), std::string::npos);
}

TEST_F(Shim, ReadsAreEventsWhereARuleNamesThem) {
  safetensors::WriteBytes(root + "/a", "x");
  ExpectInARank([&](Rank&) {
    Plan("fail EIO op=read nth=2");
    const int fd = open((root + "/a").c_str(), O_RDONLY);
    char byte;
    EXPECT_EQ(pread(fd, &byte, 1, 0), 1);
    EXPECT_EQ(read(fd, &byte, 1), -1);
    EXPECT_EQ(errno, EIO);
    EXPECT_EQ(shim_events(), 2u);
  });
}

TEST_F(Shim, AFailedCloseHasClosed) {
  ExpectInARank([&](Rank&) {
    Plan("fail EIO op=close");
    const int fd = open((root + "/a").c_str(), O_CREAT | O_WRONLY, 0600);
    EXPECT_EQ(write(fd, "x", 1), 1);
    EXPECT_EQ(close(fd), -1);
    EXPECT_EQ(errno, EIO);
    EXPECT_EQ(fcntl(fd, F_GETFD), -1);
  });
}

TEST_F(Shim, TransfersFewerBytes) {
  ExpectInARank([&](Rank&) {
    Plan("short 3 op=write nth=1\nshort 4 op=write nth=2");
    const int fd = open((root + "/a").c_str(), O_CREAT | O_WRONLY, 0600);
    EXPECT_EQ(pwrite(fd, "0123456789", 10, 0), 3);
    char text[] = "abcdefg";
    const iovec vector[2] = {{text, 6}, {text, 6}};
    EXPECT_EQ(pwritev(fd, vector, 2, 3), 4);
    EXPECT_EQ(pwrite(fd, "0123456789", 10, 7), 10);
  });
  EXPECT_EQ(ReadBytes(root + "/a"), "012abcd0123456789");
}

TEST_F(Shim, RefusesTheExchangeOfNamesButNotOtherRenames) {
  ExpectInARank([&](Rank&) {
    SaveAFile();
    std::filesystem::create_directory(root + "/b");
    Plan("fail EINVAL op=exchange every");
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(Exchange("a", "b"), -1);
      EXPECT_EQ(errno, EINVAL);
    }
    EXPECT_EQ(rename((root + "/b").c_str(), (root + "/c").c_str()), 0);
    Plan("");
    EXPECT_EQ(Exchange("a", "c"), 0);
  });
  EXPECT_TRUE(std::filesystem::is_directory(root + "/a"));
}

TEST_F(Shim, Delays) {
  ExpectInARank([&](Rank&) {
    Plan("delay 20-30 op=fsync every");
    const auto start = std::chrono::steady_clock::now();
    SaveAFile();
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(20));
  });
}

TEST_F(Shim, APlanThatCannotBeReadEndsTheProcess) {
  for (const char* bad : {"fail EWHAT op=write", "fail EIO op=wirte", "kill at=x", "explode at=1",
                          "kill soon", "fail EIO nth="}) {
    const Result r = InARank([&](Rank&) { Plan(bad); });
    EXPECT_EQ(r.rank(0).exit_code, 125) << bad;
    EXPECT_NE(r.log(0).find(bad), std::string::npos) << r.report();
  }
  EXPECT_EQ(InARank([](Rank&) { shim_reset("kill at=1"); }).rank(0).exit_code, 125) << "no root";
}

TEST_F(Shim, MakesAnotherHostFromTheEnvironment) {
  const launch::Env host = {{"SHIM_HOST", "node-b"}, {"SHIM_BOOT_ID", "0000-b"}};
  const Result r = launch::Run({.ranks = 2, .rank_env = {{}, host}}, [](Rank& rank) {
    char name[64];
    utsname names;
    EXPECT_EQ(gethostname(name, sizeof name), 0);
    EXPECT_EQ(uname(&names), 0);
    EXPECT_EQ(std::string(names.nodename), name);
    FILE* file = fopen("/proc/sys/kernel/random/boot_id", "re");
    char id[64] = "";
    EXPECT_NE(std::fgets(id, sizeof id, file), nullptr);
    std::fclose(file);
    EXPECT_EQ(std::string(name) == "node-b", rank.is(1));
    EXPECT_EQ(std::string(id) == "0000-b\n", rank.is(1));
  });
  EXPECT_TRUE(r.ok()) << r.report();
}

TEST_F(Shim, ComesIntoForeignProgramsByPreload) {
  const launch::Env env = {{"LD_PRELOAD", SHIM_LIB},
                           {"SHIM_PLAN", "root " + root + "\nfail EDQUOT op=mkdir end=/b"}};
  EXPECT_TRUE(launch::RunCommand({.env = env}, {"mkdir", root + "/a"}).ok());
  const Result r = launch::RunCommand({.env = env}, {"mkdir", root + "/b"});
  EXPECT_EQ(r.rank(0).exit_code, 1) << r.report();
  EXPECT_EQ(List(root), std::set<std::string>{"a"});
}

// What the library has undefined, by name.
std::set<std::string> Imports(const std::string& library) {
  std::set<std::string> names;
  FILE* nm = popen(("nm -D --undefined-only " + library).c_str(), "r");
  char line[512];
  while (nm != nullptr && std::fgets(line, sizeof line, nm) != nullptr) {
    std::string name = line;
    name = name.substr(name.find_last_of(' ') + 1);
    names.insert(name.substr(0, name.find_first_of("@\n")));
  }
  EXPECT_EQ(pclose(nm), 0);
  return names;
}

TEST(ShimAndLibrary, EveryCallOfTheLibraryThatChangesFilesIsSeen) {
  const std::set<std::string> imports = Imports(std::getenv("CKPT_LIB"));
  ASSERT_TRUE(imports.count("fsync"));
  // Not here: what the static C++ library's <filesystem> imports and libckpt does not call
  // (truncate, symlink, remove, sendfile, utimensat, fchmod, fwrite).
  for (const char* name : {"open",
                           "open64",
                           "openat",
                           "openat64",
                           "creat",
                           "creat64",
                           "openat2",
                           "write",
                           "pwrite",
                           "pwrite64",
                           "writev",
                           "pwritev",
                           "pwritev64",
                           "pwritev2",
                           "pwritev64v2",
                           "fsync",
                           "fdatasync",
                           "sync",
                           "syncfs",
                           "sync_file_range",
                           "ftruncate",
                           "ftruncate64",
                           "fallocate",
                           "fallocate64",
                           "posix_fallocate",
                           "posix_fallocate64",
                           "close",
                           "close_range",
                           "mkdir",
                           "mkdirat",
                           "unlink",
                           "unlinkat",
                           "rmdir",
                           "link",
                           "linkat",
                           "symlinkat",
                           "rename",
                           "renameat",
                           "renameat2",
                           "syscall",
                           "copy_file_range",
                           "io_submit",
                           "aio_write"}) {
    if (!imports.count(name)) continue;
    Dl_info mine, used;
    ASSERT_NE(dladdr(reinterpret_cast<void*>(&shim_reset), &mine), 0);
    ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, name), &used), 0) << name;
    EXPECT_STREQ(used.dli_fname, mine.dli_fname) << "not in calls.cc: " << name;
  }
}

TEST_F(Shim, SeesASaveOfTheLibrary) {
  ExpectInARank([&](Rank& rank) {
    Plan("");
    Trainer trainer(rank, {.root = root});
    EXPECT_OK(trainer.Save(1));
    EXPECT_OK(trainer.Save(1));
  });
  const std::string seen = ReadBytes(log);
  for (const char* part : {" mkdir ", " create ", " allocate ", "/model.safetensors\n",
                           "/ckpt.json\n", " fsync ", " write ", " close ", " noreplace ",
                           " exchange ", " rename ", " link ", " unlink ", " rmdir "})
    EXPECT_NE(seen.find(part), std::string::npos) << part << "\n" << seen;
}

}  // namespace
}  // namespace ckpt_test
