"""Train the reader: ``python train.py DATA OUT [--minutes 45] [--rank 16]``.

DATA is where `build.py` and `asked.py` wrote: examples with a passage each (``train-*.jsonl``), and questions with
pieces to choose from (``pieces-*.jsonl``). Every few minutes the weights so far are written to
``OUT/reader.safetensors``.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from network import Reader
from safetensors.torch import load_file, save_file
from sklearn.metrics import roc_auc_score
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

MINILM = Path.home() / ".cache/recollect/models/sentence-transformers--all-MiniLM-L6-v2"
SEED, MOST_TOKENS, BATCH_TOKENS = 28, 320, 1700
BEGIN, SEPARATOR, PADDING = 101, 102, 0

#: So many tokens of a piece with its headings are read, and of headings alone.
PIECE_TOKENS, HEADING_TOKENS = 128, 40

Row = tuple[list[int], int, int, int, bool, str, str]
#: The pieces of one question.
Group = list[Row]


def read_rows(path: Path, tokenizer: Tokenizer, most: int, characters: int = 10_000) -> list[Row]:
    """Examples as token ids: ids, length of the question's part, start, end, answerable, family, kind.

    There are more examples than time: short ones teach the same and cost less.
    """
    lines = [line for file in sorted(path.parent.glob(path.name)) for line in file.open()]
    random.Random(SEED).shuffle(lines)
    examples = [json.loads(line) for line in lines if len(line) < characters][:most]
    questions = tokenizer.encode_batch([e["question"] for e in examples], add_special_tokens=False)
    headings = tokenizer.encode_batch([e["heading"] for e in examples], add_special_tokens=False)
    passages = tokenizer.encode_batch([e["passage"] for e in examples], add_special_tokens=False)
    rows: list[Row] = []
    for example, question, heading, passage in zip(examples, questions, headings, passages, strict=True):
        first = [BEGIN, *question.ids[:64], SEPARATOR]
        lead = heading.ids[-HEADING_TOKENS:]
        offset = len(first) + len(lead)
        room = MOST_TOKENS - offset - 1
        start = end = 0
        if example["start"] >= 0:
            inside = [at for at, (s, e) in enumerate(passage.offsets) if s < example["end"] and e > example["start"]]
            if not inside or inside[-1] >= room:
                continue
            start, end = inside[0] + offset, inside[-1] + offset
        ids = [*first, *lead, *passage.ids[:room], SEPARATOR]
        rows.append((ids, len(first), start, end, start > 0, example["family"], example["kind"]))
    return rows


def read_groups(path: Path, tokenizer: Tokenizer) -> list[Group]:
    """Questions with their pieces as token ids."""
    lines = [line for file in sorted(path.parent.glob(path.name)) for line in file.open()]
    random.Random(SEED).shuffle(lines)
    groups: list[Group] = []
    for line in lines:
        one = json.loads(line)
        asked = tokenizer.encode(one["question"], add_special_tokens=False).ids[:64]
        first = [BEGIN, *asked, SEPARATOR]
        headings, texts = (
            tokenizer.encode_batch([piece[at] for piece in one["pieces"]], add_special_tokens=False) for at in (0, 1)
        )
        group = []
        for heading, text, piece in zip(headings, texts, one["pieces"], strict=True):
            read = [*heading.ids[-HEADING_TOKENS:], *text.ids][:PIECE_TOKENS]
            group.append(([*first, *read, SEPARATOR], len(first), 0, 0, piece[2], one["family"], "piece"))
        if group:
            groups.append(group)
    return groups


def batches(rows: list[Row], dice: random.Random) -> Iterator[list[Row]]:
    """Rows of similar lengths together, in a random order."""
    order = sorted(rows, key=lambda row: len(row[0]) + dice.random() * 12)
    found: list[list[Row]] = [[]]
    for row in order:
        if (len(found[-1]) + 1) * len(row[0]) > BATCH_TOKENS:
            found.append([])
        found[-1].append(row)
    dice.shuffle(found)
    yield from found


def group_batches(groups: list[Group], dice: random.Random) -> Iterator[list[Group]]:
    """Groups of similar lengths together, in a random order."""

    def longest(group: Group) -> int:
        return max(len(row[0]) for row in group)

    found: list[list[Group]] = [[]]
    count = 0
    for group in sorted(groups, key=lambda group: longest(group) + dice.random() * 12):
        count += len(group)
        if found[-1] and count * longest(group) > BATCH_TOKENS:
            found.append([])
            count = len(group)
        found[-1].append(group)
    dice.shuffle(found)
    yield from found


def tensors(batch: list[Row]) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, types and mask."""
    longest = max(len(row[0]) for row in batch)
    ids = torch.full((len(batch), longest), PADDING)
    types = torch.zeros_like(ids)
    for at, row in enumerate(batch):
        ids[at, : len(row[0])] = torch.tensor(row[0])
        types[at, row[1] : len(row[0])] = 1
    return ids, types, torch.arange(longest) < torch.tensor([len(row[0]) for row in batch])[:, None]


