// SPDX-License-Identifier: Apache-2.0
//
// `coffer run --never-send`: a program sends a value that must never leave to a host that is allowed, in every place of
// a request and in every spelling that is looked for, to servers on this host's loopback that keep every byte they got.
//
// Invariant: no such request is answered, and no server has a value, or the first half of one, in any of its spellings.
// The control is another value, which is sent the same way and arrives.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/egress_fixture.h"
#include "tests/support/verdicts.h"

namespace coffer::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kValue = "tLq4/secret+7Zw1Pp";
constexpr const char* kOther = "Mv93/nothin+Xk2Qqr";

// Sends a value in each way. It says "WAY STATUS" for each request. The value comes reversed, so that the receipt, which
// has the command, says nothing that the test looks for.
constexpr const char* kProgram = R"(
import base64, binascii, http.client, os, ssl, sys, urllib.parse
plain, tls, value = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3][::-1]
raw = value.encode()

def connect(port):
    if port == tls:
        c = http.client.HTTPSConnection('127.0.0.1', 3128, timeout=60, context=ssl.create_default_context())
        c.set_tunnel('api.test', port)
        return c, ''
    return http.client.HTTPConnection('127.0.0.1', 3128, timeout=60), 'http://api.test:%d' % port

def send(way, path='/v1/x', fields={}, body=b'', chunks=None, method='POST'):
    for port in plain, tls:
        c, before = connect(port)
        try:
            c.putrequest(method, before + path, skip_host=True, skip_accept_encoding=True)
            c.putheader('Host', 'api.test:%d' % port)
            for name, text in fields.items(): c.putheader(name, text)
            if chunks is None:
                c.putheader('Content-Length', str(len(body)))
                c.endheaders(body)
            else:
                c.putheader('Transfer-Encoding', 'chunked')
                c.endheaders()
                for chunk in chunks: c.send(b'%x\r\n%s\r\n' % (len(chunk), chunk))
                c.send(b'0\r\n\r\n')
            said = c.getresponse()
            print(way, said.status, said.headers.get('X-Coffer-Egress'))
        except OSError as e:
            print(way, 'error', e.__class__.__name__)
        c.close()

escaped = ''.join('%%%02x' % b for b in raw)
send('path', '/v1/' + value)
send('escaped path', '/v1/' + escaped)
send('query', '/v1/x?key=' + value, method='GET')
send('escaped query', '/v1/x?key=' + escaped, method='GET')
send('quoted query', '/v1/x?' + urllib.parse.urlencode({'key': value}), method='GET')
send('field', fields={'X-Key': value})
send('basic', fields={'Authorization': 'Basic ' + base64.b64encode(b'user:' + raw).decode()})
send('bearer', fields={'Authorization': 'Bearer ' + value})
send('body', body=b'before ' + raw + b' after')
send('form', body=urllib.parse.urlencode({'key': value}).encode())
send('long body', body=b'x' * 300000 + raw + b'x' * 10)
send('hexadecimal', body=binascii.hexlify(raw))
send('capitals', body=binascii.hexlify(raw).upper())
for n in range(3):
    send('base64 %d' % n, body=base64.b64encode(b'b' * n + raw + b'after'))
    send('url base64 %d' % n, body=base64.urlsafe_b64encode(b'b' * n + raw + b'after'))
send('wrapped base64', body=base64.encodebytes(b'b' * 50 + raw + b'after'))
send('bytes', chunks=[b'before '] + [bytes([b]) for b in raw] + [b' after'])
for cut in range(1, len(raw)):
    send('cut at %d' % cut, chunks=[b'before ' + raw[:cut], raw[cut:] + b' after'])
)";

