"""Boosting, against the definition, a slow boosting, and XGBoost's vector leaves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structent import (
    LabelGraph,
    Partition,
    SpanningTreePartitions,
    circular,
    ordinal,
    trivial,
)
from structent.kernels import fused, reference
from structent.kernels.coarse import CoarseLayouts
from structent.kernels.layout import Layout
from structent.structure import catalog
from structent.trees import boosting, forest, growing, sketch
from structent.trees.bins import Bins
from structent.trees.boosting import (
    Boosted,
    Booster,
    Boosting,
    Examples,
    Loss,
    best_smoothing,
    boost,
)
from structent.trees.growing import BinnedTable, Limits
from structent.trees.smoothing import Relatives
from tests.kernels.problems import members_of
from tests.trees import reference as slow

MONTHS = catalog.months()
CURVATURES = ("gradient", "bound", "fisher")
SEARCHES = ("full", "structured", "sketch")
START = np.linspace(-0.5, 0.5, 12)


def made_rows(seed=0, n=150, structure=MONTHS, n_columns=3, weights=None):
    """Rows of numbers, some missing, and of a category; the first column tells of the class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(structure.n_classes, size=n)
    features = rng.normal(size=(n, n_columns)).astype(np.float32)
    features[:, 0] += labels
    features[rng.random(features.shape) < 0.1] = np.nan
    features[:, -1] = rng.integers(5, size=n)
    bins = Bins.of(features, [False] * (n_columns - 1) + [True])
    weights = np.ones(n) if weights is None else weights
    return Examples(binned(bins, features), labels, weights.astype(np.float64))


def without_categories(rows):
    return rows._replace(table=rows.table.take(np.array([0, 1])))


def binned(bins, features, n_threads=1):
    return BinnedTable.of(bins.table(features, n_threads), bins.n_bins, bins.is_categorical)


def how(n_rounds=4, **changes):
    limits = changes.pop("limits", Limits(3))
    return Boosting(n_rounds, changes.pop("learning_rate", 0.3), limits, **changes)


def always(structure, sets=None):
    """The loss of a structure that stays."""
    layout = Layout.of(structure)
    loss = Loss(layout, None if sets is None else CoarseLayouts.of(layout, sets))
    return lambda _round: loss


def expected_gradient(structure, logits, rows, curvature="gradient", sets=()):
    """Gradient and curvature of each row by the readable formulas, times its weight."""
    members = members_of(sets, structure.n_classes)
    given = (rows.labels, structure.block_of, structure.weights)
    options = {"xp": np, "members": members}
    logits = logits.astype(np.float64)
    gradient = reference.gradient_from_logits(logits, *given, **options)
    hessian = {
        "gradient": lambda: abs(gradient),
        # A row that may be of any class says nothing, and has no curvature.
        "bound": lambda: (
            reference.bound_curvature(logits, structure.weights, xp=np)
            * ~members[rows.labels].all(axis=1)[:, None]
        ),
        "fisher": lambda: reference.fisher_curvature_of_codes(logits, *given, **options),
    }[curvature]()
    weights = rows.weights[:, None]
    return gradient * weights, hessian * weights


def after(trees, rows, n_trees=None):
    """The logits of the rows after some of the trees."""
    logits = np.tile(START.astype(np.float32), (len(rows.labels), 1))
    for tree in trees[:n_trees]:
        logits += slow.predicted(tree, rows.table.bins, np.zeros(12))
    return logits


def check_leaves(
    rows, trees, way, structure_of_round, sets=(), is_seen=None, smoother_of_round=lambda _: None
):
    """Every leaf of every tree is -rate * G / (H + lambda) at the logits before its tree."""
    for number, tree in enumerate(trees):
        gradient, hessian = expected_gradient(
            structure_of_round(number), after(trees, rows, number), rows, way.curvature, sets
        )
        lines = np.array([slow.walk(tree, bins)[0] for bins in rows.table.bins])
        for line, values in enumerate(tree.values):
            own = lines == line
            if is_seen is not None:
                own &= is_seen[number]
            wanted = slow.leaf_values(
                gradient[own], hessian[own], way.learning_rate, way.limits.reg_lambda,
                smoother_of_round(number),
            )  # fmt: skip
            # A gradient is exact to 2e-6, and its mean over the rows is divided by a curvature
            # of at least .01 a row, or by lambda = 1.
            np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=3e-5)


