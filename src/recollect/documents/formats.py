"""Which files can be read, and how each is told from the others: by name, and by content where the name lies."""

from __future__ import annotations

import io
import re
import zipfile
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from recollect.documents.ocr.readings import can_open_heic, can_recognise
from recollect.installation import install_command

Kind = Literal[
    "pdf",
    "office",
    "html",
    "epub",
    "markdown",
    "text",
    "code",
    "rst",
    "org",
    "table",
    "json",
    "mail",
    "feed",
    "picture",
]


@dataclass(frozen=True, slots=True)
class Format:
    """How a file is read.

    Attributes:
        kind: The parser.
        mime_type: Of the file.
        label: For people: ``a PDF file``.
    """

    kind: Kind
    mime_type: str
    label: str


_OOXML = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."
PDF = Format("pdf", "application/pdf", "a PDF file")
DOCX = Format("office", _OOXML + "wordprocessingml.document", "a Word document")
XLSX = Format("office", _OOXML + "spreadsheetml.sheet", "an Excel workbook")
PPTX = Format("office", _OOXML + "presentationml.presentation", "a PowerPoint presentation")
DOC = Format("office", "application/msword", "a Word 97-2003 document")
XLS = Format("office", "application/vnd.ms-excel", "an Excel 97-2003 workbook")
PPT = Format("office", "application/vnd.ms-powerpoint", "a PowerPoint 97-2003 presentation")
MSG = Format("office", "application/vnd.ms-outlook", "an Outlook message")
ODT = Format("office", _ODF + "text", "an OpenDocument text")
ODS = Format("office", _ODF + "spreadsheet", "an OpenDocument spreadsheet")
RTF = Format("office", "application/rtf", "an RTF document")
EPUB = Format("epub", "application/epub+zip", "an EPUB book")
HTML = Format("html", "text/html", "a web page")
MARKDOWN = Format("markdown", "text/markdown", "a Markdown text")
TEXT = Format("text", "text/plain", "a plain text")
CODE = Format("code", "text/plain", "a source file")
PNG = Format("picture", "image/png", "a PNG image")
JPEG = Format("picture", "image/jpeg", "a JPEG image")
TIFF = Format("picture", "image/tiff", "a TIFF image")
WEBP = Format("picture", "image/webp", "a WebP image")
HEIC = Format("picture", "image/heic", "a HEIC image")
FEED = Format("feed", "application/rss+xml", "a feed")

# Read as they are, without headings.
_CODE_EXTENSIONS = """
adoc ada asm awk bash bat bib c cc cfg clj cljs cmake conf cpp cs css cxx d dart el elm erl ex exs f90 fish fs fsx go
gradle graphql groovy h hh hpp hrl hs hxx ini ipynb java jl js jsonl jsx kt kts less lisp lua m mjs ml mli mm ndjson nim
nix pas php pl pm properties proto ps1 pxd py pyi pyx r rb rs sass scala scm scss sh sol sql srt svelte swift tcl tex tf
toml ts tsx v vb vhd vim vtt vue xml xsl xsd yaml yml zig zsh
"""
# Lock files and scripts of extensions that can be read; "yarn.lock" has none.
_GENERATED = re.compile(
    r"(?:package-lock|npm-shrinkwrap|packages\.lock)\.json|(?:pnpm|conda)-lock\.ya?ml|.*[.-](?:min|bundle)\.(?:[mc]?js|css)"
)
_TEXT_NAMES = "authors changelog contributing copying install license licence news notice readme todo"
_CODE_NAMES = "dockerfile gemfile jenkinsfile justfile makefile procfile rakefile vagrantfile"
_BY_EXTENSION: dict[str, Format] = {
    "pdf": PDF,
    **dict.fromkeys(("docx", "docm", "dotx"), DOCX),
    **dict.fromkeys(("xlsx", "xlsm"), XLSX),
    **dict.fromkeys(("pptx", "pptm", "ppsx"), PPTX),
    "doc": DOC,
    "xls": XLS,
    "ppt": PPT,
    "msg": MSG,
    "odt": ODT,
    "ods": ODS,
    "rtf": RTF,
    "epub": EPUB,
    **dict.fromkeys(("html", "htm", "xhtml"), HTML),
    **dict.fromkeys(("rss", "atom"), FEED),
    **dict.fromkeys(("md", "markdown", "mdown", "mkd"), MARKDOWN),
    **dict.fromkeys(("txt", "text", "log"), TEXT),
    **dict.fromkeys(("rst", "rest"), Format("rst", "text/x-rst", "a reStructuredText")),
    "org": Format("org", "text/org", "an Org text"),
    "csv": Format("table", "text/csv", "a CSV table"),
    "tsv": Format("table", "text/tab-separated-values", "a TSV table"),
    "json": Format("json", "application/json", "a JSON file"),
    "eml": Format("mail", "message/rfc822", "an e-mail"),
    **dict.fromkeys(_CODE_EXTENSIONS.split(), CODE),
}
_SHORT_BYTES = 64 << 10
_PLAIN = frozenset({"markdown", "text", "code", "rst", "org"})
_BY_NAME = dict.fromkeys(_TEXT_NAMES.split(), TEXT) | dict.fromkeys(_CODE_NAMES.split(), CODE)
_BY_MIME = {known.mime_type: known for known in reversed(_BY_EXTENSION.values()) if known is not CODE}

