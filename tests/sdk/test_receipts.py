# SPDX-License-Identifier: Apache-2.0
"""Receipts are verified without the daemon, and nothing in one can be changed."""
import copy
import json
import unittest

from cofferdam import Coffer, VerificationError, verify_receipt
from cofferdam._ed25519 import ed25519_verify
from support import SOURCE

ZERO = "coffer-log+00000000+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


def changes_of(value, path=()):
    """Every document that differs from `value` in one place, and where."""
    if isinstance(value, dict):
        for name, item in value.items():
            rest = {other: kept for other, kept in value.items() if other != name}
            yield rest, (*path, name, "gone")
            for changed, where in changes_of(item, (*path, name)):
                yield {**value, name: changed}, where
        yield {**value, "more": None}, (*path, "more")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            for changed, where in changes_of(item, (*path, number)):
                yield value[:number] + [changed] + value[number + 1:], where
        yield [*value, None], (*path, "longer")
    elif isinstance(value, bool) or value is None:
        yield 0 if value is None else not value, path
    elif isinstance(value, str):
        yield value + "x", path
        if value:
            yield chr(ord(value[0]) ^ 1) + value[1:], path
    else:
        yield value + 1, path


class Receipts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with Coffer.local(private=True) as coffer:
            results = [coffer.call("python", {"code": f"print({n})"}, reason="\u00e9\u20ac") for n in range(3)]
            cls.receipts = [coffer.receipt(result.call_id) for result in results]
            cls.key = coffer.checkpoint().key
        with Coffer.local(private=True) as other:
            cls.other_key = other.checkpoint().key

    def test_vectors(self):
        vectors = json.loads((SOURCE / "tests/sdk/vectors.json").read_text(encoding="utf-8"))["vectors"]
        self.assertEqual(sum(one["good"] for one in vectors), 4)
        for one in vectors:
            key, message, signature = (bytes.fromhex(one[name]) for name in ("key", "message", "signature"))
            self.assertEqual(ed25519_verify(key, message, signature), one["good"], one["why"])

    def test_good(self):
        for receipt in self.receipts:
            self.assertEqual(verify_receipt(receipt.raw, self.key), receipt.call_id)
            self.assertEqual(verify_receipt(receipt.raw.decode(), self.key + "\n", call_id=receipt.call_id), receipt.call_id)
            pretty = json.dumps(json.loads(receipt.raw), indent=2, sort_keys=True)
            verify_receipt(pretty, self.key)  # the spelling of the file does not matter, its content does

    def test_no_part_of_it_can_be_changed(self):
        document = json.loads(self.receipts[1].raw)
        tried = 0
        for changed, where in changes_of(document):
            if changed == document:
                continue
            tried += 1
            with self.assertRaises(VerificationError, msg=str(where)):
                verify_receipt(json.dumps(changed), self.key)
        self.assertGreater(tried, 200)

    def test_parts_of_two_receipts(self):
        first, second = (json.loads(receipt.raw) for receipt in self.receipts[:2])
        for names in (("log",), ("signature",), ("log", "signature"), ("call_id",)):
            mixed = copy.deepcopy(first)
            for name in names:
                mixed[name] = second[name]
            with self.subTest(names=names), self.assertRaises(VerificationError):
                verify_receipt(json.dumps(mixed), self.key)
        with self.assertRaises(VerificationError):
            verify_receipt(self.receipts[0].raw, self.key, call_id=self.receipts[1].call_id)

    def test_other_keys(self):
        for key in (self.other_key, ZERO, "", "x", self.key.replace("coffer-log", "other-log"), self.key[:-4] + "AAAA"):
            with self.subTest(key=key), self.assertRaises(VerificationError):
                verify_receipt(self.receipts[0].raw, key)

    def test_not_a_receipt(self):
        raw = json.dumps(json.loads(self.receipts[0].raw), separators=(",", ":"), ensure_ascii=False).encode()
        verify_receipt(raw, self.key)
        twice = raw.replace(b'{"', b'{"outcome":"success","', 1)
        for data in (b"", b"{}", b"[]", b"null", b"\xff", b'{"log":{},"signature":{}}', b"[" * 100000, raw + b"x", raw[:-1],
                     twice, b'{"a":"\\ud800","log":{},"signature":{}}', b'{"a":NaN}', raw.replace(b":0,", b":0.0,", 1),
                     raw.replace(b'"leaf":"', b'"leaf":"\\ud800', 1)):
            self.assertNotEqual(data, raw)
            with self.subTest(data=data[:40]), self.assertRaises(VerificationError):
                verify_receipt(data, self.key)


if __name__ == "__main__":
    unittest.main()
