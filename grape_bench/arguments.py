"""The words of the command line, each with its help."""

import argparse
from pathlib import Path

from grape_bench import __version__

COMMANDS = (
    "run", "check", "list", "verify", "report", "records", "compare", "claims", "bundle", "validate", "leaderboard",
    "history", "schema",
)  # fmt: skip
LISTS = ("encodings", "tasks", "backends", "metrics", "suites", "executors", "renderers")
FORMS = ("pdf", "png", "svg")
_EXIT = "exit codes: 0 done, 1 some cells failed, 2 wrong input, 3 a regression, 75 stopped, run again to go on"


def parse(words: list[str]) -> argparse.Namespace:
    """The arguments of one command, whose name is in `command`; help and wrong words end the program."""
    # `run` is what happens to suites when no command is named.
    named = words[0] in (*COMMANDS, "-h", "--help", "--version")
    return make_parser().parse_args(words if named else ["run", *words])


def make_parser() -> argparse.ArgumentParser:
    """All commands with their options and help."""
    parser = argparse.ArgumentParser(
        prog="grape-bench",
        description="What position encodings of transformers cost, and what they buy.",
        epilog=f"`grape-bench SUITE...` is short for `grape-bench run SUITE...`. {_EXIT}.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"grape-bench {__version__}")
    made = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _run(_command(made, "run", "measure what a suite asks for and the results lack, then write its report"))
    check = _command(made, "check", "read suites and say what is wrong in them; nothing is measured")
    check.add_argument("suites", nargs="+", metavar="SUITE", help="a suite's YAML file")
    _plugins(check)
    listing = _command(made, "list", "show a table of what there is")
    listing.add_argument("what", choices=LISTS, help="which table")
    _plugins(listing)
    _results(listing)
    _verify(_command(made, "verify", "measure which laws encodings obey, and hold that against what they declare"))
    report = _command(made, "report", "write the reports of suites from their records, without measuring")
    report.add_argument("suites", nargs="*", metavar="SUITE", help="a suite's file or name; all with records if none")
    report.add_argument(
        "--figures",
        type=_forms,
        default=(),
        metavar="FORMS",
        help="figures as files too, such as pdf,png; svg is always there",
    )
    report.add_argument("--latex", action="store_true", help="tables as LaTeX files too, beside the figures")
    _folders(report)
    _plugins(report)
    _records(_command(made, "records", "print raw records, one line for each sample, as CSV or JSON"))
    _compare(_command(made, "compare", "set two encodings, runs or commits against each other, from their records"))
    claims = _command(made, "claims", "say of each claim of suites whether their records support or refute it")
    claims.add_argument("suites", nargs="+", metavar="SUITE", help="a suite's file or name")
    _results(claims)
    bundle = _command(made, "bundle", "zip the records of a suite with its report, for others to check")
    bundle.add_argument("suite", metavar="SUITE", help="a suite's file or name")
    bundle.add_argument("--output", type=Path, metavar="ZIP", help="where it goes; SUITE.zip if left out")
    _results(bundle)
    validate = _command(made, "validate", "recompute every number of bundles, and say why one is refused (exit 1)")
    validate.add_argument("bundles", nargs="+", type=Path, metavar="BUNDLE", help="a zip that `bundle` wrote")
    leaderboard = _command(made, "leaderboard", "merge the records of machines and people, and write who leads in what")
    leaderboard.add_argument(
        "places",
        nargs="*",
        type=Path,
        default=[Path("results")],
        metavar="DIR_OR_BUNDLE",
        help="a folder of records, or a bundle, which is validated first; results/ if none",
    )
    _reports(leaderboard)
    _history(_command(made, "history", "follow records from commit to commit, in asv's pages and in our own words"))
    _command(made, "schema", "print the JSON schema of a suite's file, for editors")
    return parser


def _command(
    made: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, text: str
) -> argparse.ArgumentParser:
    return made.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=_EXIT, allow_abbrev=False
    )


