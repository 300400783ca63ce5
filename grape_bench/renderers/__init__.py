"""The contract of a renderer: a report in, the text of one file out.

A file of this folder is a renderer of its name; its last line is `PLUGIN = Class`.
"""

from abc import ABC, abstractmethod

from grape_bench.table import Report


class Renderer(ABC):
    """Writes a report as one file.

    Strings of a report come from records and suites: a renderer escapes every one of them.
    """

    suffix: str = ""  # such as `.html`

    @abstractmethod
    def render(self, report: Report) -> str:
        """The text of the file, the same for the same report."""
