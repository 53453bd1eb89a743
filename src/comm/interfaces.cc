// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// Addresses of this host by getifaddrs, holders of ports by /proc.
// Test: tests/unit/comm/interfaces_test.cc
#include "comm/interfaces.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "util/text.h"

namespace ckpt {
namespace {

struct Address {
  std::string interface, text;
  int family = AF_UNSPEC;
  bool link_local = false;
};

std::string Numeric(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST];
  if (::getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

std::vector<Address> AddressesOfThisHost() {
  std::vector<Address> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    Address a{i->ifa_name, "", i->ifa_addr->sa_family, false};
    if (a.family == AF_INET6) {
      const auto* in6 = reinterpret_cast<const sockaddr_in6*>(i->ifa_addr);
      a.link_local = IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
      a.text = Numeric(i->ifa_addr, sizeof(sockaddr_in6));
    } else if (a.family == AF_INET) {
      a.text = Numeric(i->ifa_addr, sizeof(sockaddr_in));
    }
    if (!a.text.empty()) out.push_back(std::move(a));
  }
  return out;
}

struct Names {
  std::set<std::string> addresses;
  std::set<int> families;
};

Names Resolve(const std::string& host, int flags) {
  Names out;
  if (host.empty()) return out;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return out;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list, ::freeaddrinfo);
  for (const addrinfo* a = list; a != nullptr; a = a->ai_next) {
    out.addresses.insert(Numeric(a->ai_addr, a->ai_addrlen));
    out.families.insert(a->ai_family);
  }
  return out;
}

Status NoSuchInterface(const std::string& wanted, const std::vector<Address>& all) {
  std::string have;
  for (const Address& a : all) have += Cat(have.empty() ? "" : ", ", a.interface, " ", a.text);
  Cause cause;
  cause.name = "CKPT_INTERFACE";
  return Status(Code::kInvalidArgument,
                Cat("environment variable CKPT_INTERFACE=\"", Printable(wanted, 60),
                    "\": neither an address nor an interface of this host that has one; it has: ",
                    have.empty() ? "none" : have),
                cause);
}

// The inodes of sockets that listen on `port`, from one of the kernel's tables.
void AddListening(const char* table, uint16_t port, std::set<std::string>* inodes) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(table, "re"), std::fclose);
  if (!file) return;
  char line[512];
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    unsigned local = 0, state = 0;
    char inode[32];
    constexpr unsigned kListening = 0x0A;
    // sl local:port remote:port state queues timer retransmits uid timeout inode
    if (std::sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %31s", &local, &state,
                    inode) == 3 &&
        local == port && state == kListening) {
      inodes->insert(Cat("socket:[", inode, "]"));
    }
  }
}

bool Holds(const std::string& process, const std::set<std::string>& sockets) {
  const std::string folder = Cat("/proc/", process, "/fd");
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(folder.c_str()), ::closedir);
  if (!dir) return false;
  while (const dirent* entry = ::readdir(dir.get())) {
    char target[64];
    const ssize_t n =
        ::readlink(Cat(folder, "/", entry->d_name).c_str(), target, sizeof target - 1);
    if (n > 0 && sockets.count(std::string(target, static_cast<size_t>(n))) > 0) return true;
  }
  return false;
}

std::string NameOf(const std::string& process) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(
      std::fopen(Cat("/proc/", process, "/comm").c_str(), "re"), std::fclose);
  char name[64];
  if (!file || std::fgets(name, sizeof name, file.get()) == nullptr) return "?";
  name[std::strcspn(name, "\n")] = '\0';
  return Printable(name, 60);
}

}  // namespace

std::string WithoutBrackets(const std::string& address) {
  if (address.size() > 2 && address.front() == '[' && address.back() == ']') {
    return address.substr(1, address.size() - 2);
  }
  return address;
}

Result<std::string> AddressOfInterface(const std::string& wanted, const std::string& coordinator) {
  const std::string bare = WithoutBrackets(wanted);
  const std::vector<Address> all = AddressesOfThisHost();
  const Names numeric = Resolve(bare, AI_NUMERICHOST);
  for (const Address& a : all) {
    if (numeric.addresses.count(a.text) > 0) return a.text;
  }
  const Names head = Resolve(coordinator, 0);
  const auto rank = [&head](const Address& a) {
    const bool is_it = head.addresses.count(a.text) > 0;
    const bool family = head.families.count(a.family) > 0;
    return std::make_pair(is_it ? 0 : a.link_local ? 3 : family ? 1 : 2, a.family != AF_INET);
  };
  const Address* best = nullptr;
  for (const Address& a : all) {
    if (a.interface == bare && (best == nullptr || rank(a) < rank(*best))) best = &a;
  }
  if (best == nullptr) return NoSuchInterface(wanted, all);
  return best->text;
}

std::string WhoListens(uint16_t port) {
  std::set<std::string> sockets;
  AddListening("/proc/net/tcp", port, &sockets);
  AddListening("/proc/net/tcp6", port, &sockets);
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir("/proc"), ::closedir);
  while (const dirent* entry = dir && !sockets.empty() ? ::readdir(dir.get()) : nullptr) {
    const std::string process = entry->d_name;
    if (process.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!Holds(process, sockets)) continue;
    if (process == Cat(::getpid())) return Cat("this process itself (", process, ") holds it");
    return Cat("process ", process, " (", NameOf(process), ") holds it");
  }
  return "a process that this one cannot see holds it";
}

}  // namespace ckpt