def loss_of(reader: Reader, batch: list[Row]) -> Tensor:
    """Cross-entropy of the spans (the first token where there is no answer) and of answerability."""
    ids, types, mask = tensors(batch)
    span, answerable = reader(ids, types, mask)
    span = span.masked_fill(~mask[..., None], -1e4)
    starts, ends = (torch.tensor([row[at] for row in batch]) for at in (2, 3))
    labels = torch.tensor([float(row[4]) for row in batch])
    spans = functional.cross_entropy(span[..., 0], starts) + functional.cross_entropy(span[..., 1], ends)
    return spans / 2 + functional.binary_cross_entropy_with_logits(answerable, labels)


def group_loss(reader: Reader, groups: list[Group]) -> Tensor:
    """Cross-entropy of the pieces that answer among all of a question's; "none of them" has the logit 0."""
    _, answerable = reader(*tensors([row for group in groups for row in group]))
    losses = []
    for group, odds in zip(groups, answerable.split([len(group) for group in groups]), strict=True):
        right = torch.tensor([row[4] for row in group])
        every = torch.cat([odds, torch.zeros(1)]).logsumexp(0)
        losses.append(every - odds[right].logsumexp(0) if right.any() else every)
    return torch.stack(losses).mean()


@torch.no_grad()
def judge(reader: Reader, rows: list[Row]) -> dict[str, object]:
    """AUC of answerability by kind of near miss, and how often a span is exact among the answerable."""
    reader.eval()
    scores: dict[str, list[float]] = defaultdict(list)
    exact: list[bool] = []
    for batch in batches(rows, random.Random(0)):
        ids, types, mask = tensors(batch)
        span, answerable = reader(ids, types, mask)
        span = span.masked_fill(~mask[..., None], -1e4)
        span[:, 0] = -1e4
        for at, row in enumerate(batch):
            scores["answer" if row[4] else row[6]].append(float(answerable[at]))
            if row[4]:
                exact.append(span[at].argmax(0).tolist() == [row[2], row[3]])
    reader.train()
    yes = scores.pop("answer")
    every = [score for kind in scores.values() for score in kind]
    found: dict[str, object] = {"all": _auc(yes, every), "exact": round(sum(exact) / len(exact), 3)}
    return found | {kind: _auc(yes, no) for kind, no in sorted(scores.items()) if len(no) >= 15}


def _auc(yes: list[float], no: list[float]) -> float:
    return round(float(roc_auc_score([1] * len(yes) + [0] * len(no), yes + no)), 3)


