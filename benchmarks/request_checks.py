"""What of the server's own share in a request is access: who asks, limits, idempotency keys, and the log of accesses.

python benchmarks/request_checks.py [--count 2000]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from recollect import RAGConfig, RAGPipeline
from recollect.config.server import JwtConfig, LimitsConfig, ServerConfig
from recollect.server.admission import Begun, Idempotency, Reply, fingerprint
from recollect.server.authentication import Authenticator
from recollect.server.limits import Limits
from recollect.store.admission import Bucket


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)  # the embedded server may run as somebody else
        config = RAGConfig.load(storage={"data_dir": Path(folder) / "data"}, embedding={"provider": "hashing"})
        with RAGPipeline(config) as rag:
            _measure(rag, Path(folder), count)


def _measure(rag: RAGPipeline, folder: Path, count: int) -> None:
    secret = rag.keys.create("benchmark", scopes=("read", "write")).secret
    bearer = f"Bearer {secret}"
    keys = Authenticator(rag)
    signer = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = folder / "key.pem"
    pem.write_bytes(
        signer.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    tokens = Authenticator(rag, ServerConfig(jwt=JwtConfig(public_key=pem, audience="us")))
    token = jwt.encode({"sub": "ann", "aud": "us", "exp": int(time.time()) + 3600}, signer, "RS256")
    caller = keys.authenticate(bearer)
    limits = Limits(rag, LimitsConfig(search=10_000_000, tenant_search=100_000_000))
    bucket = [Bucket(name=name, size=10_000_000, seconds=60 / 10_000_000) for name in ("one", "all")]
    scope = rag.view(tenant=1).scope
    idempotency = Idempotency(rag)

    def known_token() -> None:
        tokens.authenticate(f"Bearer {token}")

    def new_token() -> None:
        tokens.forget()
        tokens.authenticate(f"Bearer {token}")

    def new_key() -> None:
        keys.forget()
        keys.authenticate(bearer)

    numbers = iter(range(10**9))

    def written_once() -> None:
        begun = idempotency.begin(caller, f"key {next(numbers)}", fingerprint("POST", "/v1/x", "", b"{}"))
        assert isinstance(begun, Begun)
        idempotency.end(begun, Reply(status=201, headers={}, body=b"{}" * 100))

    for name, call in (
        ("a key that was looked up within 5 s", lambda: keys.authenticate(bearer)),
        ("a key that is looked up", new_key),
        ("a token that was verified within 5 s", known_token),
        ("a token that is verified (RS256), and its tenant looked up", new_token),
        ("a request counted, most of them by what was leased", lambda: limits.check(caller, "search")),
        ("a request counted in the database, two buckets", lambda: rag.store.limits.take(scope, bucket, wanted=1)),
        ("a write with an idempotency key, begun and ended", written_once),
    ):
        print(f"{name:60} {_milliseconds(call, count)}")


def _milliseconds(call: Callable[[], object], count: int) -> str:
    for _ in range(20):
        call()
    taken = []
    for _ in range(count):
        begun = time.perf_counter()
        call()
        taken.append((time.perf_counter() - begun) * 1000)
    return f"median {statistics.median(taken):.4f} ms, p95 {sorted(taken)[int(count * 0.95)]:.4f} ms"


if __name__ == "__main__":
    main()