def grown(rows, way, loss_of_round, blocks_of_round=lambda _: None, relatives=lambda _: None):
    """The trees one by one."""
    booster = Booster(rows, START, way)
    for number in range(way.n_rounds):
        booster.add_tree(loss_of_round(number), blocks_of_round(number), relatives(number))
    return trees_of(booster.trees.first(way.n_rounds))


@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("structure", [MONTHS, trivial(range(12))], ids=["months", "trivial"])
def test_leaves_have_the_values_of_the_definition(structure, curvature):
    rows, way = made_rows(), how(curvature=curvature)
    trees = grown(rows, way, always(structure))
    check_leaves(rows, trees, way, lambda _round: structure)


@pytest.mark.parametrize("search", SEARCHES)
def test_leaves_have_the_full_gradient_whatever_the_splits_are_searched_on(search):
    rows, way = made_rows(), how(split_search=search)
    blocks = MONTHS.block_of[0]
    trees = grown(rows, way, always(MONTHS), lambda _: blocks if search == "structured" else None)
    check_leaves(rows, trees, way, lambda _round: MONTHS)


@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("loss", [MONTHS, trivial(range(12))], ids=["months", "plain"])
def test_leaves_borrow_from_similar_classes_whatever_the_loss_is(loss, curvature):
    seasons = circular(range(12), width=4, singleton_weight=0.1)
    sets = [(0, 1, 2), (5, 9)]
    rows, way = made_rows(), how(curvature=curvature, leaf_smoothing=0.6)
    rows.labels[::3] = 12 + np.arange(50) % 2
    trees = grown(rows, way, always(loss, sets), relatives=lambda _: Relatives.of(seasons))
    smoother = slow.similarity_smoother(seasons.similarity(), 0.6)
    check_leaves(rows, trees, way, lambda _: loss, sets, smoother_of_round=lambda _: smoother)


def test_leaves_borrow_from_the_blocks_that_are_drawn_for_the_round():
    ring = LabelGraph([(i, (i + 1) % 12) for i in range(12)])
    sampler = SpanningTreePartitions(ring, 4, 0.3)
    asked, rows, way = [], made_rows(), how(leaf_smoothing=0.4)

    def relatives_of_round(number):
        asked.append(number)
        return Relatives.of_draw(sampler.sample(number))

    made = boost(rows, START, always(MONTHS), way, relatives_of_round=relatives_of_round)
    assert asked == [0, 1, 2, 3]
    check_leaves(
        rows, trees_of(made.forest), way, lambda _: MONTHS,
        smoother_of_round=lambda number: slow.block_mean_smoother(sampler.sample(number), 0.4),
    )  # fmt: skip


def test_a_smoothing_of_0_changes_no_bit():
    rows, relatives = made_rows(), Relatives.of(MONTHS)
    without, zero, some = (
        boost(rows, START, always(MONTHS), how(leaf_smoothing=smoothing), **given).forest.to_bytes()
        for smoothing, given in (
            (0.0, {}),
            (0.0, {"relatives_of_round": lambda _: relatives}),
            (0.1, {"relatives_of_round": lambda _: relatives}),
        )
    )
    assert without == zero != some


def test_each_round_has_its_own_loss():
    structures = [MONTHS, trivial(range(12)), circular(range(12), width=4), circular(range(12))]
    rows, way = made_rows(), how()
    asked = []

    def loss_of_round(number):
        asked.append(number)
        return Loss(Layout.of(structures[number]))

    trees = boost(rows, START, loss_of_round, way).forest
    assert asked == [0, 1, 2, 3]
    check_leaves(rows, trees_of(trees), way, lambda number: structures[number])