class NeverSendEscape : public EgressFixture {
 protected:
  void SetUp() override {
    EgressFixture::SetUp();
    fs::create_directory(bytes());
    Write("a-value-that-is-not-sent\n" + std::string(kValue) + "\n");
  }
  std::string bytes() const { return dir_.path() + "/bytes"; }
  std::string file() const { return dir_.path() + "/never-send"; }
  void Write(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(file(), std::ios::trunc) << text;
    ASSERT_EQ(::chmod(file().c_str(), mode), 0);
  }
  Strings Rules() const {
    return {"--allow", "https://" + Api() + "/v1/**", "--allow", Url("api.test", "/v1/**")};
  }
  RunResult Send(Strings flags, const std::string& value) {
    const Strings rules = Rules();
    flags.insert(flags.end(), rules.begin(), rules.end());
    return RunWith(flags, {"python3", "-c", kProgram, std::to_string(plain_), std::to_string(tls_),
                           std::string(value.rbegin(), value.rend())});
  }
  // Everything that came over connections that have ended; waits until all have.
  std::string Kept() {
    EXPECT_TRUE(Settle());
    std::string kept;
    EXPECT_TRUE(WaitUntil(
        [&] {
          kept.clear();
          for (const fs::directory_entry& one : fs::directory_iterator(bytes())) {
            if (one.path().extension() != ".all") {
              return false;
            }
            kept += ReadFile(one.path().string()).value_or("") + "\n";
          }
          return true;
        },
        Seconds(60)));
    return kept;
  }
};

// A value, its first half, and how both look in base64 and hexadecimal digits; capitals apart.
Strings TracesOf(const std::string& value) {
  const auto run = [](const std::string& code, const std::string& text) {
    return RunProgram({"python3", "-c", code, text}).out;
  };
  const std::string out =
      run("import base64, binascii, sys, urllib.parse\n"
          "for v in sys.argv[1].encode(), sys.argv[1][:9].encode():\n"
          "  print(v.decode())\n"
          "  print(urllib.parse.quote(v, safe=''))\n"
          "  print(binascii.hexlify(v).decode())\n"
          "  print(binascii.hexlify(v).decode().upper())\n"
          "  for n in range(3):\n"
          "    for code in base64.b64encode, base64.urlsafe_b64encode:\n"
          "      print(code(b'b' * n + v).decode()[(n * 8 + 5) // 6:(n + len(v)) * 8 // 6])\n",
          value);
  return Lines(out);
}

TEST_F(NeverSendEscape, AValueDoesNotLeaveInARequestThatIsLookedInto) {
  const RunResult refused = Send({"--never-send", file()}, kValue);
  const Strings said = Lines(refused.out);
  EXPECT_EQ(said.size(), 2 * (21U + std::string(kValue).size() - 1)) << refused.Describe();
  for (const std::string& line : said) {
    // A long body is still being sent when the answer comes, and the connection ends.
    EXPECT_TRUE(line.ends_with(" 403 never_send") ||
                (line.starts_with("long body") && Contains(line, "error")))
        << line;
  }
  const std::string kept = Kept();
  EXPECT_TRUE(Contains(kept, "before ")) << "NO-CONTROL: the server kept nothing\n" << kept;
  const Strings traces = TracesOf(kValue);
  ASSERT_EQ(traces.size(), 20U);
  for (const std::string& trace : traces) {
    EXPECT_FALSE(Contains(kept, trace)) << "OPEN: " << trace;
  }
  // What a person reads of it names the line, and nothing that was in it.
  const std::string receipt = ReadFile(dir_.path() + "/receipt").value_or("");
  for (const std::string& trace : traces) {
    EXPECT_FALSE(Contains(receipt + refused.err, trace)) << trace;
  }
  const Json read = Receipt();
  size_t denials = 0;
  for (const Json& denial : read.value("denials", Json::array())) {
    if (denial["rule"] == "egress.never_send") {
      denials += denial["count"].get<size_t>();
      const std::string reason = denial["reason"], fix = denial["fix"];
      EXPECT_EQ(denial["surface"], "egress");
      EXPECT_TRUE(Contains(reason, "line 2")) << reason;
      EXPECT_TRUE(Contains(fix, "--never-send")) << fix;
    }
  }
  EXPECT_EQ(denials, said.size()) << read.dump();
  EXPECT_TRUE(Contains(refused.err, "line 2")) << refused.err;

  const RunResult control = Send({"--never-send", file()}, kOther);
  for (const std::string& line : Lines(control.out)) {
    EXPECT_TRUE(line.ends_with(" 200 None")) << "NO-CONTROL: " << line;
  }
  const std::string arrived = Kept();
  for (const std::string& trace : TracesOf(kOther)) {
    EXPECT_TRUE(Contains(arrived, trace)) << "NO-CONTROL: " << trace;
  }
}

