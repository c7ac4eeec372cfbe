"""Questions with their passages and answers: read from public data sets, and made from documentation."""

from __future__ import annotations

import hashlib
import json
import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = json.loads((HERE / "sources.json").read_text())

LONGEST_PASSAGE = 1000
_LONGEST_ANSWER = 420


@dataclass(frozen=True, slots=True)
class Triple:
    """A question, a passage and its answer.

    Attributes:
        family: The data set or repository.
        document: Passages of one document share it.
        kind: Of the fact, for instance ``"label"``.
        heading: The passage's path of headings.
        passage: The text.
        question: In any wording.
        start: Where the answer begins in the passage.
        end: Where it ends.
        cut: The stretch of the passage without which the question has no answer.
        about: What the question is about if that stands in the heading; empty: the passage says it.
    """

    family: str
    document: str
    kind: str
    heading: str
    passage: str
    question: str
    start: int
    end: int
    cut: tuple[int, int]
    about: str = ""


def read_source(mirror: Path, source: dict[str, str], path: str) -> str:
    """A file of a source at its recorded commit."""
    folder = mirror / source["repository"].replace("/", "+") / "repo"
    command = ["git", f"--git-dir={folder}", "show", f"{source['commit']}:{path}"]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")


def list_source(mirror: Path, source: dict[str, str]) -> list[str]:
    """The paths of a source at its recorded commit."""
    folder = mirror / source["repository"].replace("/", "+") / "repo"
    command = ["git", f"--git-dir={folder}", "ls-tree", "-r", "--name-only", source["commit"]]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()