def test_a_sampler_gives_the_loss_of_each_round():
    sampler = SpanningTreePartitions(catalog.california_counties(), 10, 0.5)
    structure = sampler.sample(0)
    start = np.zeros(structure.n_classes)
    rows = made_rows(structure=structure)
    made = boost(rows, start, lambda number: Loss(Layout.of(sampler.sample(number))), how())
    logits = slow.predicted(made.forest, rows.table.bins, start)
    before, later = (
        reference.structured_cross_entropy_from_logits(
            x.astype(float), rows.labels, structure.block_of, structure.weights, xp=np
        ).mean()
        for x in (np.zeros_like(logits), logits)
    )
    assert later < before


def trees_of(whole):
    """The trees of a forest one by one."""
    trees, line = [], 0
    for begin, end in zip(whole.first_node[:-1], whole.first_node[1:], strict=True):
        column, child = whole.column[begin:end], whole.child[begin:end].copy()
        child[column < 0] -= line
        n_leaves = int((column < 0).sum())
        trees.append(
            forest.Forest(
                np.array([0, end - begin]), column, child, whole.goes_left[begin:end],
                whole.gain[begin:end], whole.values[line : line + n_leaves],
            )
        )  # fmt: skip
        line += n_leaves
    return trees


@pytest.mark.parametrize("curvature", CURVATURES)
def test_labels_may_be_sets_of_classes(curvature):
    sets = [(0, 1, 2), (5, 9), tuple(range(12))]
    rows = made_rows()
    codes = np.where(np.arange(150) % 3 == 0, 12 + np.arange(150) % 2, rows.labels)
    codes[:5] = 14
    rows, way = rows._replace(labels=codes), how(curvature=curvature)
    trees = grown(rows, way, always(MONTHS, sets))
    check_leaves(rows, trees, way, lambda _round: MONTHS, sets)


@pytest.mark.parametrize("curvature", CURVATURES)
def test_rows_count_by_their_weights(curvature):
    weights = np.random.default_rng(0).integers(0, 5, size=150) / 2
    rows, way = made_rows(weights=weights), how(curvature=curvature)
    check_leaves(rows, grown(rows, way, always(MONTHS)), way, lambda _round: MONTHS)


@pytest.mark.parametrize("curvature", CURVATURES)
def test_a_weight_of_three_is_three_rows(curvature):
    times = np.random.default_rng(0).integers(1, 4, size=150)
    rows, way = without_categories(made_rows(weights=times)), how(curvature=curvature)
    again = np.repeat(np.arange(150), times)
    table = rows.table
    repeated = Examples(
        BinnedTable(table.bins[again], table.first_cell, table.is_categorical, table.has_missing),
        rows.labels[again],
        np.ones(len(again)),
    )
    found, wanted = (
        slow.predicted(boost(some, START, always(MONTHS), way).forest, table.bins, START)
        for some in (rows, repeated)
    )
    # The sums of at most 450 numbers in another order, over 4 rounds of values below .3.
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("max_leaves", [None, 5])
def test_boosting_is_that_of_the_search_of_all_splits(curvature, max_leaves):
    n_clear = 0
    for seed in range(4):
        rows = without_categories(made_rows(seed, n=40))
        way = how(3, curvature=curvature, limits=Limits(3, max_leaves))
        wanted, is_clear = slow.boosted_logits(
            rows.table,
            np.tile(START, (40, 1)),
            lambda _, logits: expected_gradient(MONTHS, logits, rows, curvature),  # noqa: B023
            3, 0.3, way.limits,
        )  # fmt: skip
        if is_clear:
            n_clear += 1
            trees = grown(rows, way, always(MONTHS))
            np.testing.assert_allclose(after(trees, rows), wanted, atol=1e-4)
    assert n_clear >= 2


