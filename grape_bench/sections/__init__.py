"""The sections of a report: each a function of a `View` that gives a `Section`, or None where it has nothing to say."""