def _forms(word: str) -> tuple[str, ...]:
    """Forms of figures beside SVG, which is always written."""
    forms = word.split(",")
    if wrong := [form for form in forms if form not in FORMS]:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is no form of figures; these are: {', '.join(FORMS)}")
    return tuple(form for form in FORMS if form in forms and form != "svg")


def _compare(compare: argparse.ArgumentParser) -> None:
    compare.add_argument("first", metavar="A", help="an encoding, or the beginning of a run's id or a commit's hash")
    compare.add_argument("second", metavar="B", help="what is set against A: ratios are B over A, differences B less A")
    compare.add_argument(
        "--suite", action="append", default=[], metavar="SUITE", help="only this suite's records; all if left out"
    )
    compare.add_argument(
        "--margin", type=float, metavar="SHARE", help="half width of `same`: 0.03 is 3 %% of time, or 0.03 of accuracy"
    )
    compare.add_argument("--force", action="store_true", help="compare environments that differ, and say so")
    compare.add_argument("--results", type=Path, default=Path("results"), metavar="DIR", help="folder of the records")


def _verify(verify: argparse.ArgumentParser) -> None:
    verify.add_argument(
        "expressions",
        nargs="*",
        metavar="EXPRESSION",
        help="an encoding, such as 'rope + alibi'; every encoding with its variants if none",
    )
    _folders(verify)
    _plugins(verify, "encoding")


def _history(history: argparse.ArgumentParser) -> None:
    made = history.add_subparsers(dest="action", metavar="ACTION", required=True)
    export = _command(made, "export", "write records into asv's results, for the commits and machines that they name")
    export.add_argument("suites", nargs="*", metavar="SUITE", help="a suite's name; all beside the benchmarks if none")
    _results(export)
    _command(made, "publish", "write asv's pages so that they open without a network")
    steps = _command(made, "regressions", "say at which commit something became slower, larger or worse, and stayed so")
    steps.add_argument("suites", nargs="*", metavar="SUITE", help="a suite's file or name; all with records if none")
    _results(steps)


def _run(run: argparse.ArgumentParser) -> None:
    run.add_argument("suites", nargs="+", metavar="SUITE", help="a suite's YAML file, such as suites/quick.yaml")
    _folders(run)
    _plugins(run)
    run.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="measure only such cells, encoding=rope for one; repeat it: one key's values are alternatives, "
        "different keys must all hold",
    )
    run.add_argument("--fresh", action="store_true", help="measure again what the results have already")
    run.add_argument("--retry-failed", action="store_true", help="try again what failed before")
    run.add_argument("--dry-run", action="store_true", help="say what would be measured, and measure nothing")
    run.add_argument("--effort", choices=("quick", "full"), help="rounds and processes; the suite's own if left out")
    run.add_argument(
        "--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto takes a GPU if there is one"
    )
    run.add_argument(
        "--cell", metavar="ID", help="measure one cell in this process, for a debugger; nothing is recorded"
    )
    run.add_argument(
        "--executor", default="local", metavar="NAME", help="who measures: see `grape-bench list executors`"
    )


def _records(records: argparse.ArgumentParser) -> None:
    records.add_argument("suites", nargs="*", metavar="SUITE", help="a suite's file or name; all with records if none")
    _results(records)
    form = records.add_mutually_exclusive_group()
    form.add_argument(
        "--csv", action="store_true", help="a table for a spreadsheet or pandas (what is printed if none)"
    )
    form.add_argument("--json", action="store_true", help="the records whole, as one JSON list")


def _plugins(parser: argparse.ArgumentParser, *kinds: str) -> None:
    for kind in kinds or ("encoding", "backend"):
        parser.add_argument(
            f"--{kind}",
            action="append",
            default=[],
            metavar="FILE.py:CLASS",
            help=f"take the class of a file of yours as one more {kind}; repeat it for several",
        )


def _folders(parser: argparse.ArgumentParser) -> None:
    _results(parser)
    _reports(parser)


def _reports(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reports", type=Path, default=Path("reports"), metavar="DIR", help="where reports go (reports/)"
    )


def _results(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--results", type=Path, default=Path("results"), metavar="DIR", help="where records are (results/)"
    )