// A program cannot hide that it tried: neither the room of the egress process nor the list of denials is full for it.
TEST_F(NeverSendEscape, NoiseDoesNotHideIt) {
  const std::string noise = R"(
import socket, sys
def ask(path, body=b''):
    with socket.create_connection(('127.0.0.1', 3128), 60) as s:
        s.sendall(b'POST http://api.test:%s/%s HTTP/1.1\r\nHost: api.test:%s\r\nContent-Length: %d\r\n\r\n%s'
                  % (sys.argv[1].encode(), path, sys.argv[1].encode(), len(body), body))
        return s.recv(4096)
for i in range(1500): ask(b'no/%d/' % i + b'long' * 1000)
value = sys.argv[2][::-1].encode()
for n in range(3): ask(b'v1/x', b'before ' + value)
ask(b'v1/' + value)
)";
  const auto run = [&](const std::string& value) {
    return RunWith({"--never-send", file(), "--allow", Url("api.test", "/v1/**")},
                   {"python3", "-c", noise, std::to_string(plain_),
                    std::string(value.rbegin(), value.rend())});
  };
  EXPECT_EQ(run(kOther).exit, 0);
  const Json before = Receipt();
  EXPECT_EQ(before["incidents"], Json::array()) << "NO-CONTROL: noise is no incident";
  EXPECT_GE(before["denials"].size(), 256U) << "NO-CONTROL: the list was not full";
  EXPECT_TRUE(Contains(before["network"].dump(), R"("decision":"others")"))
      << "NO-CONTROL: the egress process had room left";
  EXPECT_EQ(run(kValue).exit, 0);
  const Json after = Receipt();
  EXPECT_EQ(after["incidents"],
            Json::array({"leak: 4 requests that held a value which must never leave were stopped"}))
      << "OPEN";
  EXPECT_LE(after["denials"].size(), 262U);
}

// Without the flag the value arrives.
TEST_F(NeverSendEscape, WithoutTheFlagItLeaves) {
  const RunResult run = Send({}, kValue);
  for (const std::string& line : Lines(run.out)) {
    EXPECT_TRUE(line.ends_with(" 200 None")) << line;
  }
  const std::string kept = Kept();
  for (const std::string& trace : TracesOf(kValue)) {
    EXPECT_TRUE(Contains(kept, trace)) << "NO-CONTROL: " << trace;
  }
}

TEST_F(NeverSendEscape, AFileThatCannotBeTrustedIsRefused) {
  const auto run = [&](const Strings& flags) {
    const RunResult result = RunWith(flags, {"/bin/echo", "it ran"});
    EXPECT_FALSE(Contains(result.err, "qqq")) << "a part of a value\n" << result.err;
    return result;
  };
  const Strings rule = {"--allow", "https://" + Api() + "/v1/**"};
  const auto with_file = [&] {
    Strings flags = {"--never-send", file()};
    flags.insert(flags.end(), rule.begin(), rule.end());
    return run(flags);
  };
  Write("qqqqqqqq\n");
  EXPECT_EQ(with_file().out, "it ran\n") << "NO-CONTROL";
  for (const mode_t mode : {0604, 0620, 0602, 0644}) {
    Write("qqqqqqqq\n", mode);
    const RunResult refused = with_file();
    EXPECT_EQ(refused.exit, 120) << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, "chmod 600")) << refused.err;
  }
  const std::pair<const char*, const char*> mistakes[] = {
      {"", "no value"},
      {"qqqqqqqq\nqqqqqqq\n", "line 2 has 7 bytes"},
      {"qqqqqqqq\r\n", "line 1 holds a control character"}};
  for (const auto& [text, message] : mistakes) {
    Write(text);
    const RunResult refused = with_file();
    EXPECT_EQ(refused.exit, 120) << refused.Describe();
    EXPECT_TRUE(Contains(refused.err, message)) << refused.err;
  }
  fs::remove(file());
  EXPECT_EQ(with_file().exit, 120);
  // Where nothing is looked into it would say nothing.
  Write("qqqqqqqq\n");
  const RunResult spliced = run({"--never-send", file(), "--allow", Api()});
  EXPECT_EQ(spliced.exit, 120) << spliced.Describe();
  EXPECT_TRUE(Contains(spliced.err, "no --allow has requests looked into")) << spliced.err;
  EXPECT_EQ(RunBare({"--never-send", file()}, {"/bin/echo"}).exit, 120);
}

