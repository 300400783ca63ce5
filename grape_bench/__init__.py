"""grape-bench: what a position encoding costs, and what it buys."""

__version__ = "0.1.0"
