# SPDX-License-Identifier: Apache-2.0
"""What a hostile, broken or overloaded server can do to the client: waste a bounded amount of its time and memory."""
import json
import os
import socket
import traceback
import unittest
import urllib.request
from unittest import mock

from cofferdam import (ApprovalRequired, AuthError, BusyError, CallDenied, Coffer, CofferError, ConnectFailed, ConnectionLost,
                       ProtocolError)
from support import BOTH, CALL, DONE, KEY, SESSION, Server, answer, problem


def cut_in_the_middle(connection):
    connection.sendall(answer(200, DONE)[:-20])


def cut_at_once(_):
    pass


def endless(head):
    def send(connection):
        connection.sendall(head)
        while True:
            connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n" if b"chunked" in head else b"x" * 65536)
    return send


class Hostile(unittest.TestCase):
    def refused(self, said, wanted, ask=lambda coffer: coffer.call("python", {"code": "1"}), **options):
        """Both clients fail with `wanted`, and the key is nowhere in what they raise."""
        for kind in BOTH:
            with self.subTest(kind=kind.__name__), Server(said) as server:
                coffer = kind(server.url, KEY, **{"retries": 0, **options})
                error = None
                try:  # assertRaises would drop the traceback
                    ask(coffer)
                except wanted as caught:
                    error = caught
                self.assertIsNotNone(error, "it was believed")
                whole = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
                # The variables of this test hold the key; those of the package must not.
                own = [part for part in whole.split('File "') if f"{os.sep}cofferdam{os.sep}" in part.split("\n")[0]]
                self.assertTrue(own)
                for text in (*own, str(error), repr(error), repr(vars(error)), repr(coffer)):
                    self.assertNotIn(KEY, text)
        return error

    def test_the_check_for_keys_can_fail(self):
        def leak(secret):
            raise ValueError(len(secret))
        try:
            leak(KEY)
        except ValueError as error:
            whole = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        self.assertIn(KEY, whole, "NO-CONTROL")

    # ---- Retries ----------------------------------------------------------------------------------------------------

    def test_a_call_that_was_cut_is_made_again_with_its_own_key(self):
        for kind in BOTH:
            with self.subTest(kind=kind.__name__), Server(cut_in_the_middle, cut_at_once, answer(200, DONE)) as server:
                self.assertEqual(kind(server.url, KEY).call("python", {"code": "1"}).stdout, "4\n")
                keys = {server.header(n, "Idempotency-Key") for n in range(3)}
                self.assertEqual(len(server.requests), 3)
                self.assertEqual(len(keys), 1)
                kind(server.url, KEY).call("python", {"code": "1"})
                self.assertNotIn(server.header(3, "Idempotency-Key"), keys, "each call has a key of its own")

    def test_what_would_be_done_twice_is_not_made_again(self):
        for kind in BOTH:
            with self.subTest(kind=kind.__name__), Server(cut_at_once) as server:
                with self.assertRaises(ConnectionLost):
                    kind(server.url, KEY).new_session()
                self.assertEqual(len(server.requests), 1)

            for said, times in ((b"HTTP/1.1 504 X\r\n\r\n", 1), (b"HTTP/1.1 503 X\r\n\r\n<html>", 1),
                                (problem(503, "busy", retry_after=0), 2)):
                with self.subTest(kind=kind.__name__, said=said), Server(said) as server:
                    with self.assertRaises(BusyError):
                        kind(server.url, KEY, retries=1).new_session()
                    self.assertEqual(len(server.requests), times, "only the daemon can say that nothing was done")

    def test_a_call_in_flight_is_waited_for(self):
        busy = problem(409, "idempotency.in_flight", retry_after=1, call_id=CALL)
        for kind in BOTH:
            with self.subTest(kind=kind.__name__), Server(busy, answer(200, DONE, "Idempotency-Replayed: true")) as server:
                self.assertTrue(kind(server.url, KEY, retries=0).call("python", {}, idempotency_key="k").replayed)
                self.assertEqual([server.header(n, "Idempotency-Key") for n in range(2)], ['"k"', '"k"'])

    def test_a_busy_server_is_asked_again_but_not_in_a_thousand_years(self):
        for kind in BOTH:
            with self.subTest(kind=kind.__name__):
                with Server(problem(503, "busy", retry_after=0), b"HTTP/1.1 502 X\r\n\r\n<html>", answer(200, DONE)) as server:
                    self.assertTrue(kind(server.url, KEY).call("python", {}).ok)
                with Server(problem(503, "busy", retry_after=10**9)) as server:
                    with self.assertRaises(BusyError) as caught:
                        kind(server.url, KEY).call("python", {})
                    self.assertEqual((len(server.requests), caught.exception.retry_after), (1, 10**9))

    def test_nobody_there(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # no server listens on it, and none can begin to
            for kind in BOTH:
                with self.assertRaises(ConnectFailed):
                    kind("http://127.0.0.1:%d" % taken.getsockname()[1], KEY, retries=1).tools()

    # ---- The key goes nowhere else ----------------------------------------------------------------------------------

    def test_a_redirect_is_not_followed(self):
        for status in (301, 302, 303, 307, 308):
            with Server(answer(200, DONE)) as other:
                self.refused(answer(status, b"", f"Location: {other.url}/v1/calls"), ProtocolError)
                self.assertEqual(other.requests, [])

    def test_another_client_would_follow_it(self):
        with Server(answer(200, DONE)) as other, Server(answer(302, b"", f"Location: {other.url}/")) as server:
            request = urllib.request.Request(server.url + "/v1/tools", headers={"Authorization": "Bearer " + KEY})
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60).read()
            self.assertIn(KEY, other.requests[0], "NO-CONTROL: the attack works with Python's own client")

    def test_no_proxy_is_used(self):
        with Server(answer(200, {"tools": []})) as proxy, Server(answer(200, {"tools": []})) as server:
            before = dict(os.environ)
            try:
                os.environ.update(http_proxy=proxy.url, HTTP_PROXY=proxy.url, ALL_PROXY=proxy.url)
                self.assertEqual(Coffer(server.url, KEY).tools(), [])
            finally:
                os.environ.clear()
                os.environ.update(before)
            self.assertEqual((len(proxy.requests), len(server.requests)), (0, 1))

    def test_the_key_is_not_sent_in_the_clear(self):
        with self.assertRaises(ValueError) as caught:
            Coffer("http://coffer.example:7433", KEY)
        self.assertNotIn(KEY, str(caught.exception))
        Coffer("http://coffer.example:7433", KEY, allow_plain_http=True)
        for key in (KEY + "\r\nX: y", KEY + " ", "\u00e9" + KEY):
            with self.assertRaises(ValueError) as caught:
                Coffer("https://coffer.example", key)
            self.assertNotIn(KEY, str(caught.exception))
        for url in ("http://a@127.0.0.1:1", "http://127.0.0.1:1/x", "ftp://127.0.0.1", "unix:relative", "127.0.0.1:7433"):
            with self.assertRaises(ValueError):
                Coffer(url, KEY)

    def test_a_key_of_the_environment_goes_where_the_environment_says(self):
        with Server(answer(200, {"tools": []})) as server, Server(answer(200, {"tools": []})) as other:
            with mock.patch.dict(os.environ, COFFER_URL=server.url, COFFER_KEY=KEY):
                Coffer().tools()
                Coffer(other.url).tools()
            self.assertEqual(server.header(0, "Authorization"), "Bearer " + KEY)
            self.assertIsNone(other.header(0, "Authorization"))

    def test_a_server_that_says_the_key_is_not_quoted(self):
        error = self.refused(problem(401, "auth.key", f"your key {KEY} is \x1b[31mold\u202e\nx", hint=KEY), AuthError)
        self.assertEqual(error.error_class, "auth.key")
        self.assertTrue(str(error).isprintable())
        spelled = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
        denied = json.dumps({**DONE, "outcome": "denied", "result": None, "error": {"class": "policy.x", "message": "KEY"}})
        for key in (KEY, spelled):
            error = self.refused(answer(200, denied.replace("KEY", key).encode()), CallDenied)
            self.assertIn("<key>", str(error))
        self.assertLess(len(str(self.refused(problem(400, "x" * 5000, "y" * 10**6), CofferError))), 5000)

    # ---- Answers that are none --------------------------------------------------------------------------------------

    def test_not_an_answer(self):
        for said in (b"<html>", answer(200, b"<html>"), answer(200, b"[]"), answer(200, b"\xff"), answer(200, {}),
                     answer(200, b'{"a":' * 100000), answer(404, b"gone"), b"SSH-2.0-x\r\n\r\n",
                     answer(200, {**DONE, "call_id": "../../keys"}), answer(200, {**DONE, "denials": [1]}), answer(200, {**DONE, "retry_after": 10**400}),
                     answer(200, {**DONE, "result": {"stdout": 5}}), answer(202, {"call_id": CALL, "outcome": None}),
                     answer(200, DONE, "Content-Encoding: gzip"), answer(200, DONE, "Content-Length: 5"),
                     answer(200, DONE, "Transfer-Encoding: chunked"), b"HTTP/1.1 200 X\r\nContent-Length: -1\r\n\r\n",
                     b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            wanted = (ProtocolError, ConnectionLost) if said == b"<html>" else ProtocolError
            with self.subTest(said=said[:60]):
                self.refused(said, wanted)

    def test_too_much_is_bounded(self):
        self.refused(b"HTTP/1.1 200 X\r\nContent-Length: 99999999999\r\n\r\n", ProtocolError)
        self.refused(endless(b"HTTP/1.1 200 X\r\nX: "), ProtocolError)
        for head in (b"HTTP/1.1 200 X\r\n\r\n", b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n"):
            self.refused(endless(head), ProtocolError, lambda coffer: coffer.read_call_file(CALL, "a", max_bytes=1 << 20))
        stream = b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\n\r\ndata: "
        for kind in BOTH:
            with Server(endless(stream)) as server:
                coffer = kind(server.url, KEY)
                with self.assertRaises(ProtocolError):
                    list(coffer.iterate(Coffer(server.url, KEY).operations.events(CALL)))

    def test_a_server_that_drips_is_left(self):
        self.refused(drip, (ConnectionLost, ConnectFailed), timeout=1.0)

    # ---- What a server chooses that comes back in a request ---------------------------------------------------------

    def test_ids_and_paths_of_a_server_are_no_way_out(self):
        info = {"session_id": "../keys", "state": "open", "agent": "a", "label": None, "expires_at": None, "calls": 0,
                "max_calls": None, "files": {"max_bytes": 1}}
        self.refused(answer(201, info), ProtocolError, lambda coffer: coffer.new_session())
        for path in ("../../keys", "a/../b", "%2e%2E/x", "a?x=1", "a#b", "a b", "a\r\nX: y", "", "/etc", "a//b", "é"):
            files = {"files": [{"path": "x", "encoded_path": path, "size": 1, "sha256": None, "modified_at": None}],
                     "next": None}
            with self.subTest(path=path):
                self.refused(answer(200, files), ProtocolError, lambda coffer: list(coffer.call_files(CALL)))
        for path in ("../../keys", "a/../b", "", "/etc", "a//b", "a/."):
            with self.subTest(path=path), self.assertRaises(ValueError):
                Coffer("http://127.0.0.1:1", KEY).read_call_file(CALL, path)
        for cursor in ("\ud800", "x" * 3000, "a\r\nb", ""):
            self.refused(answer(200, {"files": [], "next": cursor}), ProtocolError, lambda coffer: list(coffer.call_files(CALL)))
        self.refused(answer(200, {"files": [], "next": "c"}), ProtocolError, lambda coffer: list(coffer.call_files(CALL)))

    def test_the_receipt_of_another_call(self):
        self.refused(answer(200, {"call_id": SESSION}), ProtocolError, lambda coffer: coffer.receipt(CALL))

    def test_a_call_that_waits_for_a_person(self):
        approval = {"id": "a", "digest": "d", "url": "https://coffer.example/a", "expires_at": None}
        error = self.refused(answer(202, {"call_id": CALL, "outcome": "gated", "approval": approval}), ApprovalRequired)
        self.assertEqual((error.error_class, error.call_id, error.approval.url), ("approval.required", CALL, approval["url"]))

    def test_a_person_is_waited_for(self):
        approval = {"id": "a", "digest": "d", "url": "https://coffer.example/a", "expires_at": None}
        gated = answer(202, {"call_id": CALL, "outcome": "gated", "approval": approval})
        waits = {"call_id": CALL, "outcome": "gated", "state": "gated", "tool": "python", "approval": approval,
                 "result": None, "error": None, "denials": [], "log": None}
        ended = {**waits, "outcome": "success", "state": "finished", "approval": None,
                 "result": {"stdout": "42\n", "stderr": "", "truncated": False, "exit": {"code": 0, "signal": None}}}
        refused = {**waits, "outcome": "denied", "state": "finished", "error": {"class": "policy.approval", "message": "no"}}
        for kind in BOTH:
            with self.subTest(kind=kind.__name__), Server(gated, answer(200, waits), answer(200, ended)) as server:
                told = []
                result = kind(server.url, KEY).call("python", on_approval=told.append)
                self.assertEqual(([one.url for one in told], result.stdout), ([approval["url"]], "42\n"))
                self.assertEqual(len(server.requests), 3)
            with self.subTest(kind=kind.__name__), Server(gated, answer(200, refused)) as server:
                with self.assertRaises(CallDenied):
                    kind(server.url, KEY).call("python", on_approval=lambda approval: None)
            with self.subTest(kind=kind.__name__), Server(*[gated] + [answer(200, waits)] * 50) as server:
                with self.assertRaises(ConnectionLost):  # no person decides in time
                    kind(server.url, KEY).call("python", timeout=0.5, on_approval=lambda approval: None)
            with self.subTest(kind=kind.__name__), Server(gated, answer(200, ended)) as server:
                with self.assertRaises(ZeroDivisionError):  # of the function itself; nothing is asked after it
                    kind(server.url, KEY).call("python", on_approval=lambda approval: 1 / 0)
                self.assertEqual(len(server.requests), 1)

    # ---- Events -----------------------------------------------------------------------------------------------------

    def test_events_go_on_where_they_were_cut(self):
        def event(number, kind, data):
            return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode()
        head = b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nretry: 1000\n\n: hey\n\n"
        first = event(1, "state", {"state": "running"}) + event(2, "stdout", {"text": "a\u00e9"})
        second = event(3, "stderr", {"base64": "/w=="}) + b"event: gap\ndata: {}\n\n" + event(9, "new-kind", {}) + \
            event(4, "state", {"state": "finished"})
        chunked = head.replace(b"Connection: close", b"Transfer-Encoding: chunked")
        for kind in BOTH:
            with self.subTest(kind=kind.__name__), Server(
                    head + first + event(3, "stderr", {"text": "half"})[:-4],
                    chunked.partition(b"retry")[0] + b"".join(b"1\r\n%c\r\n" % byte for byte in second)) as server:
                events = list(kind(server.url, KEY).iterate(Coffer(server.url, KEY).operations.events(CALL)))
                self.assertEqual([(item.kind, item.data or item.state) for item in events], [
                    ("state", "running"), ("stdout", "a\u00e9".encode()), ("stderr", b"\xff"), ("gap", None),
                    ("state", "finished")])
                self.assertEqual([server.header(n, "Last-Event-ID") for n in range(2)], [None, "2"])


def drip(connection):
    """Says something all the time, and never an answer."""
    connection.settimeout(0.05)
    while True:
        try:
            connection.sendall(b"HTTP/1.1 100 X\r\n\r\n")
            if connection.recv(1) == b"":
                return
        except TimeoutError:
            continue


if __name__ == "__main__":
    unittest.main()