def test_the_structured_search_is_that_of_the_sums_over_blocks():
    rows = without_categories(made_rows(n=60))
    blocks = Partition.from_blocks([range(4), range(4, 7), range(7, 12)]).block_of
    tree = grown(rows, how(1, split_search="structured"), always(MONTHS), lambda _: blocks)[0]
    gradient, hessian = expected_gradient(MONTHS, after([], rows), rows)
    is_in_block = blocks[:, None] == np.arange(3)
    wanted = slow.grow(
        rows.table, gradient @ is_in_block, hessian @ is_in_block, np.arange(60), Limits(3)
    )
    assert wanted.is_clear
    leaves = sorted(node.rows.tolist() for node in wanted.nodes if not node.left)
    lines = np.array([slow.walk(tree, bins)[0] for bins in rows.table.bins])
    assert sorted(np.flatnonzero(lines == line).tolist() for line in set(lines)) == leaves


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32),
    search=st.sampled_from(SEARCHES),
    subsample=st.sampled_from([1.0, 0.6, 0.1]),
    colsample=st.sampled_from([1.0, 0.5]),
    max_leaves=st.sampled_from([None, 4]),
)
def test_the_logits_in_training_are_those_of_the_forest_bit_for_bit(
    seed, search, subsample, colsample, max_leaves
):
    """Those of the rows that a tree has not seen, too."""
    rows = made_rows(seed)
    way = how(
        split_search=search, subsample=subsample, colsample=colsample, seed=seed,
        limits=Limits(3, max_leaves),
    )  # fmt: skip
    booster = Booster(rows, START, way)
    for _ in range(way.n_rounds):
        booster.add_tree(always(MONTHS)(0), MONTHS.block_of[1])
    margins = np.tile(START.astype(np.float32), (150, 1))
    booster.trees.first(way.n_rounds).add_to(margins, rows.table.bins)
    np.testing.assert_array_equal(booster._margins.view(np.uint32), margins.view(np.uint32))


def bytes_of(rows, way, **options):
    made = boost(rows, START, always(MONTHS), way, **options)
    return made.forest.to_bytes()


@pytest.fixture
def worth_threads(monkeypatch):
    """Make threads worth it for few rows."""
    for module, name in (
        (growing, "_WORTH_A_THREAD"), (boosting, "_WORTH_A_THREAD"), (fused, "_WORTH_A_THREAD"),
        (sketch, "_LEAST_ROWS"), (forest, "_LEAST_ROWS"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(boosting, "BLOCK", 7)
    monkeypatch.setattr(boosting, "_FEW_NUMBERS", 0)


@pytest.mark.usefixtures("worth_threads")
@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("search", SEARCHES)
def test_threads_and_runs_give_the_same_bytes(search, curvature):
    rows = made_rows(n=203)
    given = {
        "split_search": search, "curvature": curvature, "subsample": 0.7, "colsample": 0.7,
        "seed": 5,
    }  # fmt: skip
    options = {"blocks_of_round": lambda number: MONTHS.block_of[number]}
    one, again, two = (
        bytes_of(rows, how(n_threads=n_threads, **given), **options) for n_threads in (1, 1, 2)
    )
    assert one == again
    assert one == two


@pytest.mark.usefixtures("worth_threads")
def test_threads_give_the_same_bytes_with_sets_and_validation():
    sets = [(0, 1, 2), (5, 9)]
    rows = made_rows(n=203)
    rows.labels[::3] = 12 + np.arange(68) % 2
    loss = always(MONTHS, sets)
    made = [
        boost(
            rows, START, loss, how(6, n_threads=n_threads, early_stopping_rounds=2),
            validation=made_rows(1), plain=loss(0),
        )
        for n_threads in (1, 2)
    ]  # fmt: skip
    assert made[0].losses == made[1].losses
    assert made[0].forest.to_bytes() == made[1].forest.to_bytes()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 120),
    structure=st.sampled_from([MONTHS, ordinal(range(12)), trivial(range(12))]),
    way=st.builds(
        how,
        st.integers(1, 40),
        limits=st.builds(Limits, st.integers(1, 5), st.sampled_from([None, 3, 6])),
        subsample=st.sampled_from([0.4, 0.8, 1.0]),
        curvature=st.sampled_from(CURVATURES),
        split_search=st.sampled_from(["full", "sketch"]),
        leaf_smoothing=st.sampled_from([0.0, 0.6]),
        early_stopping_rounds=st.sampled_from([None, 1, 5]),
        seed=st.integers(0, 3),
    ),
    has_validation=st.booleans(),
)
def test_compiled_rounds_are_those_of_single_steps_bit_for_bit(
    seed, n, structure, way, has_validation
):
    rng = np.random.default_rng(seed)
    rows = made_rows(seed, n, weights=rng.choice([0.0, 1e-3, 1.0, 7.0], size=n) + (n == 1))
    rows.weights[0] = 1.0
    validation = made_rows(seed + 1, 30) if has_validation else None
    relatives = Relatives.of(structure)
    seen = []

    def boosted():
        seen.clear()
        made = boost(
            rows, START, always(structure), way, validation=validation,
            plain=always(trivial(structure.classes))(0), relatives_of_round=lambda _: relatives,
            on_round=lambda *told: seen.append(told),
        )  # fmt: skip
        return made.forest.to_bytes(), made.losses, made.shares_of_rows.tolist(), list(seen)

    compiled = boosted()
    again = boosted()  # from draws that were kept
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Booster, "can_compile", lambda *_: False)
        assert compiled == boosted()
    assert compiled == again