_HEIC_NAMES = frozenset({"heic", "heif"})
_PICTURE_NAMES = frozenset({"png", "jpg", "jpeg", "jpe", "tif", "tiff", "webp", *_HEIC_NAMES})
_PICTURES = (
    (b"\x89PNG\r\n", PNG),
    (b"\xff\xd8\xff", JPEG),
    (b"II*\0", TIFF),
    (b"MM\0*", TIFF),
)
_HEIC = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"})
_FOREIGN = (
    (b"GIF8", "a GIF image"),
    (b"\x7fELF", "a program"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\xca\xfe\xba\xbe", "a program"),
    (b"ID3", "an audio file"),
    (b"OggS", "an audio file"),
    (b"fLaC", "an audio file"),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
#: What unpacking an office file may take; more is a decompression bomb or of no use as text.
_MAX_UNPACKED = 1 << 30


class UnreadableError(ValueError):
    """The file cannot be read as a document; the message says why, for a person."""


def format_of_name(name: str) -> Format | None:
    """The format that a file name promises, or None where none is known."""
    path = PurePath(name.lower())
    return _BY_EXTENSION.get(path.suffix[1:]) if path.suffix else _BY_NAME.get(path.name)


def format_of_type(mime_type: str) -> Format | None:
    """The format that a MIME type names, or None where it is no document's."""
    return _BY_MIME.get(mime_type.split(";")[0].strip().lower())


def is_picture_name(name: str) -> bool:
    """Whether a file name promises a picture whose text can be recognised."""
    return PurePath(name.lower()).suffix[1:] in _PICTURE_NAMES


def is_generated_name(name: str) -> bool:
    """Whether a file of this name is written by a program for programs: a lock file, or a minified script or style."""
    return bool(_GENERATED.fullmatch(name.lower()))


def can_read_name(name: str) -> bool:
    """Whether a file of this name can be read here: pictures with the extras ``ocr`` and ``heic`` alone."""
    if not is_picture_name(name):
        return format_of_name(name) is not None
    return can_recognise() and (PurePath(name.lower()).suffix[1:] not in _HEIC_NAMES or can_open_heic())


def picture_extra(name: str) -> str:
    """What to install for a file whose name promises a picture that cannot be read here."""
    is_heic = PurePath(name.lower()).suffix[1:] in _HEIC_NAMES
    return install_command("heic" if is_heic and not can_open_heic() else "ocr")


def detect(data: bytes, *, name: str, mime_type: str | None = None) -> Format:
    """The format of a file: its name or MIME type, corrected by its first bytes.

    Args:
        data: The whole file.
        name: Its name; only the extension counts.
        mime_type: Wins over the name, where it is a type that can be read.

    Raises:
        UnreadableError: The content is an image, a program, an archive or something else that holds no text.
    """
    promised = format_of_type(mime_type or "") or format_of_name(name)
    found = _sniff(data)
    if found is not None:
        return found
    if promised is None:
        if is_picture_name(name) and not data.isascii():
            raise UnreadableError("is no picture: it is damaged, or its name has the wrong extension")
        return TEXT
    if promised.kind not in {"pdf", "office", "epub"}:
        return promised
    head = data[:4096].lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return HTML
    if promised in {DOC, RTF, XLS} and b"\0" not in data[:4096]:
        return TEXT
    raise UnreadableError(f"is not {promised.label}: it is damaged, or its name has the wrong extension")


def is_plain(data: bytes, *, name: str, mime_type: str | None = None) -> bool:
    """Whether a file is a short text that is read as it stands: then nothing in it can make that long.

    What the most contrived headings take is in proportion to the size, but 30 s a megabyte.

    Raises:
        UnreadableError: As `detect`, as far as the first bytes tell.
    """
    if len(data) > _SHORT_BYTES or data.startswith((b"PK\x03\x04", _OLE)):
        return False  # what is packed inside is not looked at here
    return detect(data, name=name, mime_type=mime_type).kind in _PLAIN


def _sniff(data: bytes) -> Format | None:
    """The format that the first bytes prove, or None where they prove nothing."""
    head = data[:1024]
    if head.startswith(b"PK\x03\x04"):
        return _sniff_zip(data)
    if head.startswith(_OLE):
        return _sniff_ole(data)
    if head.lstrip().startswith(b"{\\rtf"):
        return RTF
    if head.lstrip(b"\xef\xbb\xbf \t\r\n\0").startswith(b"%PDF-") or (b"%PDF-" in head and b"\0" in data[:65_536]):
        return PDF
    if (picture := _sniff_picture(head)) is not None:
        if not can_recognise():
            raise UnreadableError(f"is {picture.label}; {install_command('ocr')} reads the text in pictures")
        return picture
    for magic, label in _FOREIGN:
        if head.startswith(magic) and (len(magic) > 4 or b"\0" in head or not head.isascii()):
            raise UnreadableError(f"is {label}; documents with text can be read")
    return None


def _sniff_picture(head: bytes) -> Format | None:
    """The format of a picture.

    Raises:
        UnreadableError: It is one that is not read.
    """
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return WEBP
    if head[4:8] == b"ftyp" and head[8:12] in _HEIC:
        if not can_open_heic():
            raise UnreadableError(
                f"is a HEIC image; {install_command('heic')} reads the text in such pictures, or save it as JPEG"
            )
        return HEIC
    if not any(head.startswith(magic) for magic, _ in _PICTURES) or (b"\0" not in head and head.isascii()):
        return None
    return next(known for magic, known in _PICTURES if head.startswith(magic))


def _sniff_zip(data: bytes) -> Format:
    try:
        mime_type, names, encrypted = _zip_facts(data)
    except UnreadableError:
        raise
    except Exception as error:  # zlib.error, struct.error and whatever else a hostile archive provokes
        raise UnreadableError("is damaged: its packed parts cannot be read") from error
    if encrypted:
        raise UnreadableError("is protected by a password; save it without one")
    for known in (ODT, ODS, EPUB):
        if mime_type.startswith(known.mime_type):
            return known
    for part, known in (("word/document.xml", DOCX), ("xl/workbook.xml", XLSX), ("ppt/presentation.xml", PPTX)):
        if part in names:
            return known
    if "META-INF/container.xml" in names:
        return EPUB
    raise UnreadableError("is a ZIP archive; unpack it to read the documents inside")


def _zip_facts(data: bytes) -> tuple[str, set[str], bool]:
    """The content of the ``mimetype`` part, the names of all parts, and whether any is encrypted."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        names = {entry.filename for entry in entries}
        if sum(entry.file_size for entry in entries) > _MAX_UNPACKED:
            raise UnreadableError(f"unpacks to more than {_MAX_UNPACKED >> 20} MiB")
        if any(entry.flag_bits & 1 for entry in entries):
            return "", names, True
        mime_type = archive.read("mimetype")[:100].decode("ascii", "replace").strip() if "mimetype" in names else ""
        manifest = archive.read("META-INF/manifest.xml") if "META-INF/manifest.xml" in names else b""
    return mime_type, names, b"encryption-data" in manifest


def _sniff_ole(data: bytes) -> Format:
    for stream, known in (
        ("EncryptedPackage", None),
        ("WordDocument", DOC),
        ("PowerPoint Document", PPT),
        ("Workbook", XLS),
        ("Book", XLS),
        ("__substg1.0_", MSG),
    ):
        if stream.encode("utf-16-le") in data:
            if known is None:
                raise UnreadableError("is protected by a password; save it without one")
            return known
    raise UnreadableError("is a damaged or unknown Office 97-2003 file")
