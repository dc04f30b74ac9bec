// SPDX-License-Identifier: Apache-2.0
//
// The private key of a boundary's authority is in the memory of the egress process and nowhere else: in no file of the host, of the
// state directory or of the boundary, in no environment, and in no memory file that one of the processes has open.
//
// The test looks for the key by its public half, in the forms in which programs keep keys (PEM, DER, hexadecimal). Root can read the
// process's memory, so there the number itself is known, and is looked for too.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "base/hex.h"
#include "tests/daemon/egress_daemon.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kScalar = 32;                    // bytes of a private key of P-256
constexpr uintmax_t kLargest = 64 * 1024 * 1024;  // of a file that is looked through
constexpr std::string_view kDerPrefix("\x02\x01\x01\x04\x20", 5);  // of RFC 5915, before the number

struct Freed {
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
  void operator()(BIO* bio) const { ::BIO_free(bio); }
  void operator()(BIGNUM* number) const { ::BN_free(number); }
  void operator()(EC_GROUP* group) const { ::EC_GROUP_free(group); }
  void operator()(EC_POINT* point) const { ::EC_POINT_free(point); }
  void operator()(X509* certificate) const { ::X509_free(certificate); }
};
template <typename T>
using Owned = std::unique_ptr<T, Freed>;

// `text` outlives it.
Owned<BIO> Reader(const std::string& text) {
  return Owned<BIO>(::BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The public half of P-256.
class PublicKey {
 public:
  // Nothing if the text has no certificate; of several the last.
  static std::optional<PublicKey> OfBundle(const std::string& bundle) {
    const size_t at = bundle.rfind("-----BEGIN CERTIFICATE-----");
    if (at == std::string::npos) {
      return std::nullopt;
    }
    const std::string text = bundle.substr(at);
    const Owned<X509> certificate(
        ::PEM_read_bio_X509(Reader(text).get(), nullptr, nullptr, nullptr));
    return certificate ? std::optional(PublicKey(::X509_get_pubkey(certificate.get())))
                       : std::nullopt;
  }
  explicit PublicKey(EVP_PKEY* key) : key_(key) {
    unsigned char point[65];
    size_t size = 0;
    EXPECT_EQ(::EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point),
                                                &size),
              1);
    point_.assign(reinterpret_cast<char*>(point), size);
  }

  // `number` is big-endian.
  bool BelongsTo(std::string_view number) const {
    static const Owned<EC_GROUP> group(::EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1));
    const Owned<BIGNUM> scalar(::BN_bin2bn(reinterpret_cast<const unsigned char*>(number.data()),
                                           static_cast<int>(number.size()), nullptr));
    const Owned<EC_POINT> point(::EC_POINT_new(group.get()));
    unsigned char bytes[65];
    return ::EC_POINT_mul(group.get(), point.get(), scalar.get(), nullptr, nullptr, nullptr) == 1 &&
           ::EC_POINT_point2oct(group.get(), point.get(), POINT_CONVERSION_UNCOMPRESSED, bytes,
                                sizeof(bytes), nullptr) == sizeof(bytes) &&
           point_ == std::string_view(reinterpret_cast<char*>(bytes), sizeof(bytes));
  }
  bool BelongsTo(EVP_PKEY* key) const { return ::EVP_PKEY_eq(key, key_.get()) == 1; }

 private:
  Owned<EVP_PKEY> key_;
  std::string point_;
};

std::string Backwards(std::string_view bytes) { return {bytes.rbegin(), bytes.rend()}; }

// Whether the key is in `bytes`. `number` is it, where it is known.
bool HoldsKey(const PublicKey& key, const std::string& number, const std::string& bytes) {
  for (size_t at = 0; (at = bytes.find("-----BEGIN ", at)) != std::string::npos; ++at) {
    const size_t line = bytes.find('\n', at);
    if (line == std::string::npos || bytes.substr(at, line - at).find("PRIVATE KEY") > line - at) {
      continue;
    }
    const std::string text = bytes.substr(at, 4096);
    const Owned<EVP_PKEY> found(
        ::PEM_read_bio_PrivateKey(Reader(text).get(), nullptr, nullptr, nullptr));
    if (found && key.BelongsTo(found.get())) {
      return true;
    }
  }
  for (size_t at = 0; (at = bytes.find(kDerPrefix, at)) != std::string::npos; ++at) {
    const std::string_view rest = std::string_view(bytes).substr(at + kDerPrefix.size());
    if (rest.size() >= kScalar && key.BelongsTo(rest.substr(0, kScalar))) {
      return true;
    }
  }
  // Words of 64 hexadecimal digits.
  size_t digits = 0;
  for (size_t at = 0; at <= bytes.size(); ++at) {
    if (at < bytes.size() && ::isxdigit(static_cast<unsigned char>(bytes[at])) != 0) {
      ++digits;
      continue;
    }
    std::string word = digits == 2 * kScalar ? bytes.substr(at - digits, digits) : std::string();
    std::transform(word.begin(), word.end(), word.begin(), ::tolower);
    if (!word.empty() && key.BelongsTo(*FromHex(word))) {
      return true;
    }
    digits = 0;
  }
  return !number.empty() && (bytes.find(number) != std::string::npos ||
                             bytes.find(Backwards(number)) != std::string::npos);
}