def sentences(text: str) -> list[tuple[int, int]]:
    """Where sentences or lines begin and end; good enough to cut them out."""
    ends = [match.end() for match in re.finditer(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+", text)]
    starts = [0, *ends]
    return [(start, end) for start, end in zip(starts, [*ends, len(text)], strict=True) if end > start]


# Data sets in SQuAD's format.


def squad_triples(mirror: Path, source: dict[str, str], path: str) -> Iterator[Triple]:
    """The triples of one file; checks its hash."""
    text = read_source(mirror, source, path)
    found = hashlib.sha256(text.encode()).hexdigest()
    if found != source["files"][path]:
        raise SystemExit(f"{source['repository']}:{path} has the SHA-256 {found}")
    articles = json.loads(text)["data"]
    for number, article in enumerate(articles):
        title = article.get("title") or ""
        wiki = "new_wiki" in path
        for at, paragraph in enumerate(article["paragraphs"]):
            # Comments and reviews have no document around them.
            document = f"{path}/{number}" if len(article["paragraphs"]) < 400 else f"{path}/{number}/{at}"
            for asked in paragraph["qas"]:
                texts = Counter(answer["text"].strip() for answer in asked["answers"] if answer["text"].strip())
                if not texts:
                    continue
                text = texts.most_common(1)[0][0]
                start = next(a["answer_start"] for a in asked["answers"] if a["text"].strip() == text)
                triple = _from_context(paragraph["context"], start, text)
                if triple is None:
                    continue
                passage, start, end = triple
                cut = _sentences_of(passage, start, end)
                heading = title.replace("_", " ") if wiki else title if "PolicyQA" in source["repository"] else ""
                name = (
                    path.rsplit("/", 1)[-1].split("_v1")[0] if source["family"] == "squadshifts" else source["family"]
                )
                yield Triple(name, document, "sentence", heading, passage, asked["question"].strip(), start, end, cut)


def _from_context(context: str, start: int, text: str) -> tuple[str, int, int] | None:
    """A passage of bounded length around the answer."""
    start = context.find(text, max(0, start - 3))
    if start < 0 or len(text) > _LONGEST_ANSWER:
        return None
    low, high = 0, len(context)
    if len(context) > LONGEST_PASSAGE + 200:
        before = random.Random(start).randrange(100, LONGEST_PASSAGE - len(text) - 50)
        spans = sentences(context)
        low = min((s for s, _ in spans if s >= start - before), default=0)
        low = min(low, max(s for s, _ in spans if s <= start))
        high = max((e for _, e in spans if e <= low + LONGEST_PASSAGE), default=0)
        high = max(high, min(e for _, e in spans if e >= start + len(text)))
    passage = context[low:high]
    if len(passage) > LONGEST_PASSAGE + 400:
        return None
    start -= low
    return passage, start, start + len(text)


def _sentences_of(passage: str, start: int, end: int) -> tuple[int, int]:
    touched = [(s, e) for s, e in sentences(passage) if s < end and e > start]
    return touched[0][0], touched[-1][1]


# Documentation in Markdown.

_HEADING = re.compile(r"^(#{1,4})\s+(.+?)\s*#*\s*$")
_FRONT = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_TITLE = re.compile(r"^title:\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE)
_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+(.*)$")
_LABEL = re.compile(
    r"^\s*(?:[-*+]\s+)?(?:\*\*|__)?([A-Z][\w /'-]{2,32}?)(?:\*\*|__)?\s*:\s*(?:\*\*|__)?\s*(\S.{1,140})$"
)
_TERM = re.compile(r"^\s*(?:[-*+]\s+)?(`[^`]{2,40}`|\*\*[^*]{2,40}\*\*)\s*(?::|-|–|—)+\s*(\S.{8,200})$")
_ROW = re.compile(r"^\s*\|(.+)\|\s*$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|\[([^\]]*)\]\[[^\]]*\]|<[^>]{1,200}>|\{[{%].*?[}%]\}|\{:.*?\}")
_MARKS = re.compile(r"[*_`]{1,3}")
_NO_LABEL = {
    "note",
    "example",
    "examples",
    "warning",
    "tip",
    "important",
    "see",
    "usage",
    "https",
    "http",
    "todo",
    "caution",
}
_PERSON = re.compile(
    r"owner|lead|chair|contact|maintainer|author|responsible|manager|editor|dri|reviewer|sponsor|point", re.IGNORECASE
)
_TIME = re.compile(r"date|time|deadline|when|schedule|due|released?$|start|expir", re.IGNORECASE)
_PLACE = re.compile(r"location|channel|url|link|where|repo|path|address|slack|mailing|website", re.IGNORECASE)


@dataclass(slots=True)
class _Section:
    path: tuple[str, ...]
    lines: list[str]


def plain(text: str) -> str:
    """Markdown without its marks, for questions."""
    text = _LINK.sub(lambda match: match[1] or match[2] or " ", text)
    return re.sub(r"\s+", " ", _MARKS.sub("", text)).strip(" .:#")


def documentation_triples(mirror: Path, source: dict[str, str], dice: random.Random) -> list[Triple]:
    """Triples made from a repository's Markdown."""
    wanted = re.compile(source["paths"])
    paths = [path for path in list_source(mirror, source) if wanted.search(path)]
    dice.shuffle(paths)
    found: list[Triple] = []
    for path in paths[: source.get("most_files", 400)]:
        text = read_source(mirror, source, path)
        make = _tldr if source["family"] == "tldr" else _of_document
        made = list(make(source["family"], path, text, dice))
        # Long documents hold hundreds of the same form.
        dice.shuffle(made)
        found.extend(made[:40])
    return found


def _sections(path: str, text: str) -> Iterator[_Section]:
    front = _FRONT.match(text)
    title = None
    if front:
        title = _TITLE.search(front[1])
        text = text[front.end() :]
    name = path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    if name.lower() in {"readme", "index", "_index"}:
        name = path.rsplit("/", 2)[-2] if "/" in path else name
    stack: list[tuple[int, str]] = [(0, plain(title[1]) if title else name.replace("-", " ").replace("_", " "))]
    section, fenced = _Section((stack[0][1],), []), False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        heading = None if fenced else _HEADING.match(line)
        if heading:
            yield section
            level = len(heading[1])
            stack = [one for one in stack if one[0] < level or one[0] == 0]
            stack.append((level, plain(heading[2])))
            section = _Section(tuple(one for _, one in stack), [line])
        else:
            section.lines.append(line)
    yield section


def _blocks(lines: list[str]) -> list[str]:
    """Blocks between empty lines; code in fences is one block."""
    blocks: list[list[str]] = [[]]
    fenced = False
    for line in lines:
        if _FENCE.match(line):
            fenced = not fenced
        if not line.strip() and not fenced:
            if blocks[-1]:
                blocks.append([])
        else:
            blocks[-1].append(line.rstrip())
    return ["\n".join(block) for block in blocks if block]


def _of_document(family: str, path: str, text: str, dice: random.Random) -> Iterator[Triple]:
    for section in _sections(path, text):
        passages: list[list[str]] = [[]]
        for block in _blocks(section.lines):
            if len(block) > LONGEST_PASSAGE:
                continue
            if sum(map(len, passages[-1])) + len(block) > dice.choice((500, 800, LONGEST_PASSAGE)):
                # A line that leads to what follows stays with it.
                lead = [passages[-1].pop()] if passages[-1] and passages[-1][-1].rstrip().endswith(":") else []
                passages.append(lead)
            passages[-1].append(block)
        for blocks in passages:
            passage = "\n\n".join(blocks)
            if 60 <= len(passage) <= LONGEST_PASSAGE + 400 and sum(not one.isascii() for one in passage) < 20:
                heading = " > ".join(section.path)
                about = section.path[-1]
                for kind, question, start, end, cut, named in _facts(passage, about, dice):
                    if 0 < end - start <= _LONGEST_ANSWER and len(question) > 5:
                        yield Triple(
                            family, path, kind, heading, passage, question, start, end, cut, about if named else ""
                        )


_Fact = tuple[str, str, int, int, tuple[int, int], bool]


_CODE = re.compile(r"^[ \t]*```.*?(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)


def _facts(passage: str, about: str, dice: random.Random) -> Iterator[_Fact]:
    prose = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), passage)
    yield from _labels(prose, about, dice)
    yield from _terms(prose, dice)
    yield from _tables(prose, dice)
    yield from _lists(prose, about, dice)
    yield from _commands(passage, about, dice)
    yield from _questions(passage, about)


def _lines(passage: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in passage.split("\n"):
        yield at, line
        at += len(line) + 1


def _labels(passage: str, about: str, dice: random.Random) -> Iterator[_Fact]:
    for at, line in _lines(passage):
        match = _LABEL.match(line)
        if not match or match[1].lower() in _NO_LABEL or line.lstrip().startswith(("|", "#", "`")):
            continue
        label, value = match[1].strip(), match[2].strip()
        if len(label.split()) > 4 or value.startswith(("//", "|")):
            continue
        named = dice.random() < 0.6
        question = label_question(label, about if named else "", dice)
        start = at + match.start(2)
        yield "label", question, start, start + len(value), (at, at + len(line) + 1), named


def label_question(label: str, about: str, dice: random.Random) -> str:
    """Ask for a label's value in one of many wordings."""
    name = label.lower() if not label.isupper() else label
    of = dice.choice((f" of {about}", f" for {about}", f" in {about}")) if about else ""
    forms = [f"What is the {name}{of}?", f"What's the {name}{of}?", f"{name}{of}", f"Which {name}{of}?", f"Tell me the {name}{of}.",
             f"What {name} is given{of}?", f"Can you tell me the {name}{of}?", f"{about} {name}" if about else f"{name}?"]  # fmt: skip
    if _PERSON.search(name):
        on = of.replace(" in ", " for ")
        forms += [f"Who is the {name}{on}?", f"Who is {name}{on}?", f"Who are the {name}{on}?"] * 3
        if about and re.search(r"owner|lead|contact|responsible", name):
            verb = {"owner": "owns", "lead": "leads"}.get(name.split()[-1], "is responsible for")
            forms += [f"Who {verb} {about}?", f"Whom do I contact about {about}?", f"Who is in charge of {about}?"] * 3
    elif _TIME.search(name):
        forms += [f"When is the {name}{of}?", f"When is {name}{of}?"] * 3
    elif _PLACE.search(name):
        forms += [f"Where is the {name}{of}?", f"Where can I find the {name}{of}?"] * 3
    return dice.choice(forms)


def _terms(passage: str, dice: random.Random) -> Iterator[_Fact]:
    for at, line in _lines(passage):
        match = _TERM.match(line)
        if not match:
            continue
        term, text = plain(match[1]), match[2].strip()
        if not term or len(plain(text)) < 8:
            continue
        cut = (at, at + len(line) + 1)
        if dice.random() < 0.6:
            forms = (
                f"What does {term} do?",
                f"What is {term}?",
                f"What is {term} for?",
                f"What does {term} mean?",
                f"{term} meaning",
                f"What is meant by {term}?",
                f"{term}",
                f"Explain {term}",
            )
            start = at + match.start(2)
            yield "term", dice.choice(forms), start, start + len(text), cut, False
        else:
            gist = _decapitalise(plain(re.split(r"(?<=[.;])\s", text)[0]))
            gist = re.sub(r"^(?:the|a|an|this|it|specifies|defines|sets) ", "", gist)
            if len(gist.split()) > 14 or len(gist) < 8:
                continue
            forms = (
                f"Which option is for {gist}?",
                f"What is the name for {gist}?",
                f"{gist}",
                f"Which setting: {gist}?",
                f"What do you call {gist}?",
                f"Which one means {gist}?",
            )
            start = at + match.start(1)
            yield "term", dice.choice(forms), start, start + len(match[1]), cut, False


def _cells(line: str) -> list[tuple[int, str]]:
    found, at = [], line.index("|") + 1
    for cell in line[at : line.rindex("|")].split("|"):
        stripped = cell.strip()
        found.append((at + len(cell) - len(cell.lstrip()), stripped))
        at += len(cell) + 1
    return found


def _tables(passage: str, dice: random.Random) -> Iterator[_Fact]:
    header: list[str] | None = None
    for at, line in _lines(passage):
        if not _ROW.match(line):
            header = None
            continue
        cells = _cells(line)
        if header is None:
            header = [plain(cell) for _, cell in cells]
        elif not set(line) <= set("|-: \t") and len(cells) == len(header) > 1 and cells[0][1]:
            column = dice.randrange(1, len(cells))
            offset, value = cells[column]
            row, name = plain(cells[0][1]), header[column]
            if len(value) < 1 or not row or not name or len(row) > 60 or value in {"-", "—"}:
                continue
            lower = name.lower()
            forms = [f"What is the {lower} of {row}?", f"What is the {lower} for {row}?", f"{row} {lower}", f"Which {lower} does {row} have?",
                     f"{lower} of {row}", f"What {lower} applies to {row}?", f"For {row}, what is the {lower}?", f"Tell me the {lower} of {row}",
                     f"What's {row}'s {lower}?"]  # fmt: skip
            if re.search("default", lower):
                forms += [
                    f"What is the default of {row}?",
                    f"What does {row} default to?",
                    f"What is {row} by default?",
                ] * 2
            if re.search("descr|meaning|purpose|explan", lower):
                forms += [
                    f"What is {row}?",
                    f"What does {row} do?",
                    f"What does {row} mean?",
                    f"What is {row} for?",
                ] * 3
            if _PERSON.search(lower):
                forms += [f"Who is the {lower} of {row}?"] * 4
            start = at + offset
            yield "table", dice.choice(forms), start, start + len(value), (at, at + len(line) + 1), False


def _decapitalise(text: str) -> str:
    return text[:1].lower() + text[1:] if text[:2].istitle() or text[1:2] == " " else text


def _lists(passage: str, about: str, dice: random.Random) -> Iterator[_Fact]:
    blocks = list(re.finditer(r"[^\n](?:.|\n(?!\n))*", passage))
    for at, block in enumerate(blocks):
        lines = block[0].split("\n")
        first = next((number for number, line in enumerate(lines) if _ITEM.match(line)), None)
        items = [line for line in lines[first or 0 :] if _ITEM.match(line)]
        if first is None or len(items) < 2:
            continue
        start = block.start() + sum(len(line) + 1 for line in lines[:first])
        lead = " ".join(lines[:first]) or (blocks[at - 1][0] if at else "")
        lead_start = block.start() if first else (blocks[at - 1].start() if at else start)
        if not lead.rstrip().endswith(":"):
            if not _HEADING.match(lead.split("\n")[-1]) and not (at == 0 and first == 0):
                continue
            topic = _decapitalise(about)
            plural = topic.rstrip().endswith("s")
            forms = (
                (
                    f"What are the {topic}?",
                    f"List the {topic}",
                    f"Which {topic}?",
                    f"{topic}",
                    f"What belongs to {topic}?",
                    f"Give me all {topic}.",
                    f"What are all the {topic}?",
                )
                if plural
                else (
                    f"What does {topic} include?",
                    f"{topic}",
                    f"What are the points of {topic}?",
                    f"What should I know about {topic}?",
                    f"What belongs to {topic}?",
                    f"{topic} list",
                )
            )
            yield "list", dice.choice(forms), start, block.end(), (start, block.end()), True
            continue
        gist = plain(re.split(r"(?<=[.!?])\s", lead.strip())[-1])
        gist = re.sub(
            r"\b(?:the following|following|these|as follows|below|listed|here)\b\s*", "", gist, flags=re.IGNORECASE
        ).strip(" :,")
        if not 3 <= len(gist.split()) <= 16:
            continue
        gist = _decapitalise(gist)
        subject = re.match(r"(?:the )?(.+?) (?:are|is|include|includes|can be|must|should|will|have)\b", gist)
        forms = [f"{gist}?", gist, f"Which {gist}?", f"What {gist}?", f"List: {gist}"]
        if subject and len(subject[1].split()) < 7:
            forms += [
                f"What are the {subject[1]}?",
                f"What are {subject[1]}?",
                f"Which {subject[1]} are there?",
                f"List the {subject[1]}",
            ] * 2
        to = re.match(r"(?:to|in order to) (.+?),", gist)
        if to:
            forms += [f"How do I {to[1]}?", f"What are the steps to {to[1]}?", f"how to {to[1]}"] * 3
        yield "list", dice.choice(forms), start, block.end(), (lead_start, block.end()), False


def how_to(task: str, dice: random.Random, tool: str = "") -> str:
    """Ask how a task is done, in one of many wordings."""
    by = dice.choice((f" with {tool}", f" using {tool}", f" in {tool}")) if tool and dice.random() < 0.5 else ""
    return dice.choice(
        (
            f"How do I {task}{by}?",
            f"How can I {task}{by}?",
            f"how to {task}{by}",
            f"What command do I use to {task}{by}?",
            f"Which command lets me {task}{by}?",
            f"command to {task}{by}",
            f"{task}{by}",
            f"How would you {task}{by}?",
            f"What do I type to {task}{by}?",
            f"I want to {task}{by}",
            f"What is the command to {task}{by}?",
            f"How does one {task}{by}?",
        )
    )


_NO_TASK = {
    "a",
    "an",
    "the",
    "or",
    "and",
    "which",
    "also",
    "be",
    "it",
    "its",
    "this",
    "that",
    "if",
    "not",
    "your",
    "our",
    "here",
    "enabled",
    "-",
    "lowest",
}


def _commands(passage: str, about: str, dice: random.Random) -> Iterator[_Fact]:
    pattern = re.compile(
        r"(?:^|\n)([^\n`|#][^\n]{8,220})\n\s*\n?[ \t]*```[^\n]*\n((?:(?![ \t]*```)[^\n]*\n){1,6})[ \t]*```"
    )
    for match in pattern.finditer(passage):
        code = match[2].strip("\n")
        lead = plain(re.split(r"(?<=[.!?])\s", match[1])[-1])
        task = re.search(
            r"(?:^|\b)(?:to|can|could|want to|need to|must|should) ([a-z]+ .+?)(?:,|:|$| by | run| with the following| using| use )",
            lead,
            re.IGNORECASE,
        )
        gist = task[1] if task else lead
        gist = re.sub(
            r"\b(?:the following|as follows|for example|for instance|e\.g\.|then|run|execute|command|you can)\b",
            "",
            gist,
            flags=re.IGNORECASE,
        )
        gist = _decapitalise(re.sub(r"\s+", " ", gist).strip(" ,:;"))
        if not 2 <= len(gist.split()) <= 14 or not code.strip() or gist.split()[0] in _NO_TASK:
            continue
        start = match.start(2) + len(match[2]) - len(match[2].lstrip("\n"))
        question = (
            how_to(gist, dice)
            if task
            else dice.choice(
                (
                    gist,
                    f"{gist}?",
                    f"How: {gist}",
                    f"How do I do this: {gist}?",
                    f"example: {gist}",
                    f"What does it look like: {gist}?",
                )
            )
        )
        yield "command", question, start, start + len(code), (match.start(1), match.end()), False
    if "```" in passage and re.match(
        r"(?:\w+ing|add|create|install|remove|delete|update|run|use|set|enable|disable|build|start|stop|check|test)\b",
        about,
        re.IGNORECASE,
    ):
        fence = re.search(r"```[^\n]*\n((?:(?![ \t]*```)[^\n]*\n){1,4})[ \t]*```", passage)
        if fence and passage.count("```") == 2:
            code = fence[1].strip("\n")
            task = re.sub(r"^(\w+?)(?:(\w)\2)?ing\b", r"\1\2", _decapitalise(about))
            yield "command", how_to(task, dice), fence.start(1), fence.start(1) + len(code), fence.span(), True


def _questions(passage: str, about: str) -> Iterator[_Fact]:
    """Headings that ask; what follows answers."""
    if not about.endswith("?"):
        return
    for match in re.finditer(r"[^\n](?:.|\n(?!\n))*", passage):
        if _HEADING.match(match[0]) or match[0].lstrip().startswith(("```", "|", "<", "{", "#", "![")):
            continue
        spans = sentences(match[0])
        end = spans[min(1, len(spans) - 1)][1]
        text = match[0][:end].rstrip()
        yield "faq", about, match.start(), match.start() + len(text), (match.start(), match.end()), True
        return


_TLDR = re.compile(r"^- (.+?):?\n\n`(.+?)`$", re.MULTILINE)


def _tldr(family: str, path: str, text: str, dice: random.Random) -> Iterator[Triple]:
    """A page of examples: tasks, each with its command."""
    tool = re.match(r"# (.+)", text)
    if not tool:
        return
    body = re.sub(r"\{\{\[?(?:[^|{}\]]*\|)?([^{}\]]*)\]?\}\}", r"\1", text)
    body = re.sub(r"^> More information.*\n", "", body, flags=re.MULTILINE)
    facts = list(_TLDR.finditer(body))
    dice.shuffle(facts)
    for match in facts[:3]:
        task = plain(re.sub(r"\[(\w)\]", r"\1", match[1]))
        task = _decapitalise(task)
        # Pages show at most eight examples; a part of one is as good a passage as all of it.
        name = plain(tool[1])
        yield Triple(
            family,
            path,
            "command",
            name,
            body[: LONGEST_PASSAGE + 300].rstrip(),
            how_to(task, dice, name),
            match.start(2),
            match.end(2),
            (match.start(), match.end() + 1),
            "",
        )
