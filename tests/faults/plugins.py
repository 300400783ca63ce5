"""Encodings that end badly, each in its own way; `--encoding plugins.py:Hang` and so on."""

import ctypes
import time

import torch

from grape_bench.encodings import Encoding


class Bad(Encoding):
    """Leaves all as it is, but for what it does first."""

    def __init__(self, site):
        super().__init__()

    def rotate(self, q, k, features, at):
        self.strike()
        return q, k

    def strike(self):
        raise NotImplementedError


class Segfault(Bad):
    """Read the address 0."""

    def strike(self):
        ctypes.string_at(0)


class Hang(Bad):
    """Wait for an hour."""

    def strike(self):
        time.sleep(3600)


class Hog(Bad):
    """Take 3 GiB, and touch them."""

    def strike(self):
        torch.ones(3 * 2**28)


class Bomb(Bad):
    """Make any loss of a training nan."""

    def rotate(self, q, k, features, at):
        return q * float("nan"), k
