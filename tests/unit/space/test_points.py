"""Points: listing, completing, neighbours, samples, suggestions, keys."""

from collections import Counter
from itertools import product
from math import comb
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuner.errors import UsageError
from tuner.space.loading import load_space

ENGINE = """
backend = "engine"
[artifacts]
plain = []
small = ["shrink"]
[session.threads]
kind = "integer"
min = 1
max = 4
prior = 4
[session.spin]
kind = "choice"
values = [true, false]
when = "session.threads > 1"
[session.precision]
kind = "choice"
values = ["float32", "bfloat16"]
numerics = true
[[rule]]
require = "session.threads <= process.placement.n_cpus"
reason = "too many threads"
"""
STEP = 'step = "shrink"\n[artifact.shrink.level]\nkind = "choice"\nvalues = [1, 2]\nprior = 2\n'
SHARED = '[process.placement.n_cpus]\nkind = "integer"\nmin = 2\nmax = 4\nprior = 3\n'
OTHER = 'backend = "other"\n[session.threads]\nkind = "integer"\nmin = 1\nmax = 2\n'
HUGE = 'backend = "engine"\n' + "".join(
    f'[session.p{number}]\nkind = "integer"\nmin = 1\nmax = 10\n' for number in range(6)
)


@pytest.fixture
def space(resolve):
    """Return a space with two backends, a build step, a condition and a rule."""
    return resolve(ENGINE, STEP, SHARED, OTHER)


def key(point):
    """Return a point as something that can be counted."""
    return tuple(sorted(point.items()))


def test_listing(space):
    """All valid points are listed, each once, always in the same order."""
    points = space.enumerate()
    threads = {2: 1 + 2, 3: 1 + 2 + 2, 4: 1 + 2 + 2 + 2}
    assert len(points) == sum(threads.values()) * 2 * (1 + 2) + 2 * 3
    assert max(Counter(map(key, points)).values()) == 1
    assert points == space.enumerate()
    assert space.size() == len(points)
    assert space.is_listed()


def test_listed_points_are_valid(space):
    """No listed point breaks anything."""
    assert {space.violations(point) for point in space.enumerate()} == {()}


def test_listed_points_are_copies(space):
    """Changing a listed point does not change the space."""
    space.enumerate()[0].clear()
    assert space.enumerate()[0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"session.threads": 4, "process.placement.n_cpus": 2}, "too many threads"),
        ({"session.threads": 9}, "session.threads cannot be 9; it can be 1..4"),
        ({"session.threads": True}, "session.threads cannot be True; it can be 1..4"),
        ({"session.threads": None}, "session.threads is missing"),
        ({"session.threads": 1}, "session.spin has no effect with these values and must be left out"),
        ({"session.thread": 1}, "session.thread is not a parameter of engine here; nearest known: session.threads"),
        ({"artifact.shrink.level": 1}, "artifact.shrink.level has no effect with these values and must be left out"),
        ({"backend": "engin"}, "backend 'engin' is not in this space; nearest known: engine"),
    ],
)
def test_violations(space, change, reason):
    """Each way of being wrong has its reason."""
    point = space.complete({"backend": "engine"}) | change
    assert reason in space.violations({name: value for name, value in point.items() if value is not None})


def test_completion_starts_at_the_priors(space):
    """Missing values are the priors, repaired where a rule needs it."""
    assert space.complete({"backend": "engine"}) == {
        "backend": "engine",
        "artifact.chain": "plain",
        "process.placement.n_cpus": 3,
        "session.threads": 3,
        "session.spin": True,
        "session.precision": "float32",
    }


def test_completion_keeps_what_is_given(space):
    """Given values stay, and the others move to fit them."""
    point = space.complete({"backend": "engine", "session.threads": 4, "artifact.chain": "small"})
    assert (point["session.threads"], point["process.placement.n_cpus"]) == (4, 4)
    assert point["artifact.shrink.level"] == 2


def test_completion_leaves_out_what_is_not_active(space):
    """A given value without effect is not part of the point."""
    assert "session.spin" not in space.complete({"backend": "engine", "session.threads": 1, "session.spin": False})


@pytest.mark.parametrize(
    ("partial", "message"),
    [
        ({"backend": "no"}, "backend 'no' is not in this space"),
        ({"backend": "engine", "session.no": 1}, r"has no parameter 'session\.no' here"),
        ({"backend": "engine", "session.threads": 5}, r"session\.threads cannot be 5; it can be 1\.\.4"),
        ({"backend": "engine", "session.threads": 4, "process.placement.n_cpus": 2}, "no valid point has"),
    ],
)
def test_impossible_completion(space, partial, message):
    """What cannot be completed is refused."""
    with pytest.raises(UsageError, match=message):
        space.complete(partial)