@pytest.mark.parametrize(
    "changes", [{"subsample": 0.5}, {"colsample": 0.5}, {"split_search": "sketch"}], ids=str
)
def test_what_is_drawn_is_a_function_of_the_seed(changes):
    rows, loss = made_rows(n_columns=6, structure=MONTHS), always(MONTHS)
    one, again, other = (
        boost(rows, START, loss, how(seed=seed, **changes)).forest.to_bytes() for seed in (1, 1, 2)
    )
    assert one == again
    assert one != other


@pytest.mark.parametrize("weight", [1.0, 1e-12, 1e12])
@pytest.mark.parametrize("search", SEARCHES)
def test_every_leaf_has_the_least_weight(search, weight):
    """The mean over the classes, whatever splits are searched on."""
    rows = made_rows(weights=np.full(150, weight))
    _, hessian = expected_gradient(MONTHS, after([], rows), rows)
    least = hessian.mean(axis=1).sum() / 8
    limits = Limits(6, min_child_weight=least, reg_lambda=weight)
    blocks = MONTHS.block_of[0] if search == "structured" else None
    way = how(1, split_search=search, limits=limits)
    (tree,) = grown(rows, way, always(MONTHS), lambda _: blocks)
    assert 4 <= len(tree.values) <= 8
    lines = np.array([slow.walk(tree, bins)[0] for bins in rows.table.bins])
    for line in range(len(tree.values)):
        assert hessian[lines == line].mean(axis=1).sum() >= least * (1 - 1e-5)


def test_a_tree_sees_a_share_of_the_rows():
    rows, way = made_rows(), how(subsample=0.5, seed=3)
    trees = grown(rows, way, always(MONTHS))
    is_seen = [
        np.isin(np.arange(150), boosting._sampled_rows(150, 0.5, np.random.default_rng((3, t)))[0])
        for t in range(4)
    ]
    assert all(50 < seen.sum() < 100 for seen in is_seen)
    assert len({seen.tobytes() for seen in is_seen}) == 4
    check_leaves(rows, trees, way, lambda _round: MONTHS, is_seen=is_seen)


def test_a_tiny_share_of_the_rows_is_one_row():
    trees = grown(made_rows(), how(subsample=1e-9), always(MONTHS))
    assert [len(tree.values) for tree in trees] == [1] * 4


def test_a_tree_sees_a_share_of_the_columns():
    trees = grown(made_rows(n_columns=8), how(12, colsample=0.25), always(MONTHS))
    used = [set(tree.column[tree.column >= 0].tolist()) for tree in trees]
    assert all(1 <= len(columns) <= 2 for columns in used)
    assert len(set.union(*used)) > 4


def expected_loss(rows, logits, structure):
    losses = reference.structured_cross_entropy_from_logits(
        logits.astype(np.float64), rows.labels, structure.block_of, structure.weights, xp=np
    )
    return np.average(losses, weights=rows.weights)


