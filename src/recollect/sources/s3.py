"""Buckets of Amazon S3, and of whatever speaks its protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from recollect.errors import ConfigurationError, ParseError, RecollectError, SourceError, UsageError
from recollect.installation import install_command
from recollect.sources.base import (
    RULES_BYTES,
    Change,
    Checkpoint,
    ConnectorSettings,
    Content,
    Found,
    GrantRules,
    Item,
    ItemGoneError,
    ItemLeftOutError,
    ListingBegins,
    ListingEnds,
    SecretReference,
    Surroundings,
)

try:
    import boto3
    import botocore
    from botocore import exceptions as boto_errors
    from botocore.config import Config
except ImportError as exc:  # pragma: no cover - the tests have it
    raise ConfigurationError(f"The package boto3 is needed for buckets. Install it: {install_command('s3')}") from exc

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest

_PAGE = 1_000
# A server that goes on naming keys without end must not be listened to without end.
_MOST_ITEMS = 5_000_000
_REFUSED = {
    *("AccessDenied", "AllAccessDisabled", "AccountProblem", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken"),
    *(
        "NoSuchBucket",
        "InvalidBucketName",
        "PermanentRedirect",
        "SignatureDoesNotMatch",
        "AuthorizationHeaderMalformed",
    ),
    *("Forbidden", "403", "404", "NotFound", "301", "MethodNotAllowed", "RequestTimeTooSkewed"),
}
_ARCHIVED = {"InvalidObjectState"}
_GONE = {"NoSuchKey", "NoSuchVersion", "404", "NotFound"}


class S3Settings(ConnectorSettings):
    """What is read of a bucket (``s3://BUCKET/PREFIX``), and how.

    Attributes:
        endpoint_url: Of another server than Amazon's.
        region: None: as the environment says, else us-east-1.
        path_style: Whether the bucket stands in the path, not in the host's name; None: with an ``endpoint_url``.
        access_key: ``env:NAME``; with ``secret_key``, and ``session_token`` where there is one.
        profile: A profile of the shared credentials file, in place of keys.
        anonymous: The bucket is everybody's: requests are not signed.
        instance_credentials: Take what the machine's own role allows, from its metadata service.
        customer_key: ``env:NAME``: the key that objects are encrypted with (SSE-C).
        grants_file: The key of an object with rules, below the prefix; it counts before ``grants``.
        grants_tag: The tag of an object whose value names who may read it, with spaces between; ``-role:x`` denies.
    """

    endpoint_url: str | None = None
    region: str | None = None
    path_style: bool | None = None
    access_key: SecretReference = "env:AWS_ACCESS_KEY_ID"
    secret_key: SecretReference = "env:AWS_SECRET_ACCESS_KEY"
    session_token: SecretReference | None = None
    profile: str | None = None
    anonymous: bool = False
    instance_credentials: bool = False
    customer_key: SecretReference | None = None
    grants_file: str | None = None
    grants_tag: str | None = Field(None, min_length=1, max_length=128)

    @field_validator("location")
    @classmethod
    def _bucket(cls, location: str) -> str:
        parts = urlsplit(location)
        if parts.scheme != "s3" or not parts.netloc or "@" in parts.netloc:
            raise ValueError("a bucket is named s3://BUCKET or s3://BUCKET/PREFIX")
        return location

    @field_validator("endpoint_url")
    @classmethod
    def _endpoint(cls, url: str | None) -> str | None:
        if url is not None:
            parts = urlsplit(url)
            if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query:
                raise ValueError("an endpoint is http(s)://HOST or http(s)://HOST:PORT, without credentials")
        return url

    @property
    def bucket(self) -> str:
        """Its name."""
        return urlsplit(self.location).netloc

    @property
    def prefix(self) -> str:
        """What the keys begin with that are read."""
        return self.location.partition("://")[2].partition("/")[2]


class S3Connector:
    """Lists, fetches and judges the objects of a bucket below a prefix.

    An object's URI is its key behind the prefix's last slash, its revision the ETag. Each run lists all of them; an
    interrupted one goes on behind the last key that it had come to.

    Args:
        settings: Which bucket, and how.
        surroundings: What it may use.
    """

    Settings: ClassVar[type[ConnectorSettings]] = S3Settings

    def __init__(self, settings: S3Settings, surroundings: Surroundings) -> None:
        self._settings = settings
        self._base = settings.prefix[: settings.prefix.rfind("/") + 1]
        self._rules = GrantRules.read(settings.grants)
        self._rules_key = None if settings.grants_file is None else self._base + settings.grants_file
        self._customer = _customer_key(settings, surroundings)
        self._client = _client(settings, surroundings)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def changes(self, cursor: str | None) -> Iterator[Change]:
        """As `Connector.changes`; the cursor is the key that an interrupted listing had come to."""
        self._read_rules()
        after = _after(cursor)
        if after is None:
            yield ListingBegins()
        named, token = 0, None
        while True:
            page = self._page(after, token)
            for one in page.get("Contents", ()):
                # A key that ends with a slash stands for a folder; who may read what is no document.
                if not one["Key"].endswith("/") and one["Key"] != self._rules_key:
                    yield Found(self._item(one))
            named += len(page.get("Contents", ()))
            if not page.get("IsTruncated"):
                break
            following = page.get("NextContinuationToken")
            if following in {None, token} or named > _MOST_ITEMS:
                raise self._error("its server names objects without end", retryable=False)
            token = following
            if page.get("Contents"):
                yield Checkpoint(json.dumps({"after": page["Contents"][-1]["Key"]}))
        yield ListingEnds()
        yield Checkpoint(None)

    def fetch(self, item: Item, *, max_bytes: int) -> Content:
        """As `Connector.fetch`: what was listed, or what has come in its place meanwhile."""
        try:
            with self._told(item):
                reply = self._get(item.key, IfMatch=f'"{item.revision}"')
        except _ChangedError:
            with self._told(item):
                reply = self._get(item.key)
        with self._told(item), reply["Body"] as body:
            data = body.read(max_bytes + 1)
        return Content(
            data=data,
            content_type=reply.get("ContentType"),
            metadata={"modified": reply["LastModified"].isoformat()} if "LastModified" in reply else {},
            revision=_revision(reply),
        )

    def grants(self, item: Item) -> tuple[str, ...] | None:
        """As `Connector.grants`: the object's tag, else the last rule that matches."""
        if self._settings.grants_tag is not None:
            with self._told(item):
                reply = self._client.get_object_tagging(Bucket=self._settings.bucket, Key=item.key)
            for tag in reply.get("TagSet", ()):
                if tag["Key"] == self._settings.grants_tag:
                    return _tagged(tag["Value"], item)
        return self._rules.of(item.uri)

    def _page(self, after: str | None, token: str | None) -> Mapping[str, Any]:
        how: dict[str, str] = {"ContinuationToken": token} if token else {"StartAfter": after} if after else {}
        with self._told(None):
            page: Mapping[str, Any] = self._client.list_objects_v2(
                Bucket=self._settings.bucket, Prefix=self._settings.prefix, MaxKeys=_PAGE, **how
            )
        return page

    def _item(self, listed: Mapping[str, Any]) -> Item:
        key: str = listed["Key"]
        return Item(
            uri=key[len(self._base) :],
            revision=_revision(listed),
            size=listed.get("Size"),
            modified=listed.get("LastModified"),
            key=key,
        )

    def _get(self, key: str, **how: str) -> Mapping[str, Any]:
        reply: Mapping[str, Any] = self._client.get_object(
            Bucket=self._settings.bucket, Key=key, **how, **self._customer
        )
        return reply

    def _read_rules(self) -> None:
        """The rules of the bucket itself. What cannot be read is no reason to let everybody read everything."""
        name = self._settings.grants_file
        if name is None:
            return
        with self._told(None):
            try:
                data = self._get(str(self._rules_key))["Body"].read(RULES_BYTES + 1)
            except boto_errors.ClientError as exc:
                if _code(exc) in _GONE:
                    raise self._error(f"it has no {name!r}, which says who may read it", retryable=False) from exc
                raise
        self._rules = GrantRules.with_file(self._settings, name, data)

    @contextmanager
    def _told(self, item: Item | None) -> Iterator[None]:
        """Foreign errors as ours; ``item``: what is about it alone is its own. What the server says is not repeated."""
        try:
            yield
        except boto_errors.ClientError as exc:
            raise self._client_error(exc, item) from exc
        except (
            boto_errors.NoCredentialsError,
            boto_errors.PartialCredentialsError,
            boto_errors.ProfileNotFound,
        ) as exc:
            raise self._error("there are no credentials for it", retryable=False) from exc
        except (boto_errors.BotoCoreError, OSError) as exc:
            raise self._error(
                f"its server does not answer as it should ({type(exc).__name__})", retryable=True
            ) from exc

    def _client_error(self, exc: boto_errors.ClientError, item: Item | None) -> Exception:
        code = _code(exc)
        if item is not None:
            if code in {"PreconditionFailed", "412"}:
                return _ChangedError()
            if code in _GONE:
                return ItemGoneError()
            if code in _ARCHIVED:
                return ItemLeftOutError("is archived: restore it to have it read")
            if code in {"AccessDenied", "403", "Forbidden", "InvalidRequest"}:
                return ParseError(item.uri, f"the bucket's server refuses to hand it out ({code})")
        status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        refused = code in _REFUSED or (400 <= status < 500 and status not in {408, 429})
        return self._error(f"its server refused the request ({code})", retryable=not refused)

    def _error(self, reason: str, *, retryable: bool) -> SourceError:
        return SourceError(self._settings.location, reason, retryable=retryable)


class _ChangedError(Exception):
    """Another object has come in its place."""


def _client(settings: S3Settings, surroundings: Surroundings) -> Any:  # noqa: ANN401 - boto3 makes its classes as it runs
    path_style = settings.path_style if settings.path_style is not None else settings.endpoint_url is not None
    config = Config(
        signature_version=botocore.UNSIGNED if settings.anonymous else "s3v4",
        s3={"addressing_style": "path" if path_style else "auto"},
        connect_timeout=surroundings.timeout_seconds,
        read_timeout=surroundings.timeout_seconds,
        retries={"mode": "standard", "total_max_attempts": 3},
        # The settings say where requests go, not a variable or a file that whoever reads them does not see.
        ignore_configured_endpoint_urls=True,
    )
    try:
        session = boto3.session.Session(
            **_credentials(settings, surroundings), region_name=settings.region or "us-east-1"
        )
        client = session.client("s3", endpoint_url=settings.endpoint_url, config=config)
    except (boto_errors.BotoCoreError, ValueError) as exc:
        raise UsageError(f"The bucket's settings are not valid: {type(exc).__name__}.") from exc
    client.meta.events.register("before-send.s3", _checking(surroundings.addresses))
    return client


def _credentials(settings: S3Settings, surroundings: Surroundings) -> dict[str, str]:
    if settings.profile is not None:
        return {"profile_name": settings.profile}
    if settings.anonymous or settings.instance_credentials:
        return {}
    # Given outright, so that boto3 looks nowhere else: not in files, not in the machine's metadata service.
    keys = {
        "aws_access_key_id": surroundings.secret(settings.access_key),
        "aws_secret_access_key": surroundings.secret(settings.secret_key),
    }
    if settings.session_token is not None:
        keys["aws_session_token"] = surroundings.secret(settings.session_token)
    return keys


def _checking(addresses: Callable[[str], object]) -> Callable[..., None]:
    """Looks at where each request goes, those that follow a redirection included."""

    def check(request: AWSPreparedRequest, **_: Any) -> None:  # noqa: ANN401 - what botocore tells beside it
        addresses(request.url)

    return check


def _customer_key(settings: S3Settings, surroundings: Surroundings) -> dict[str, str]:
    if settings.customer_key is None:
        return {}
    return {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": surroundings.secret(settings.customer_key)}


def _after(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    try:
        after = json.loads(cursor)["after"]
    except (ValueError, KeyError, TypeError):
        return None
    return after if isinstance(after, str) else None


def _revision(told: Mapping[str, Any]) -> str:
    etag = str(told.get("ETag") or "").strip('"')
    return etag or f"{told.get('Size', told.get('ContentLength'))}-{told.get('LastModified')}"


def _tagged(value: str, item: Item) -> tuple[str, ...]:
    # A tag's value may hold no exclamation mark.
    words = [f"!{word[1:]}" if word.startswith("-") else word for word in value.split()]
    try:
        return GrantRules.read([f"* {' '.join(words)}"]).rules[0][1]
    except RecollectError as exc:
        raise ParseError(item.uri, f"its tag names no grants: {exc}") from exc


def _code(exc: boto_errors.ClientError) -> str:
    return str(exc.response.get("Error", {}).get("Code", ""))