def main() -> None:
    """Train for as long as was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=45)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--examples", type=int, default=200_000)
    parser.add_argument("--characters", type=int, default=10_000, help="longer examples are left out")
    parser.add_argument("--resume", type=Path, help="weights that an earlier run wrote")
    parser.add_argument(
        "--average-from",
        type=float,
        default=1.0,
        help="below 1, the rate stays, and the weights' mean from this share of the time on is written",
    )
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    torch.manual_seed(SEED)
    arguments.out.mkdir(parents=True, exist_ok=True)
    reader = Reader(MINILM / "model.safetensors", arguments.rank)
    if arguments.resume:
        for name, value in load_file(arguments.resume).items():
            reader.trained[name.replace(".", "|")].data.copy_(value)
    # On a machine with other work, two threads that wait for each other within every operator are far slower than two
    # processes that change the same weights whenever each is ready (Niu et al. 2011, "Hogwild!").
    reader.share_memory()
    torch.multiprocessing.spawn(work, (reader, arguments), arguments.workers)


def work(worker: int, reader: Reader, arguments: argparse.Namespace) -> None:
    """Train on every so many-th example."""
    torch.set_num_threads(1)
    torch.manual_seed(SEED + worker)
    dice = random.Random(SEED + worker)
    tokenizer = Tokenizer.from_file(str(MINILM / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    rows = read_rows(arguments.data / "train-*.jsonl", tokenizer, arguments.examples, arguments.characters)
    rows = rows[worker :: arguments.workers]
    groups = read_groups(arguments.data / "pieces-*.jsonl", tokenizer)[worker :: arguments.workers]
    held = read_rows(arguments.data / "held-out-*.jsonl", tokenizer, 300)
    print(
        f"{len(rows)} examples, {sum(r[4] for r in rows)} with an answer, {sum(len(r[0]) for r in rows)} tokens; "
        f"{len(groups)} questions with pieces",
        flush=True,
    )
    matrices = [p for n, p in reader.trained.items() if n.endswith(("down", "up"))]
    others = [p for n, p in reader.trained.items() if not n.endswith(("down", "up"))]
    parameters = [{"params": matrices, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(parameters, arguments.rate, betas=(0.9, 0.98))
    began = saved = judged = time.monotonic()
    limit = arguments.minutes * 60
    done = steps = averaged = 0
    total = 0.0
    mean: dict[str, Tensor] = {}
    while True:
        work_left = [(loss_of, batch) for batch in batches(rows, dice)]
        work_left += [(group_loss, batch) for batch in group_batches(groups, dice)]
        dice.shuffle(work_left)
        for loss_function, batch in work_left:
            spent = time.monotonic() - began
            if spent > limit:
                if worker == 0:
                    save(mean or reader.trained, arguments.out / "reader.safetensors")
                return
            if worker == 0 and spent > arguments.average_from * limit and steps % 10 == 0:
                averaged += 1
                include(mean, reader.trained, 1 / averaged)
            for group in optimiser.param_groups:
                group["lr"] = rate_of(arguments, steps, spent / limit)
            loss = loss_function(reader, batch)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
            optimiser.step()
            done, steps, total = done + len(batch), steps + 1, total + loss.item()
            if steps % 40 == 0:
                print(f"worker {worker}: {spent:.0f} s, {done} examples, loss {total / 40:.3f}", flush=True)
                total = 0.0
            if worker == 0 and time.monotonic() - saved > 150:
                saved = time.monotonic()
                save(mean or reader.trained, arguments.out / "reader.safetensors")
            if worker == 0 and time.monotonic() - judged > 540:
                print(json.dumps(judge(reader, held)) if held else "nothing held out", flush=True)
                judged = time.monotonic()


def rate_of(arguments: argparse.Namespace, steps: int, share: float) -> float:
    """A warm-up, then a cosine down to zero over the time that there is; the rate stays where weights are averaged."""
    falling = 1.0 if arguments.average_from < 1 else 0.5 * (1 + math.cos(math.pi * share))
    return float(arguments.rate * min(1, (steps + 1) / 40) * falling)


def include(mean: dict[str, Tensor], trained: Mapping[str, Tensor], share: float) -> None:
    """Move a mean of weights towards those of now: as good as a falling rate (Izmailov et al. 2018)."""
    for name, value in trained.items():
        known = mean.setdefault(name, value.detach().clone())
        known += (value.detach() - known) * share


def save(trained: Mapping[str, Tensor], path: Path) -> None:
    """Write what was trained, in half precision, under the names that the builder of graphs knows."""
    found = {name.replace("|", "."): value.detach().to(torch.float16).contiguous() for name, value in trained.items()}
    partial = path.with_suffix(".partial")
    save_file(found, partial)
    partial.replace(path)


if __name__ == "__main__":
    main()
