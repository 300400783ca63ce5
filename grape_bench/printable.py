"""Text of strangers, made safe to show: a terminal obeys control characters, and a page may hold none."""


def printable(text: str) -> str:
    """Control characters are shown as �; white space stays."""
    return "".join(one if one.isprintable() or one.isspace() else "\ufffd" for one in text)


def on_one_line(text: str) -> str:
    """The same with single spaces for all white space."""
    return printable(" ".join(text.split()))
