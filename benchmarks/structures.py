"""Structures and entropy: draws of spanning trees, and structured entropy of many rows."""

import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import combinations, count

import networkx as nx
import numpy as np
from scipy.spatial import Delaunay
from scipy.special import entr

from benchmarks.timing import goal, interleaved_medians, ratio
from structent import LabelGraph, SpanningTreePartitions, structured_entropy
from structent.structure.catalog import california_counties, cifar100

TITLE = "Structures and entropy"
MISSES = ""
PATIENCE = 60.0


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield case, structent's time, the baseline and its time, and the ratio with its goal."""
    yield _draw("draw on the 58 counties, 10 blocks", california_counties(), 10, 100)
    yield _draw("draw on a planar graph of 3,100 nodes", _planar(3100), 100, 3000)
    yield _entropy()
    yield _first_call()


def _draw(case: str, graph: LabelGraph, n_blocks: int, most_us: float) -> tuple[str, str, str, str]:
    sampler = SpanningTreePartitions(graph, n_blocks, 0.5)
    iteration = count()
    ours = _repeated(lambda: sampler.sample(next(iteration)), 100)
    per_call = interleaved_medians({"ours": ours}, rounds=9)["ours"] / 100
    peer = _seconds_or_none(nx.random_spanning_tree, nx.Graph(graph.edges))
    baseline = f"no tree after {PATIENCE:.0f} s" if peer is None else f"{peer * 1e3:.0f} ms"
    at_least = "more than " if peer is None else ""
    return (
        case,
        f"{per_call * 1e6:.0f} us {goal(per_call * 1e6, most_us, ' us')}",
        f"networkx.random_spanning_tree: {baseline}",
        f"{at_least}{(peer or PATIENCE) / per_call:,.0f} times faster (at least 50)",
    )


def _seconds_or_none(run: Callable[[nx.Graph], object], graph: nx.Graph) -> float | None:
    """Return how long one call takes in a process of its own; None if it exceeds our patience."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def timed() -> None:
        start = time.perf_counter()
        run(graph)
        sender.send(time.perf_counter() - start)

    process = context.Process(target=timed)
    process.start()
    seconds = receiver.recv() if receiver.poll(PATIENCE) else None
    process.terminate()
    process.join()
    return seconds


def _entropy() -> tuple[str, str, str, str]:
    p = np.random.default_rng(0).dirichlet(np.ones(100), 100_000)
    structure = cifar100()
    seconds = interleaved_medians(
        {
            "ours": lambda: structured_entropy(p, structure),
            "scipy": lambda: entr(p).sum(-1),
        },
        rounds=15,
    )
    return (
        "structured entropy of (100000, 100), CIFAR-100 structure",
        f"{seconds['ours'] * 1e3:.0f} ms",
        f"scipy.special.entr(p).sum(-1) {seconds['scipy'] * 1e3:.0f} ms",
        ratio(seconds["ours"], seconds["scipy"], 3),
    )


def _first_call() -> tuple[str, str, str, str]:
    code = (
        "import time; from structent import SpanningTreePartitions as S;"
        "from structent.structure.catalog import us_states; s = S(us_states(), 5, .5);"
        "t = time.perf_counter(); s.sample(0); print(time.perf_counter() - t)"
    )
    imported = (
        "import time; t = time.perf_counter(); import structent; print(time.perf_counter() - t)"
    )
    compiling = _in_fresh_process("import os; os.environ['NUMBA_CACHE_DIR'] = " + _EMPTY + code)
    cached, importing = _in_fresh_process(code), _in_fresh_process(imported)
    return (
        "first draw of a process",
        f"{compiling:.1f} s to compile {goal(compiling, 5, ' s')}",
        f"{cached * 1e3:.0f} ms from the cache on disk {goal(cached * 1e3, 500, ' ms')}",
        f"import structent {importing:.2f} s {goal(importing, 0.1, ' s')}",
    )


_EMPTY = "__import__('tempfile').mkdtemp();"


def _in_fresh_process(code: str) -> float:
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return float(result.stdout)


def _planar(n_nodes: int) -> LabelGraph:
    points = np.random.default_rng(0).random((n_nodes, 2))
    edges = {
        tuple(sorted(map(int, edge)))
        for triangle in Delaunay(points).simplices
        for edge in combinations(triangle, 2)
    }
    return LabelGraph(sorted(edges), range(n_nodes))


def _repeated(run: Callable[[], object], times: int) -> Callable[[], object]:
    def repeated() -> None:
        for _ in range(times):
            run()

    return repeated
