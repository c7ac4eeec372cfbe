"""Connection strings, checked before libpq reads them: its messages quote what it does not understand."""

from __future__ import annotations

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recollect.errors import StoreUnavailableError

#: The role that the program works as: it owns nothing, so that row-level security binds it.
APPLICATION_ROLE = "recollect_app"

_SCHEMES = ("postgresql://", "postgres://")


def require_dsn(dsn: str) -> str:
    """A connection string that libpq reads as it was meant, as far as that can be seen.

    Raises:
        StoreUnavailableError: It is none, or a character of its password ends the password early. Nothing of it is
            quoted.
    """
    try:
        read = conninfo_to_dict(dsn)
    except (ProgrammingError, ValueError, TypeError):
        # Not `from exc`: a traceback would show the cause, which quotes a part of the password.
        raise _malformed() from None
    ports = str(read.get("port", "")).split(",")
    if "\0" in dsn or _cut_short(dsn) or not all(port.isdecimal() or not port for port in ports):
        raise _malformed()
    return dsn


def application_dsn(dsn: str) -> str:
    """The same database, to be logged into as the role that owns nothing; the embedded server lets it in."""
    return make_conninfo(dsn, user=APPLICATION_ROLE)


def _cut_short(dsn: str) -> bool:
    """Whether an ``@`` or ``/`` of a URL's password was taken for the one behind the password."""
    scheme = next((scheme for scheme in _SCHEMES if dsn.startswith(scheme)), None)
    if scheme is None:
        return False
    authority, _, rest = dsn.removeprefix(scheme).partition("/")
    return authority.count("@") > 1 or ("@" in rest and bool(authority) and "@" not in authority)


def _malformed() -> StoreUnavailableError:
    return StoreUnavailableError(
        "Not a PostgreSQL DSN (it is not shown, because it may hold a password). It reads "
        "postgresql://user:password@host:5432/database or key=value pairs. In a URL, write @ / : and % of a password "
        "as %40 %2F %3A and %25; between key=value pairs, quote a value that has blanks: password='my secret'."
    )
