"""Clusters that are made up: which devices a run asks for."""

from typing import Any

import pytest

pytest.importorskip("ray", reason="Ray is not installed; `tox -e ray` brings it")

from grape_bench.executors import _cluster as cluster
from grape_bench.resources import Resources

Nodes = list[dict[str, Any]]
HEAD = {"NodeID": "head", "Alive": True, "Resources": {"memory": 1e9}}
CPU = {"NodeID": "cpu", "Alive": True, "Resources": {"CPU": 16.0}}
OLD = {"NodeID": "old", "Alive": True, "Resources": {"CPU": 16.0, "GPU": 2.0, "accelerator_type:A100": 1.0}}
NEW = {"NodeID": "new", "Alive": True, "Resources": {"CPU": 12.0, "GPU": 4.0, "accelerator_type:H200": 1.0}}
DEAD = {**NEW, "NodeID": "dead", "Alive": False}
ONE_TYPE = Resources(ray={"accelerator_type:H200": 0.001})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, float], dict[str, str]]]:
    """The bundles that are asked for, each with the labels of its node."""
    found: list[tuple[dict[str, float], dict[str, str]]] = []

    def group(bundles: list[dict[str, float]], bundle_label_selector: list[dict[str, str]]) -> None:
        found.extend(zip(bundles, bundle_label_selector, strict=True))

    monkeypatch.setattr(cluster, "placement_group", group)
    return found


def nodes_of(nodes: Nodes, device: str, resources: Resources = Resources()) -> list[str]:  # noqa: B008
    return [one.node for one in cluster.offers(nodes, device, resources)]


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("nodes", "device", "expected"),
    [
        ([HEAD, CPU, OLD, NEW, DEAD], "auto", ["old"] * 2 + ["new"] * 4),
        ([HEAD, CPU, OLD, NEW, DEAD], "cuda", ["old"] * 2 + ["new"] * 4),
        ([HEAD, CPU, OLD, NEW, DEAD], "cpu", ["cpu", "old", "new"]),
        ([HEAD, CPU, CPU | {"NodeID": "more"}], "auto", ["cpu", "more"]),
        ([HEAD, CPU], "cuda", []),
        ([HEAD], "auto", []),
    ],
)
def test_every_gpu_is_a_device_and_else_the_cores_of_every_node(nodes: Nodes, device: str, expected: list[str]) -> None:
    assert nodes_of(nodes, device) == expected


def test_a_gpu_comes_with_its_part_of_the_cores(asked: list[Any]) -> None:
    assert nodes_of([OLD], "auto") == ["old", "old"]
    assert asked == [({"CPU": 8.0, "GPU": 1}, {"ray.io/node-id": "old"})] * 2


def test_what_a_suite_names_chooses_among_the_nodes(asked: list[Any]) -> None:
    assert nodes_of([CPU, OLD, NEW], "auto", ONE_TYPE) == ["new"] * 4
    assert asked[0] == ({"CPU": 3.0, "GPU": 1, "accelerator_type:H200": 0.001}, {"ray.io/node-id": "new"})
    assert nodes_of([CPU, OLD], "auto", ONE_TYPE) == []
    assert cluster.no_offer("auto", ONE_TYPE) == (
        "no node of the Ray cluster has a GPU or a CPU, 0.001 of accelerator_type:H200"
    )


def test_the_shares_of_a_device_fit_into_it() -> None:
    for slots in range(1, 200):
        assert slots * cluster.rounded(1 / slots) <= 1
