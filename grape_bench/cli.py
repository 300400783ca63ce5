"""The command line: parse, call one function, print."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grape_bench.arguments import COMMANDS, make_parser, parse
from grape_bench.errors import UserError, allowed

# What a command needs is imported inside it: --help answers at once, and only a run loads torch.
if TYPE_CHECKING:
    from grape_bench.runner import RunOptions
    from grape_bench.suite import Suite
    from grape_bench.verification import Verification

DONE, FAILED, WRONG, REGRESSED, STOPPED = 0, 1, 2, 3, 75


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the words after the program's name; those of the process where it is None.

    Returns:
        0 done, 1 some cells failed, 2 the input was wrong, 3 a regression was found, 75 stopped early and resumable.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        make_parser().print_help(sys.stderr)
        return WRONG
    arguments = parse(words)
    try:
        _announce(arguments)
        code = _COMMANDS[arguments.command](arguments)
        sys.stdout.flush()
        return code
    except UserError as error:
        print(error, file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        print("stopped; run the same command again to go on", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:  # the reader of our output, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STOPPED if arguments.command == "run" else DONE


def _announce(arguments: argparse.Namespace) -> None:
    """Make plug-ins that were named known to this command and its workers; none is run yet, all are read."""
    from grape_bench.origin import announce, locate, named
    from grape_bench.registry import Registry

    kinds = ("encoding", "backend")
    announce(locate(f"{kind}s", word) for kind in kinds for word in getattr(arguments, kind, ()))
    for origin in named():
        Registry(origin.kind)[origin.name]


def _execute() -> None:
    """Run the files that were named once, so that what is wrong in them is told before anything is measured."""
    from grape_bench.origin import named
    from grape_bench.registry import Registry

    for origin in named():
        print(f"runs the code of {origin.place}, for its class {origin.target}", file=sys.stderr)
        Registry(origin.kind)[origin.name].load()


def _run(arguments: argparse.Namespace) -> int:
    from grape_bench.registry import Registry
    from grape_bench.suite_files import load_all

    Registry("executors")[arguments.executor]  # a wrong name is refused before torch loads
    suites = load_all(arguments.suites, COMMANDS)
    if arguments.cell and len(suites) > 1:
        raise UserError(f"--cell {arguments.cell}: name the one suite that has this cell")
    options = _options(arguments)
    if not arguments.dry_run:
        _execute()
    if arguments.dry_run or arguments.cell:
        from grape_bench.runner import plan, run_cell

        for suite in suites:
            print(plan(suite, options) if arguments.dry_run else run_cell(suite, options, arguments.cell))
        return DONE
    return _measure(suites, options, arguments.reports)


def _options(arguments: argparse.Namespace) -> "RunOptions":
    from grape_bench.runner import RunOptions

    return RunOptions(
        results=arguments.results,
        device=arguments.device,
        fresh=arguments.fresh,
        only=tuple(arguments.only),
        effort=arguments.effort,
        retry_failed=arguments.retry_failed,
        executor=arguments.executor,
    )


def _measure(suites: "list[Suite]", options: "RunOptions", reports: Path) -> int:
    from grape_bench.runner import run

    code = DONE
    for suite in suites:
        outcome = run(suite, options)
        counts = (
            f"{outcome.measured} measured, {outcome.known} known, {outcome.skipped} skipped, {outcome.failed} failed"
            if outcome.measured or outcome.skipped or outcome.failed
            else f"nothing to measure, all {outcome.known} cells have their records"
        )
        print(f"{suite.name}: {counts}")
        _write(suite, options.results, reports)
        if outcome.unexpected:
            print(f"{suite.name}: skipped, and not expected by the suite: {'; '.join(outcome.unexpected)}")
        if outcome.stopped:
            print(f"{suite.name}: stopped early; run the same command again to go on", file=sys.stderr)
            return STOPPED
        code = FAILED if outcome.failed or outcome.unexpected else code
    return code


def _write(suite: "Suite", results: Path, reports: Path, **extras: Any) -> None:
    from grape_bench.report import write
    from grape_bench.store import Store

    written = write(suite, Store(results), reports, **extras)
    pages = sorted((path for path in written if path.parent == reports), key=lambda one: one.suffix == ".html")
    print(*pages, sep="\n")


def _check(arguments: argparse.Namespace) -> int:
    from grape_bench.suite import expand, group
    from grape_bench.suite_files import load_all

    code = DONE
    for word in arguments.suites:
        try:
            [suite] = load_all([word])
            cells = expand(suite)
            print(f"{word}: ok, {len(cells)} cells in {len(group(cells, suite.baseline, suite.vary))} blocks")
        except UserError as error:
            print(error, file=sys.stderr)
            code = WRONG
    return code


def _list(arguments: argparse.Namespace) -> int:
    from grape_bench.listing import plugin_table, suite_table

    print(suite_table() if arguments.what == "suites" else plugin_table(arguments.what))
    if arguments.what == "encodings":
        from grape_bench import catalogue
        from grape_bench.store import Store

        print("", catalogue.text(Store(arguments.results).verifications()), sep="\n")
    return DONE


def _map(found: "list[Verification]", reports: Path) -> None:
    from grape_bench.catalogue import report
    from grape_bench.report import save

    print(*save(report(found), reports), sep="\n")


def _verify(arguments: argparse.Namespace) -> int:
    from grape_bench import verify
    from grape_bench.environment import observe
    from grape_bench.origin import named
    from grape_bench.store import Store

    environment, store = observe("cpu"), Store(arguments.results)
    _execute()
    asked = arguments.expressions or verify.configurations([origin.name for origin in named()])
    found = [verify.verify(text, environment) for text in asked]
    print(verify.table(found), verify.summary(found), sep="\n")
    store.keep(found)
    _map(store.verifications(), arguments.reports)
    return FAILED if any(one.disagreements for one in found) else DONE


def _bundle(arguments: argparse.Namespace) -> int:
    from grape_bench.bundle import bundle
    from grape_bench.store import Store
    from grape_bench.suite_files import by_name

    path = Path(by_name(arguments.suite))
    target = arguments.output or Path(f"{path.stem}.zip")
    made = bundle(path, Store(arguments.results), target)
    print(f"{target}: {made.division} division", *(f"  {change}" for change in made.changes), sep="\n")
    return DONE


def _validate(arguments: argparse.Namespace) -> int:
    from grape_bench.validate import validate

    refused = False
    for path in arguments.bundles:
        reasons = validate(path)
        print(f"{path}: {'refused' if reasons else 'accepted'}", *(f"  {one}" for one in reasons), sep="\n")
        refused = refused or bool(reasons)
    return FAILED if refused else DONE


def _leaderboard(arguments: argparse.Namespace) -> int:
    from grape_bench import leaderboard
    from grape_bench.report import save
    from grape_bench.submissions import gathered

    with gathered(arguments.places) as found:
        for name, reasons in found.refused.items():
            print(leaderboard.plain(f"{name}: refused"), *map(leaderboard.plain, reasons), sep="\n  ", file=sys.stderr)
        if found.files:
            page = leaderboard.report(found)
            print(leaderboard.text(page), *save(page, arguments.reports), sep="\n")
    return FAILED if found.refused else DONE


def _report(arguments: argparse.Namespace) -> int:
    from grape_bench.store import Store
    from grape_bench.suite_files import SUITES, all_files, by_name, load_all

    store = Store(arguments.results)
    known = store.suites()
    words = arguments.suites or [str(path) for path in all_files() if path.stem in known]
    if not arguments.suites and (found := store.verifications()):
        _map(found, arguments.reports)
    elif not words:
        raise UserError(f"no suite of {SUITES}/ has records under {arguments.results}; run one first")
    suites = load_all(map(by_name, words))
    for suite in suites:
        if suite.name not in known:
            raise UserError(f"{suite.name} has no records under {arguments.results}; run it first")
    for suite in suites:
        _write(suite, arguments.results, arguments.reports, figures=arguments.figures, latex=arguments.latex)
    return DONE


def _compare(arguments: argparse.Namespace) -> int:
    from grape_bench.compare import versus
    from grape_bench.store import Store

    store = Store(arguments.results)
    records = [one for name in arguments.suite or store.suites() for one in store.records(Path(name).stem)]
    found = versus(records, arguments.first, arguments.second, margin=arguments.margin, force=arguments.force)
    print(found.text())
    return REGRESSED if found.regressed else DONE


def _claims(arguments: argparse.Namespace) -> int:
    from grape_bench.claims import text, verdicts
    from grape_bench.registry import Registry
    from grape_bench.store import Store
    from grape_bench.suite import expand
    from grape_bench.suite_files import by_name, load_all
    from grape_bench.view import View

    suites = load_all(map(by_name, arguments.suites))
    for suite in suites:
        if not suite.claims:
            raise UserError(f"{suite.name} claims nothing; docs/suites.md says how a suite holds claims")
    for suite in suites:
        records = Store(arguments.results).records(suite.name)
        found = verdicts(View.of(suite, expand(suite), records, Registry("metrics")))
        print(f"{suite.name}: {suite.title}", text(found), sep="\n\n")
    return DONE


def _records(arguments: argparse.Namespace) -> int:
    from grape_bench.export import csv_text
    from grape_bench.store import Store

    store = Store(arguments.results)
    known = store.suites()
    names = [_stem(word) for word in arguments.suites]
    for name in names:
        if name not in known:
            raise UserError(f"{name} has no records under {arguments.results}.{allowed(name, known)}")
    records = [record for name in names or known for record in store.records(name)]
    if arguments.json:
        print(json.dumps([record.model_dump(mode="json", by_alias=True) for record in records], indent=1))
    else:
        print(csv_text(records), end="")
    return DONE


def _history(arguments: argparse.Namespace) -> int:
    return {"export": _export, "publish": _publish, "regressions": _regressions}[arguments.action](arguments)


def _export(arguments: argparse.Namespace) -> int:
    from grape_bench.history.export import export
    from grape_bench.store import Store

    done = export(map(_stem, arguments.suites), Store(arguments.results))
    print(done.text())
    print(*done.left_out, sep="\n", end="\n" if done.left_out else "", file=sys.stderr)
    return DONE


def _publish(arguments: argparse.Namespace) -> int:
    from grape_bench.history.publish import publish

    print(publish())
    return DONE


def _regressions(arguments: argparse.Namespace) -> int:
    from grape_bench.history.regressions import regressions
    from grape_bench.store import Store

    found = regressions(map(_stem, arguments.suites), Store(arguments.results))
    print(found.text())
    print(*found.left_out, sep="\n", end="\n" if found.left_out else "", file=sys.stderr)
    return REGRESSED if found.steps else DONE


def _stem(word: str) -> str:
    """A suite's name, of its file or as it is."""
    return Path(word).stem if word.endswith((".yaml", ".yml")) else word


def _schema(arguments: argparse.Namespace) -> int:
    from grape_bench.suite import schema

    print(json.dumps(schema(), indent=2))
    return DONE


_COMMANDS = dict(
    zip(
        COMMANDS,
        (
            _run,
            _check,
            _list,
            _verify,
            _report,
            _records,
            _compare,
            _claims,
            _bundle,
            _validate,
            _leaderboard,
            _history,
            _schema,
        ),
        strict=True,
    )
)