// A command that sees the file knows what is looked for.
TEST_F(NeverSendEscape, AFileThatTheCommandIsShownIsRefused) {
  const std::string shown = dir_.MakeDir("shown");
  ::chmod(shown.c_str(), 0755);
  Write("qqqqqqqq\n");
  const auto run = [&](Strings flags, const std::string& named) {
    flags.insert(flags.end(), {"--never-send", named, "--allow", Url("api.test", "/v1/**")});
    return RunWith(flags, {"/bin/echo", "it ran"});
  };
  const RunResult control = run({"--ro", shown}, file());
  EXPECT_EQ(control.out, "it ran\n") << "NO-CONTROL\n" << control.Describe();
  fs::rename(file(), shown + "/values");
  fs::create_symlink(shown + "/values", file());
  for (const std::string& named : {shown + "/values", file()}) {
    for (const Strings& flags : {Strings{"--ro", shown}, Strings{"--rw", shown},
                                 Strings{"--project", shown}, Strings{"--in", shown + "/values"}}) {
      const RunResult refused = run(flags, named);
      EXPECT_EQ(refused.exit, 120) << flags[0] << " " << named << "\n" << refused.Describe();
      EXPECT_TRUE(Contains(refused.err, "is shown")) << refused.err;
      EXPECT_EQ(refused.out, "") << "OPEN: " << flags[0];
    }
  }
}

// A command that may write where a link lies decides what the next call looks for.
TEST_F(NeverSendEscape, ALinkThatTheCommandMayChangeIsRefused) {
  const std::string shown = dir_.MakeDir("shown"), kept = dir_.MakeDir("kept");
  ::chmod(shown.c_str(), 0755);
  Write("qqqqqqqq\n");
  fs::rename(file(), kept + "/values");
  fs::create_symlink(kept + "/values", shown + "/link");
  fs::create_symlink(kept, shown + "/directory");
  fs::create_symlink(shown + "/link", dir_.path() + "/outer");
  const auto run = [&](const std::string& named) {
    return RunWith({"--rw", shown, "--never-send", named, "--allow", Url("api.test", "/v1/**")},
                   {"/bin/echo", "it ran"});
  };
  const RunResult control = run(kept + "/values");
  EXPECT_EQ(control.out, "it ran\n") << "NO-CONTROL\n" << control.Describe();
  for (const std::string& named :
       {shown + "/link", shown + "/directory/values", dir_.path() + "/outer"}) {
    const RunResult refused = run(named);
    EXPECT_EQ(refused.exit, 120) << named << "\n" << refused.Describe();
    EXPECT_EQ(refused.out, "") << "OPEN: " << named;
    EXPECT_TRUE(Contains(refused.err, shown)) << refused.err;
  }
}

// Of two files the last would count, and the values of the first would leave.
TEST_F(NeverSendEscape, TwoFilesAreRefused) {
  Write("qqqqqqqq\n");
  const Strings rule = {"--allow", Url("api.test", "/v1/**")};
  const auto run = [&](Strings flags) {
    flags.insert(flags.end(), rule.begin(), rule.end());
    return RunWith(flags, {"/bin/echo", "it ran"});
  };
  EXPECT_EQ(run({"--never-send", file()}).out, "it ran\n") << "NO-CONTROL";
  const RunResult refused = run({"--never-send", file(), "--never-send", file()});
  EXPECT_EQ(refused.exit, 120) << refused.Describe();
  EXPECT_TRUE(Contains(refused.err, "was given twice")) << refused.err;
}

}  // namespace
}  // namespace coffer::test
