"""`verify`: encodings against the laws that they declare."""

import argparse

from grape_bench.commands import DONE, FAILED, add_plugins, add_reports, add_results, execute_plugins

HELP = "measure which laws encodings obey, and hold that against what they declare"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "expressions",
        nargs="*",
        metavar="EXPRESSION",
        help="an encoding, such as 'rope + alibi'; every encoding with its variants if none",
    )
    add_results(parser)
    add_reports(parser)
    add_plugins(parser, "encoding")


def call(arguments: argparse.Namespace) -> int:
    from grape_bench import verify
    from grape_bench.commands.report import write_map
    from grape_bench.environment import observe
    from grape_bench.origin import named
    from grape_bench.store import Store

    environment, store = observe("cpu"), Store(arguments.results)
    execute_plugins()
    asked = arguments.expressions or verify.configurations([origin.name for origin in named()])
    found = [verify.verify(text, environment) for text in asked]
    print(verify.table(found), verify.summary(found), sep="\n")
    store.keep(found)
    write_map(store.verifications(), arguments.reports)
    return FAILED if any(one.disagreements for one in found) else DONE
