"""A bucket, read from a server that speaks S3: what other sources do not have."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from moto.server import ThreadedMotoServer

from recollect import Principal, RAGConfig, RAGPipeline
from recollect.embedding.hashing import HashingEmbedder
from recollect.errors import SourceError, UsageError
from recollect.sources import s3
from recollect.sources.base import Found, ListingEnds, Surroundings

from .conftest import Bucket


def add(pipeline: RAGPipeline, bucket: Bucket, **settings: object) -> str:
    return pipeline.sources.add(bucket.location, settings={"endpoint_url": bucket.endpoint_url, **settings}).name


def stored(pipeline: RAGPipeline) -> dict[str, int]:
    return {one.source: one.version for one in pipeline.documents.list(limit=1_000)}


@contextmanager
def asking_for_credentials(endpoint: str) -> Iterator[None]:
    """The server checks signatures; without this it lets everybody in."""

    def set_free_requests(count: str) -> None:
        url, plain = f"{endpoint}/moto-api/reset-auth", {"Content-Type": "text/plain"}
        request = urllib.request.Request(url, data=count.encode(), headers=plain, method="POST")
        urllib.request.urlopen(request).close()

    set_free_requests("0")
    try:
        yield
    finally:
        set_free_requests("inf")


def test_what_stands_in_a_bucket_is_read_and_what_is_no_document_is_not(pipeline: RAGPipeline, bucket: Bucket):
    bucket.put("hr/leave.md", "# Leave\n\nAnnual leave is 30 days.\n")
    bucket.put("a name with 'signs' & ünïcode+.md", "Odd")
    bucket.put("photo.gif", "no text")
    bucket.put("folder/", "")
    bucket.client.put_object(Bucket=bucket.name, Key="elsewhere/x.md", Body=b"Not below the prefix")
    name = add(pipeline, bucket)
    report = pipeline.sources.refresh(name)
    assert (report.added, report.skipped, report.failed) == (2, 1, 0)
    assert set(stored(pipeline)) == {"hr/leave.md", "a name with 'signs' & ünïcode+.md"}
    record = pipeline.sources.get(name)
    assert (record.state, record.type, record.connector, record.documents) == ("fresh", "api", "s3", 2)


def test_of_a_bucket_with_versions_the_current_ones_are_read(pipeline: RAGPipeline, bucket: Bucket):
    bucket.client.put_bucket_versioning(Bucket=bucket.name, VersioningConfiguration={"Status": "Enabled"})
    for text in ("One", "Two"):
        bucket.put("a.md", text)
    bucket.put("b.md", "Three")
    name = add(pipeline, bucket)
    assert pipeline.sources.refresh(name).added == 2
    assert pipeline.documents.get("a.md").content == "Two"
    bucket.delete("a.md")  # a delete marker
    bucket.put("b.md", "Four")
    report = pipeline.sources.refresh(name)
    assert (report.updated, report.removed) == (1, 1)


def test_grants_stand_in_tags_and_follow_them(pipeline: RAGPipeline, bucket: Bucket):
    bucket.put("pay.md", "The pay scale", Tagging="readers=role:hr")
    bucket.put("odd.md", "The pay scale too", Tagging="readers=everybody")
    name = add(pipeline, bucket, grants_tag="readers", grants=["* role:staff"])
    report = pipeline.sources.refresh(name)
    assert (report.added, report.failed) == (1, 1)
    hr = pipeline.view(principal=Principal(user_id="ann", roles=("hr",)))
    staff = pipeline.view(principal=Principal(user_id="bob", roles=("staff",)))
    assert hr.retrieve("The pay scale") and not staff.retrieve("The pay scale")
    tags = {"TagSet": [{"Key": "readers", "Value": "role:staff role:hr -user:ann"}]}
    bucket.client.put_object_tagging(Bucket=bucket.name, Key="docs/pay.md", Tagging=tags)
    assert pipeline.sources.refresh(name).updated == 0
    assert staff.retrieve("The pay scale") and not hr.retrieve("The pay scale")


def test_wrong_credentials_are_said_so_and_close_nothing(pipeline: RAGPipeline, bucket: Bucket, monkeypatch):
    bucket.put("a.md", "One")
    monkeypatch.setenv("OTHER_KEY", "another-secret-key")
    name = add(pipeline, bucket, secret_key="env:OTHER_KEY")
    pipeline.sources.refresh(name)
    bucket.put("b.md", "Two")
    with asking_for_credentials(bucket.endpoint_url), pytest.raises(SourceError, match="refused") as refused:
        pipeline.sources.refresh(name)
    assert not refused.value.retryable
    told = f"{refused.value} {pipeline.sources.list()}"
    assert "another-secret-key" not in told and "a-key-id" not in told
    assert stored(pipeline) == {"a.md": 1}
    monkeypatch.delenv("OTHER_KEY")
    with pytest.raises(UsageError, match="OTHER_KEY is not set"):
        pipeline.sources.refresh(name)
    assert pipeline.sources.get(name).state == "error"


def test_a_server_that_goes_in_the_middle_is_gone_on_with(pipeline: RAGPipeline, bucket: Bucket, monkeypatch):
    monkeypatch.setattr(s3, "_PAGE", 4)
    for number in range(12):
        bucket.put(f"{number:02}.md", f"Page {number}")
    # Of the same buckets, on a port of its own.
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    name = add(pipeline, bucket, endpoint_url=f"http://127.0.0.1:{port}")
    fetch = s3.S3Connector.fetch

    def breaking(self, item, *, max_bytes):
        if item.uri == "06.md":
            server.stop()
        return fetch(self, item, max_bytes=max_bytes)

    with monkeypatch.context() as patched:
        patched.setattr(s3.S3Connector, "fetch", breaking)
        with pytest.raises(SourceError) as broken:
            pipeline.sources.refresh(name)
    assert broken.value.retryable and 4 <= len(stored(pipeline)) < 12
    again = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    again.start()
    assert pipeline.sources.refresh(name).removed == 0
    again.stop()
    assert stored(pipeline) == {f"{number:02}.md": 1 for number in range(12)}


def test_a_bucket_that_is_not_there_closes_nothing(pipeline: RAGPipeline, bucket: Bucket):
    bucket.put("a.md", "One")
    name = add(pipeline, bucket)
    pipeline.sources.refresh(name)
    bucket.delete("a.md")
    bucket.client.delete_bucket(Bucket=bucket.name)
    with pytest.raises(SourceError, match="NoSuchBucket"):
        pipeline.sources.refresh(name)
    assert stored(pipeline) == {"a.md": 1}


def connector(bucket: Bucket, tmp_path, **settings: object) -> s3.S3Connector:
    given = s3.S3Settings(location=bucket.location, endpoint_url=bucket.endpoint_url, **settings)
    environment = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    return s3.S3Connector(given, Surroundings(folder=tmp_path, addresses=lambda url: [], environment=environment))


def test_what_is_fetched_is_what_was_listed_or_says_what_it_is(bucket: Bucket, tmp_path):
    bucket.put("a.md", "One")
    reader = connector(bucket, tmp_path)
    (item,) = [one.item for one in reader.changes(None) if isinstance(one, Found)]
    assert reader.fetch(item, max_bytes=100).revision == item.revision
    bucket.put("a.md", "Two, and longer")
    fetched = reader.fetch(item, max_bytes=100)
    assert fetched.data == b"Two, and longer" and fetched.revision != item.revision
    assert len(reader.fetch(item, max_bytes=3).data) == 4
    reader.close()


def test_a_server_that_names_objects_without_end_is_left(bucket: Bucket, tmp_path, monkeypatch):
    for number in range(6):
        bucket.put(f"{number}.md", "x")
    monkeypatch.setattr(s3, "_PAGE", 2)
    monkeypatch.setattr(s3, "_MOST_ITEMS", 3)
    told = []
    with pytest.raises(SourceError, match="without end"):
        told.extend(connector(bucket, tmp_path).changes(None))
    assert ListingEnds() not in told


def test_no_request_is_sent_where_the_address_is_refused(bucket: Bucket, dsn: str, tmp_path):
    config = RAGConfig.load(storage={"data_dir": tmp_path / "data", "dsn": dsn}, embedding={"provider": "hashing"})
    with RAGPipeline(config, embedder=HashingEmbedder()) as rag:
        for endpoint in (bucket.endpoint_url, "http://169.254.169.254", "http://[::ffff:127.0.0.1]:80"):
            name = rag.sources.add(bucket.location, name=endpoint, settings={"endpoint_url": endpoint}).name
            with pytest.raises(SourceError, match=r"address|private|loopback|metadata"):
                rag.sources.refresh(name)


def test_the_machines_own_role_is_not_asked_for_unless_it_is_wanted(bucket: Bucket, tmp_path, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(UsageError, match="AWS_ACCESS_KEY_ID is not set"):
        s3.S3Connector(
            s3.S3Settings(location=bucket.location),
            Surroundings(folder=tmp_path, addresses=lambda url: [], environment={}),
        )
    assert s3.S3Settings(location=bucket.location).instance_credentials is False