def test_neighbours_differ_in_one_value(space):
    """Neighbours are valid and differ in one value and in what that makes active or not."""
    point = space.complete({"backend": "engine"})
    near = space.neighbours(point)
    assert {space.violations(other) for other in near} == {()}
    assert point not in near
    for other in near:
        changed = {name for name in point.keys() & other.keys() if point[name] != other[name]}
        assert len(changed) == 1
    assert {other["session.threads"] for other in near} == {1, 2, 3}


def test_neighbours_start_new_settings_at_their_prior(space):
    """What a changed value makes active starts where screening would."""
    near = space.neighbours(space.complete({"backend": "engine"}))
    assert [other["artifact.shrink.level"] for other in near if other["artifact.chain"] == "small"] == [2]


def test_neighbours_in_long_ranges_are_few(resolve):
    """In a long range the next, half, double and the ends are tried."""
    space = resolve('backend = "engine"\n[session.a]\nkind = "integer"\nmin = 0\nmax = 1000')
    point = {"backend": "engine", "artifact.chain": "source", "session.a": 100}
    assert [other["session.a"] for other in space.neighbours(point)] == [0, 50, 99, 101, 201, 1000]


def test_large_spaces_are_sampled(resolve):
    """A space above the limit is not listed; its samples are valid, different and repeatable."""
    space = resolve(HUGE + '[[rule]]\nrequire = "session.p0 < session.p1"\nreason = "r"')
    assert not space.is_listed()
    assert space.size() == pytest.approx(450_000, rel=0.1)
    points = space.sample(Random(1), 300)  # noqa: S311 - no secret
    assert len({key(point) for point in points}) == 300
    assert {space.violations(point) for point in points} == {()}
    assert points == space.sample(Random(1), 300)  # noqa: S311 - no secret
    with pytest.raises(UsageError, match="more than 20000"):
        space.enumerate()


def test_endless_ranges_do_not_hang(resolve):
    """A range that no one can list, under a rule that nothing keeps, ends at the allowance."""
    text = 'backend = "engine"\n[session.a]\nkind = "integer"\nmin = 1\nmax = 1000000000\n'
    assert not resolve(text).is_listed()
    assert not resolve(text + '[[rule]]\nrequire = "session.a < 1"\nreason = "r"').backends


def test_small_spaces_are_sampled_without_repeats(space):
    """A sample larger than the space is the space."""
    assert len(space.sample(Random(0), 10_000)) == space.size()  # noqa: S311 - no secret


def test_cost_of_listing_is_bounded(resolve):
    """Ten thousand of three million combinations cost a few looks a point: broken rules cut branches early."""
    rules = (f"session.p{number} <= session.p{number + 1}" for number in range(5))
    text = HUGE.replace("max = 10", "max = 12")
    space = resolve(text + "".join(f'[[rule]]\nrequire = "{rule}"\nreason = "r"\n' for rule in rules))
    assert space.size() == comb(17, 6)
    assert space.n_looks < 10 * space.size()


def test_suggestions_follow_the_choices(space):
    """A point is chosen value by value; values that do not vary are not asked for."""
    asked = {}

    def choose(name, domain):
        asked[name] = list(domain.values)
        return domain.values[-1]

    point = space.suggest(choose)
    assert point == {
        "backend": "other",
        "artifact.chain": "source",
        "process.placement.n_cpus": 4,
        "session.threads": 2,
    }
    assert asked == {
        "backend": ["engine", "other"],
        "process.placement.n_cpus": [2, 3, 4],
        "other/session.threads": [1, 2],
    }


def test_suggested_names_always_have_the_same_values(space):
    """However the choices go, one name means one list of values."""
    rng = Random(3)  # noqa: S311 - no secret
    seen = {}

    def choose(name, domain):
        assert seen.setdefault(name, list(domain.values)) == list(domain.values)
        return rng.choice(domain.values)

    points = [space.suggest(choose) for _ in range(200)]
    assert {reason for point in points for reason in space.violations(point)} <= {"too many threads"}
    assert "engine/session.threads" in seen


