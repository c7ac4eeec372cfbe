"""The command line reference says what the command line says. Run as a program, this writes it anew."""

from __future__ import annotations

from pathlib import Path

import typer

from recollect.cli.main import PANELS, app

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/cli.md"
HEAD = """# Command line reference

Generated from the program itself. Every command also takes the options of the last section, before or behind its name.

Exit status: 0 all well; 1 an error, or some files of an ingest failed; 2 wrong usage; 130 interrupted.
"""
EVERYWHERE = "Everywhere"


def reference() -> str:
    root = typer.main.get_command(app)
    parts = [HEAD]
    for name, command in root.commands.items():
        if hasattr(command, "commands"):
            parts += [_section(f"{name} {inner}", child) for inner, child in command.commands.items()]
        else:
            parts.append(_section(name, command))
    shared = [
        option for option in root.params if _panel(option) == EVERYWHERE or option.name in {"collection", "version"}
    ]
    parts.append("## Everywhere\n\n" + _table(shared))
    return "\n".join(parts)


def _section(name: str, command) -> str:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    shown = [param for param in command.params if not getattr(param, "hidden", False)]
    options = [param for param in shown if param.param_type_name == "option" and _panel(param) != EVERYWHERE]
    usage = " ".join(
        ["recollect", name, *("[OPTIONS]" for _ in options[:1]), *(_metavar(param) for param in arguments)]
    )
    paragraphs = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    text = f"## recollect {name}\n\n{paragraphs}\n\n```console\n{usage}\n```\n"
    return text + (f"\n{_table([*arguments, *options])}" if arguments or options else "")


def _table(params: list) -> str:
    rows = [
        f"| {_names(param)} | {(param.help or '').replace('|', chr(92) + '|')}{_default(param)} |" for param in params
    ]
    return "\n".join(["| | |", "|---|---|", *rows, ""])


def _names(param) -> str:
    if param.param_type_name == "argument":
        return f"`{_metavar(param)}`"
    names = ", ".join(f"`{name}`" for name in param.opts)
    return f"{names} *{param.metavar}*" if param.metavar else names


def _metavar(param) -> str:
    return param.metavar or param.name.upper()


def _default(param) -> str:
    shown = param.default if isinstance(param.default, int | str) and not isinstance(param.default, bool) else None
    return f" Default: {shown}." if shown not in {None, "", 0} else ""


def _panel(param) -> str | None:
    return getattr(param, "rich_help_panel", None)


def test_the_reference_is_what_the_program_says():
    assert PAGE.read_text(encoding="utf-8") == reference(), f"run: python {Path(__file__).name}"


def test_every_command_and_option_is_explained():
    for line in reference().splitlines():
        if line.startswith("| `"):
            assert line.split("|")[2].strip(), line


def test_the_list_of_commands_says_of_each_what_it_says_of_itself():
    commands = typer.main.get_command(app).commands
    for name, said in (entry for panel in PANELS.values() for entry in panel.items()):
        assert said == " ".join(commands[name].help.split("\n\n")[0].split()), name


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(reference(), encoding="utf-8")