def test_the_validation_loss_is_that_of_the_trees_so_far():
    rows, validation = made_rows(0), made_rows(1, weights=np.arange(150) % 4)
    plain = trivial(range(12))
    made = boost(rows, START, always(MONTHS), how(5), validation=validation, plain=always(plain)(0))
    assert made.forest.n_trees == 5
    trees = trees_of(made.forest)
    wanted = [expected_loss(validation, after(trees, validation, n), plain) for n in range(1, 6)]
    np.testing.assert_allclose(made.losses, wanted, rtol=1e-5)


@pytest.mark.parametrize("patience", [1, 3])
def test_early_stopping_keeps_the_best_round(patience):
    rows = made_rows(n=40)
    validation = made_rows(7)
    validation = validation._replace(labels=np.random.default_rng(0).integers(12, size=150))
    rows.labels[:] = np.random.default_rng(1).integers(12, size=40)  # nothing can be learnt
    made = boost(
        rows, START, always(MONTHS),
        how(200, learning_rate=0.05, early_stopping_rounds=patience), validation=validation,
        plain=always(trivial(range(12)))(0),
    )  # fmt: skip
    best = int(np.argmin(made.losses))
    assert made.forest.n_trees == best + 1
    assert len(made.losses) == best + 1 + patience < 200
    all_trees = boost(rows, START, always(MONTHS), how(best + 1, learning_rate=0.05))
    assert made.forest.to_bytes() == all_trees.forest.to_bytes()


def test_without_early_stopping_all_rounds_are_kept():
    plain = always(trivial(range(12)))(0)
    rows = made_rows(n=40)
    made = boost(rows, START, always(MONTHS), how(9), validation=made_rows(3), plain=plain)
    assert made.forest.n_trees == len(made.losses) == 9


def test_the_callback_sees_every_round_and_its_loss():
    seen = []
    plain = always(trivial(range(12)))(0)
    made = boost(
        made_rows(), START, always(MONTHS), how(5), validation=made_rows(1), plain=plain,
        on_round=lambda *given: seen.append(given),
    )  # fmt: skip
    assert seen == list(enumerate(made.losses))


def test_without_validation_rows_the_callback_sees_no_loss():
    seen = []
    made = boost(
        made_rows(), START, always(MONTHS), how(3), on_round=lambda *given: seen.append(given)
    )
    assert seen == [(0, None), (1, None), (2, None)]
    assert made.losses == ()


def raced(row_losses):
    """What best_smoothing makes of candidates whose validation rows have these losses."""
    losses = dict(zip((0.0, 0.2, 0.4), np.array(row_losses), strict=True))
    asked = []

    def boosted(way):
        asked.append(way)
        of_rows = losses[way.leaf_smoothing]
        return Boosted(None, (9.0, of_rows.mean(), 5.0), of_rows / len(of_rows))

    found = best_smoothing(tuple(losses), [boosted], how(500, learning_rate=0.05))
    assert {way.n_rounds for way in asked} == {80}
    assert {way.learning_rate for way in asked} == {0.3}
    return found


def test_smoothing_must_win_by_more_than_a_standard_error():
    none = np.tile([1.0, 3.0], 50)
    differences = np.tile([0.1, 0.1, -0.1, 0.1], 25)  # mean .05, standard error .0087
    assert raced([none, none - differences, none]) == 0.2
    assert raced([none, none - differences, none - 1.1 * differences]) == 0.4
    of_two_rows = np.zeros(100)
    of_two_rows[[7, 20]] = 9.0, -4.0  # the same mean, standard error .098
    assert raced([none, none - of_two_rows, none]) == 0.0
    assert raced([[2.0], [1.0], [2.0]]) == 0.0  # one row has none
    assert raced([none, none + 0.1, none]) == 0.0