def test_suggested_names_differ_where_values_do(resolve):
    """A process parameter that one backend narrows is asked for under the backend's name."""
    space = resolve(ENGINE, STEP, SHARED, OTHER + "[process.placement.n_cpus]\nmax = 3")
    names = []
    space.suggest(lambda name, domain: names.append(name) or domain.values[0])
    assert "engine/process.placement.n_cpus" in names


def test_numerics_key(space):
    """Points share a key exactly if backend, chain, its settings and numerics values agree."""
    base = {"backend": "engine", "artifact.chain": "small"}
    one = space.numerics_key(space.complete(base))
    assert one == space.numerics_key(space.complete(base | {"session.threads": 1}))
    assert one != space.numerics_key(space.complete(base | {"session.precision": "bfloat16"}))
    assert one != space.numerics_key(space.complete(base | {"artifact.shrink.level": 1}))
    assert one != space.numerics_key(space.complete({"backend": "engine"}))


def test_artifact_points(space):
    """Screening has every backend, chain and precision once, the rest at the priors."""
    points = space.artifact_points()
    assert [(point["backend"], point["artifact.chain"], point.get("session.precision")) for point in points] == [
        ("engine", "plain", "float32"),
        ("engine", "plain", "bfloat16"),
        ("engine", "small", "float32"),
        ("engine", "small", "bfloat16"),
        ("other", "source", None),
    ]
    assert {space.violations(point) for point in points} == {()}


def test_description(space):
    """The description has the size, and every parameter with its values."""
    described = space.describe()
    assert (described["size"], described["is_exact"]) == (space.size(), True)
    engine = described["backends"][0]
    assert engine["chains"] == {"plain": [], "small": ["shrink"]}
    assert [parameter["values"] for parameter in engine["parameters"]][2] == "2..4"
    assert engine["rules"] == [{"require": "session.threads <= process.placement.n_cpus", "reason": "too many threads"}]


NAMES = ("a", "b", "c", "d")
WHENS = st.sampled_from([None, *(f"session.{name} {sign} 2" for name in NAMES for sign in ("==", ">", "!="))])
RULES = st.sampled_from(
    [f"session.{one} {sign} session.{two}" for one in NAMES for two in NAMES if one < two for sign in ("<=", "!=", ">")]
)


@st.composite
def spaces(draw):
    """Draw a small space with conditions on earlier parameters, and rules."""
    text = 'schema = "tuner.space/1"\nbackend = "engine"\n'
    for position, name in enumerate(NAMES[: draw(st.integers(1, 4))]):
        low = draw(st.integers(0, 3))
        text += f'[session.{name}]\nkind = "integer"\nmin = {low}\nmax = {low + draw(st.integers(0, 3))}\n'
        when = draw(WHENS)
        if when and NAMES.index(when[8]) < position:
            text += f'when = "{when}"\n'
    rules = [rule for rule in draw(st.lists(RULES, max_size=3)) if f"[session.{rule[-1]}]" in text]
    text += "".join(f'[[rule]]\nrequire = "{rule}"\nreason = "{rule}"\n' for rule in rules)
    with TemporaryDirectory() as directory:
        file = Path(directory) / "space.toml"
        file.write_text(text)
        return load_space([file]).resolve({}, {}, {})


def brute(space):
    """Return all valid points by trying every combination."""
    if not space.backends:
        return []
    engine = space.backends["engine"]
    options = [[None, *parameter.domain.values] for parameter in engine.parameters[1:]]
    names = [parameter.name for parameter in engine.parameters[1:]]
    base = {"backend": "engine", "artifact.chain": "source"}
    points = (
        base | {n: v for n, v in zip(names, values, strict=True) if v is not None} for values in product(*options)
    )
    return [point for point in points if not space.violations(point)]


@settings(deadline=None, max_examples=60)
@given(spaces())
def test_listing_equals_brute_force(space):
    """Cutting branches early loses no point and adds none."""
    assert sorted(map(key, space.enumerate())) == sorted(map(key, brute(space)))


@settings(deadline=None, max_examples=60)
@given(spaces(), st.data())
def test_points_survive_every_move(space, data):
    """Configurations, neighbours and completions of valid points lead to valid points."""
    points = space.enumerate()
    if not points:
        return
    point = data.draw(st.sampled_from(points))
    assert space.to_point(space.to_config(point)) == point
    assert all(near in points for near in space.neighbours(point))
    kept = data.draw(st.lists(st.sampled_from(sorted(point)), unique=True))
    completed = space.complete({name: point[name] for name in kept})
    assert completed in points
    active = {name for name in kept if name in completed}
    assert {name: completed[name] for name in active} == {name: point[name] for name in active}