// A place and what is there.
using Places = std::vector<std::pair<std::string, std::string>>;

// The writable memory of a process.
Places MemoryOf(pid_t pid) {
  const std::string proc = "/proc/" + std::to_string(pid);
  const int memory = ::open((proc + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  Places places;
  for (const std::string& line : Lines(ReadFile(proc + "/maps").value_or(""))) {
    unsigned long begin = 0, end = 0;
    char rights[5] = {};
    if (sscanf(line.c_str(), "%lx-%lx %4s", &begin, &end, rights) != 3 || rights[1] != 'w' ||
        end - begin > kLargest) {
      continue;
    }
    std::string bytes(end - begin, '\0');
    const ssize_t got = ::pread(memory, bytes.data(), bytes.size(), static_cast<off_t>(begin));
    bytes.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    places.emplace_back(line, std::move(bytes));
  }
  ::close(memory);
  return places;
}

// The key in it: OpenSSL keeps numbers with their lowest byte first, at addresses of eight.
std::string FindNumber(const PublicKey& key, const Places& memory) {
  for (const auto& [where, bytes] : memory) {
    for (size_t at = 0; at + kScalar <= bytes.size(); at += 8) {
      const std::string_view window = std::string_view(bytes).substr(at, kScalar);
      std::bitset<256> values;
      for (const char byte : window) {
        values.set(static_cast<unsigned char>(byte));
      }
      // Random bytes have about 30 different values.
      if (values.count() >= 20 && key.BelongsTo(Backwards(window))) {
        return Backwards(window);
      }
    }
  }
  return {};
}

// Directories that vanish or cannot be read are left out: they are other programs'.
void AddTree(const std::string& top, fs::file_time_type since, Places& places) {
  std::error_code error;
  fs::directory_iterator each(top, error);
  for (; !error && each != fs::directory_iterator(); each.increment(error)) {
    std::error_code gone;
    if (each->is_symlink(gone)) {
      continue;
    }
    if (each->is_directory(gone)) {
      AddTree(each->path(), since, places);
    } else if (each->is_regular_file(gone) && each->last_write_time(gone) >= since &&
               each->file_size(gone) <= kLargest && !gone) {
      places.emplace_back(each->path(), ReadFile(each->path()).value_or(""));
    }
  }
}

// Environment, words and open files, memory files among them. What another uid's process has is seen by root alone.
void AddProcess(pid_t pid, Places& places) {
  const std::string proc = "/proc/" + std::to_string(pid);
  for (const char* const file : {"/environ", "/cmdline"}) {
    places.emplace_back(proc + file, ReadFile(proc + file).value_or(""));
  }
  std::error_code error;
  for (const fs::directory_entry& fd : fs::directory_iterator(proc + "/fd", error)) {
    struct stat status{};
    if (::stat(fd.path().c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        static_cast<uintmax_t>(status.st_size) <= kLargest) {
      places.emplace_back(fd.path(), ReadFile(fd.path()).value_or(""));
    }
  }
}

void AddProcesses(pid_t pid, Places& places) {
  AddProcess(pid, places);
  for (const pid_t child : ChildrenOf(pid)) {
    AddProcesses(child, places);
  }
}

Strings Holding(const PublicKey& key, const std::string& number, const Places& places) {
  Strings found;
  for (const auto& [where, bytes] : places) {
    if (HoldsKey(key, number, bytes)) {
      found.push_back(where);
    }
  }
  return found;
}

bool Any(const Strings& found, const std::string& part) {
  return std::any_of(found.begin(), found.end(),
                     [&](const std::string& where) { return Contains(where, part); });
}

// A key of the test's own, for the control.
struct PlantedKey {
  PlantedKey() : pair(::EVP_EC_gen("P-256")), key(Public(pair.get())) {
    BIGNUM* raw = nullptr;
    EXPECT_EQ(::EVP_PKEY_get_bn_param(pair.get(), OSSL_PKEY_PARAM_PRIV_KEY, &raw), 1);
    const Owned<BIGNUM> scalar(raw);
    number.resize(kScalar);
    ::BN_bn2binpad(raw, reinterpret_cast<unsigned char*>(number.data()), kScalar);
    const Owned<BIO> text(::BIO_new(::BIO_s_mem()));
    ::PEM_write_bio_PrivateKey(text.get(), pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
    char* at = nullptr;
    const long size = ::BIO_get_mem_data(text.get(), &at);
    pem.assign(at, static_cast<size_t>(size));
  }
  static EVP_PKEY* Public(EVP_PKEY* pair) {
    ::EVP_PKEY_up_ref(pair);
    return pair;
  }
  Owned<EVP_PKEY> pair;
  PublicKey key;
  std::string number, pem;
};

// Inside: what can be read there, each file after its name; then it waits. Larger files below these directories are programs and
// libraries of the host.
constexpr const char* kShowAll = R"(
import os, stat, sys, urllib.request
out = sys.stdout.buffer
m = os.memfd_create('mine')
os.write(m, bytes.fromhex(os.environ.get('PLANTED_RAW', '')))
open('/tmp/mine', 'w').write(os.environ.get('PLANTED_PEM', ''))
os.environ.pop('PLANTED_PEM', None)
print(urllib.request.urlopen(sys.argv[1]).read().decode(), flush=True)
out.write(b'BUNDLE' + open(os.environ['SSL_CERT_FILE'], 'rb').read() + b'END OF BUNDLE\n')
def show(path, most=1 << 26):
    try:
        status = os.stat(path)
        if stat.S_ISREG(status.st_mode) and status.st_size <= most: out.write(b'\nFILE ' + path.encode() + b'\n' + open(path, 'rb').read())
    except OSError: pass
for top in ('/etc', '/tmp', '/workspace', '/run', '/var', '/root', '/home', '/dev/shm'):
    for where, _, files in os.walk(top):
        for name in files:
            if not os.path.islink(where + '/' + name): show(where + '/' + name, 1 << 19)
for pid in os.listdir('/proc'):
    if pid.isdigit():
        for name in ('environ', 'cmdline'):
            show('/proc/%s/%s' % (pid, name))
        try:
            for fd in os.listdir('/proc/%s/fd' % pid): show('/proc/%s/fd/%s' % (pid, fd))
        except OSError: pass
out.write(b'\nSHOWN\n')
out.flush()
sys.stdin.read()
)";

class DaemonEgressKey : public DaemonEgress {
 protected:
  void SetUp() override {
    DaemonEgress::SetUp();
    began_ = fs::last_write_time(dir_.path() + "/ca.pem");
  }
  // Also what others made below /tmp meanwhile: keys of theirs are other keys.
  Places OfTheHost() const {
    Places places;
    for (const std::string& top : std::set<std::string>{"/tmp", fs::temp_directory_path()}) {
      AddTree(top, began_, places);
    }
    AddTree(daemon_.state(), began_, places);
    AddTree("/dev/shm", began_, places);
    return places;
  }

  fs::file_time_type began_;
};

TEST_F(DaemonEgressKey, OfARunIsInNoFileAndNoEnvironment) {
  const PlantedKey planted;
  RunOptions options;
  options.input = std::string(Background::kKeepOpen, 5);
  Strings flags = Here();
  flags.insert(flags.end(),
               {"--allow", "GET https://" + Api() + "/v1/**", "--output", "256MiB", "--env",
                "PLANTED_RAW=" + HexOf(planted.number), "--env", "PLANTED_PEM=" + planted.pem});
  dir_.Write("planted", "\x30\x77" + std::string(kDerPrefix) + planted.number);
  const int memory = ::memfd_create("planted", MFD_CLOEXEC);
  EXPECT_EQ(::write(memory, planted.pem.data(), planted.pem.size()),
            static_cast<ssize_t>(planted.pem.size()));
  Background run(CofferWords(flags, {"python3", "-c", kShowAll, "https://" + Api() + "/v1/x"}),
                 options);
  ASSERT_TRUE(run.WaitForOutput("\nSHOWN\n", Seconds(90))) << run.err();
  ASSERT_TRUE(run.out().starts_with("hello /v1/x\n")) << "NO-CONTROL: no certificate was made";
  const size_t bundle = run.out().find("BUNDLE"), end = run.out().find("END OF BUNDLE");
  ASSERT_LT(bundle, end);
  const std::optional<PublicKey> key = PublicKey::OfBundle(run.out().substr(bundle, end - bundle));
  ASSERT_TRUE(key);
  const pid_t egress = EgressProcessOf(run.pid());
  ASSERT_GT(egress, 0);
  std::string number;
  if (IsRoot()) {
    number = FindNumber(*key, MemoryOf(egress));
    ASSERT_FALSE(number.empty()) << "NO-CONTROL: it is not where it has to be";
  }
  Places places = OfTheHost();
  AddProcesses(run.pid(), places);
  AddProcess(::getpid(), places);
  places.emplace_back("inside", run.out());
  EXPECT_EQ(Holding(*key, number, places), Strings()) << "OPEN";
  const Strings found = Holding(planted.key, planted.number, places);
  EXPECT_TRUE(Any(found, dir_.path() + "/planted")) << "NO-CONTROL";
  EXPECT_TRUE(Any(found, "/environ")) << "NO-CONTROL";
  EXPECT_TRUE(Any(found, "/proc/" + std::to_string(::getpid()) + "/fd/")) << "NO-CONTROL";
  EXPECT_TRUE(Any(found, "inside")) << "NO-CONTROL";
  // In each place inside.
  for (const std::string part : {"FILE /tmp/mine\n", "/environ\n", "/fd/"}) {
    bool held = false;
    for (size_t at = 0; !held && (at = run.out().find("\nFILE ", at)) != std::string::npos; ++at) {
      const size_t next = run.out().find("\nFILE ", at + 1);
      const std::string file = run.out().substr(at + 1, next - at - 1);
      held = Contains(file.substr(0, file.find('\n') + 1), part) &&
             HoldsKey(planted.key, planted.number, file);
    }
    EXPECT_TRUE(held) << "NO-CONTROL: " << part;
  }
  ::close(memory);
  run.CloseInput();
  EXPECT_EQ(run.Wait().exit, 0) << run.err();
  // And nothing stays.
  EXPECT_EQ(Holding(*key, number, OfTheHost()), Strings()) << "OPEN";
}

TEST_F(DaemonEgressKey, OfADaemonsCallIsInNoFileAndNoEnvironment) {
  const std::string port = std::to_string(tls_);
  Declare("judged",
          "[[network.allow]]\nhost = \"api.test\"\nports = [" + port + "]\npaths = [\"/v1/**\"]\n");
  ASSERT_TRUE(Start());
  HttpAnswer answer;
  // The second page is answered when the test asks for it too.
  std::thread call([&] {
    answer = CallForLong("judged",
                         "tail -n 12 /etc/ssl/certs/ca-certificates.crt\npython3 -c \"\n"
                         "import urllib.request as u\n"
                         "for page in ('x', 'meet'): print(u.urlopen('https://api.test:" +
                             port + "/v1/' + page).read().decode())\"");
  });
  std::string seen;
  EXPECT_TRUE(WaitUntil([&] { return Contains(seen += Seen(), "GET /v1/meet"); }, Seconds(60)));
  Places places = OfTheHost();
  AddProcesses(daemon_.monitor(), places);
  const Places memory = IsRoot() ? MemoryOf(daemon_.Find(RoleOf::kProxy)) : Places();
  const RunResult met = RunProgram({"curl", "-sS", "--resolve", "api.test:" + port + ":127.0.0.1",
                                    "--cacert", dir_.path() + "/ca.pem", "--noproxy", "*",
                                    "https://api.test:" + port + "/v1/meet"});
  EXPECT_EQ(met.out, "met") << met.Describe();
  call.join();
  EXPECT_TRUE(Contains(Out(answer), "hello /v1/x")) << "NO-CONTROL\n" << answer.text;
  const std::optional<PublicKey> key = PublicKey::OfBundle(Out(answer));
  ASSERT_TRUE(key) << answer.text;
  const std::string number = FindNumber(*key, memory);
  EXPECT_EQ(number.empty(), !IsRoot()) << "NO-CONTROL: it is not where it has to be";
  EXPECT_EQ(Holding(*key, number, places), Strings()) << "OPEN";
  // After the call, in what is kept: its record, its result, its files.
  EXPECT_EQ(Holding(*key, number, OfTheHost()), Strings()) << "OPEN";
  // The control: the same search finds a key in the state directory and in the environment of a process.
  const PlantedKey planted;
  const std::string place = daemon_.state() + "/planted";
  std::ofstream(place) << planted.pem;
  const Background sleeper({"env", "PLANTED=" + HexOf(planted.number), "sleep", "100"});
  Places control = OfTheHost();
  AddProcess(sleeper.pid(), control);
  const Strings found = Holding(planted.key, {}, control);
  EXPECT_TRUE(Any(found, place)) << "NO-CONTROL";
  EXPECT_TRUE(Any(found, "/environ")) << "NO-CONTROL";
}

}  // namespace
}  // namespace coffer::test