def test_the_shares_of_the_rows_are_those_of_the_best_round():
    rows, validation = made_rows(n=40), made_rows(1, weights=np.arange(150) % 4)
    way = how(60, learning_rate=1.0, early_stopping_rounds=5)
    plain = trivial(range(12))
    made = boost(rows, START, always(MONTHS), way, validation=validation, plain=always(plain)(0))
    best = int(np.argmin(made.losses))
    assert best < len(made.losses) - 1
    losses = reference.structured_cross_entropy_from_logits(
        after(trees_of(made.forest), validation).astype(np.float64), validation.labels,
        plain.block_of, plain.weights, xp=np,
    )  # fmt: skip
    wanted = losses * validation.weights / validation.weights.sum()
    np.testing.assert_allclose(made.shares_of_rows, wanted, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("structure", [MONTHS, ordinal(range(12))], ids=["blocks", "table"])
def test_smoothed_leaves_without_a_penalty_are_finite(structure, curvature):
    way = how(
        10, curvature=curvature, learning_rate=1.0, limits=Limits(3, reg_lambda=0.0),
        leaf_smoothing=np.nextafter(1, 0),
    )  # fmt: skip
    rows, relatives = made_rows(weights=np.arange(150) % 3 * 1e300), Relatives.of(structure)
    made = boost(rows, START, always(MONTHS), way, relatives_of_round=lambda _: relatives)
    assert np.isfinite(made.forest.values).all()


def test_ctrl_c_in_the_callback_ends_boosting():
    rounds = []

    def press(number, _loss):
        rounds.append(number)
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        boost(made_rows(), START, always(MONTHS), how(50), on_round=press)
    assert rounds == [0, 1, 2]


def finite_logits(rows, way, structure=MONTHS):
    made = boost(
        rows, np.zeros(structure.n_classes), always(structure), way, validation=rows,
        plain=always(structure)(0), blocks_of_round=lambda _: structure.block_of[0],
    )  # fmt: skip
    logits = slow.predicted(made.forest, rows.table.bins, np.zeros(structure.n_classes))
    assert np.isfinite(logits).all()
    assert np.isfinite(made.losses).all()
    content = made.forest.to_bytes()
    forest.Forest.from_bytes(content, rows.table.bins.shape[1], structure.n_classes)
    return logits


EVERY_WAY = pytest.mark.parametrize(
    "way",
    [
        how(split_search=search, curvature=curvature)
        for search in SEARCHES
        for curvature in ("gradient", "fisher")
    ],
    ids=lambda way: f"{way.split_search}-{way.curvature}",
)


@EVERY_WAY
@pytest.mark.parametrize(
    "some",
    [
        (0.0, 1.0), (0.0, 1e30), (1e-30, 1.0), (1e-30, 1e-30), (1e-300, 1.0), (1e-300, 1e-300),
        (1e30, 1.0), (1e30, 1e30), (1e300, 1.0), (1e300, 1e300), (1e-300, 1e300),
        (5e-324, 5e-324), (1.7e308, 1.7e308),
    ],
    ids=str,
)  # fmt: skip
def test_weights_of_any_size_give_finite_logits(way, some):
    weights = np.where(np.arange(150) % 2 == 0, *some)
    finite_logits(made_rows(weights=weights), way)


def logits_with_weight(weight):
    rows = made_rows(weights=np.full(150, weight))
    return slow.predicted(boost(rows, START, always(MONTHS), how()).forest, rows.table.bins, START)


@pytest.mark.parametrize("weight", [1e6, 1e8, 1e12, 1e18, 1e30, 1e300])
def test_weights_that_make_the_penalty_nothing_are_all_alike(weight):
    # Beside curvatures above 1e4 the penalty of 1 changes values by less than 1e-4 of them.
    np.testing.assert_allclose(logits_with_weight(weight), logits_with_weight(1e9), atol=1e-3)


def test_rows_without_weight_change_nothing():
    rows = made_rows(weights=(np.arange(150) % 3 > 0).astype(float))
    counted = np.flatnonzero(rows.weights)
    table = rows.table
    only = Examples(
        BinnedTable(table.bins[counted], table.first_cell, table.is_categorical, table.has_missing),
        rows.labels[counted],
        rows.weights[counted],
    )
    found, wanted = (
        slow.predicted(boost(some, START, always(MONTHS), how()).forest, table.bins[counted], START)
        for some in (rows, only)
    )
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_validation_rows_that_all_have_no_weight_give_one_sentence():
    nothing = made_rows(1, weights=np.zeros(150))
    plain = always(trivial(range(12)))(0)
    with pytest.raises(ValueError, match="weight"):
        boost(made_rows(), START, always(MONTHS), how(), validation=nothing, plain=plain)


@EVERY_WAY
def test_a_class_without_rows_gives_finite_logits(way):
    rows = made_rows()
    rows.labels[rows.labels == 4] = 5
    finite_logits(rows, way)


@EVERY_WAY
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_few_rows_give_finite_logits(way, n):
    finite_logits(made_rows(n=n), way)


@EVERY_WAY
def test_a_constant_column_and_one_without_values_give_finite_logits(way):
    rng = np.random.default_rng(0)
    features = np.full((80, 4), 3, np.float32)
    features[:, 1] = np.nan
    features[:, 2] = rng.normal(size=80)
    features[:, 3] = np.where(np.arange(80) % 2, np.inf, 1)
    rows = Examples(binned(Bins.of(features), features), rng.integers(12, size=80), np.ones(80))
    finite_logits(rows, way)


def test_columns_that_tell_nothing_give_the_classes_shares_alone():
    features = np.full((90, 2), 3, np.float32)
    features[:, 1] = np.nan
    labels = np.repeat([0, 1, 2], [20, 30, 40])
    rows = Examples(binned(Bins.of(features), features), labels, np.ones(90))
    made = boost(rows, np.zeros(3), always(trivial(range(3))), how(300, curvature="bound"))
    assert (made.forest.column == -1).all()
    logits = slow.predicted(made.forest, rows.table.bins[:1], np.zeros(3))[0].astype(float)
    np.testing.assert_allclose(
        np.exp(logits) / np.exp(logits).sum(), [2 / 9, 3 / 9, 4 / 9], atol=1e-3
    )


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("curvature", CURVATURES)
def test_without_a_penalty_logits_are_finite(search, curvature):
    way = how(
        10, split_search=search, curvature=curvature, learning_rate=1.0,
        limits=Limits(3, reg_lambda=0.0),
    )  # fmt: skip
    finite_logits(made_rows(weights=np.arange(150) % 3), way)


@pytest.mark.requires("xgboost")
@pytest.mark.filterwarnings("ignore")  # of XGBoost itself
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("max_depth", [2, 4])
def test_plain_boosting_is_that_of_the_vector_leaves_of_xgboost(max_depth, missing):
    import xgboost

    rng = np.random.default_rng(0)
    n, k, n_rounds = 300, 5, 5
    features = rng.integers(30, size=(n, 4)).astype(np.float32)
    labels = (features[:, 0] // 7 + rng.integers(2, size=n)).astype(np.int64) % k
    features[rng.random((n, 4)) < missing] = np.nan
    plain = trivial(range(k))
    bins = Bins.of(features)
    rows = Examples(binned(bins, features), labels, np.ones(n))
    made = boost(rows, np.zeros(k), always(plain), how(n_rounds, limits=Limits(max_depth)))
    found = slow.predicted(made.forest, rows.table.bins, np.zeros(k))

    def objective(margins, _data):
        gradient, hessian = expected_gradient(plain, margins.reshape(n, k), rows)
        return gradient.astype(np.float32), hessian.astype(np.float32)

    matrix = xgboost.DMatrix(features, label=labels)
    theirs = xgboost.train(
        {
            "multi_strategy": "multi_output_tree", "tree_method": "hist", "max_bin": 256,
            "max_depth": max_depth, "eta": 0.3, "lambda": 1.0, "min_child_weight": 0.0,
            "objective": "multi:softprob", "num_class": k, "base_score": [0.0] * k, "nthread": 1,
        },
        matrix, n_rounds, obj=objective,
    )  # fmt: skip
    wanted = theirs.predict(matrix, output_margin=True)
    # Both round the sums of at most 300 gradients, over 5 rounds.
    np.testing.assert_allclose(found, wanted, atol=1e-4)
