# SPDX-License-Identifier: Apache-2.0
"""The certificates of servers in tests: an authority, and one for api.test and other.test that it has signed."""
import os
import ssl
import subprocess

EC = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def make(directory: str) -> ssl.SSLContext:
    """Writes them to the directory; ca.pem is what clients trust. Returns the server's side."""
    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=directory)

    openssl("req", "-x509", *EC, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=test ca")
    openssl("req", *EC, "-keyout", "s.key", "-out", "s.csr", "-subj", "/CN=api.test")
    with open(directory + "/ext", "w", encoding="utf-8") as ext:
        ext.write("subjectAltName=DNS:api.test,DNS:other.test")
    openssl("x509", "-req", "-in", "s.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "s.pem",
            "-days", "2", "-extfile", "ext")
    os.chmod(directory + "/ca.pem", 0o644)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory + "/s.pem", directory + "/s.key")
    return context
