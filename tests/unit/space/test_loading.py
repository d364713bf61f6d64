"""Files: what is refused, how they extend each other, and the digest."""

import pytest

from tuner.errors import UsageError
from tuner.space.loading import load_space

ENGINE = """
backend = "engine"
[session.threads]
kind = "integer"
min = 1
max = 4
"""
STEP = """
step = "shrink"
[artifact.shrink.level]
kind = "choice"
values = [1, 2]
"""
MODE = '[session.mode]\nkind = "choice"\nvalues = ["a", "b"]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sesion = 1", r"1\.toml: unknown key 'sesion'; nearest known: session"),
        ('backend = "a"\nstep = "b"', r"1\.toml: step: a file describes a backend or a step, not both"),
        ("backend = 3", r"1\.toml: backend: 3 is not a name"),
        ('backend = "a b"', r"1\.toml: backend: 'a b' is not a name"),
        ('[session.x]\nkind = "choice"\nvalues = [1]', r'1\.toml: session: belongs to a file with backend = "…"'),
        ('[artifact.a.x]\nkind = "choice"\nvalues = [1]', r'1\.toml: artifact: belongs to a file with step = "…"'),
        ('backend = "a"\nsession = 3', r"1\.toml: session: must be a table"),
        ('backend = "a"\n[session.x]', r"1\.toml: session\.x\.kind: must be one of"),
        (
            'backend = "a"\n[session.x]\nkind = "choice"\n[session.x.y]\nz = 1',
            r"session\.x\.y: a parameter has no tables",
        ),
        (
            'backend = "a"\n[session.x.y]\nkind = "choice"\nvalues = [1]',
            r"session\.x\.y: a session parameter is session",
        ),
        (
            'backend = "a"\n[artifact.x]\nkind = "choice"\nvalues = [1]',
            r"artifact\.x: an artifact parameter is artifact",
        ),
        ('step = "a"\n[artifact.b.x]\nkind = "choice"\nvalues = [1]', r"artifact\.b\.x: a file of step a holds"),
        ('[process.placement.n_cpu]\nkind = "choice"\nvalues = [1]', r"nearest known: process\.placement\.n_cpus"),
        (
            '[process.memory_policy]\nkind = "choice"\nvalues = ["bnd"]',
            r"1\.toml: process\.memory_policy\.values: 'bnd'",
        ),
        ('[process.placement.n_cpus]\nkind = "integer"\nmin = 0\nmax = 2', r"process\.placement\.n_cpus\.min: 0"),
        ('[process.placement.n_cpus]\nkind = "real"\nmin = 1\nmax = 2', r"n_cpus\.kind: no process setting is a real"),
        (ENGINE + "[artifacts]\na = 3", r"1\.toml: artifacts\.a: must be a list of step names"),
        (ENGINE + '[artifacts]\na = ["x", "x"]', r"artifacts\.a: a step stands there twice"),
        (ENGINE + '[artifacts]\na = ["shrnk"]', r"1\.toml: artifacts\.a: no search-space file describes step 'shrnk'"),
        (ENGINE + '[artifact.chain]\nvalues = ["b"]', r"artifact\.chain\.values: no chain 'b'; known: source"),
        (ENGINE + '[artifact.chain]\nwhen = "1 == 1"', r"artifact\.chain\.when: the chain is chosen first"),
        (ENGINE + '[artifact.x.y]\nkind = "choice"\nvalues = [1]', r"artifact\.x\.y: no chain of engine has that step"),
        (ENGINE + "rule = 3", r"1\.toml: session\.threads: unknown key 'rule'"),
        (ENGINE + "[[rule]]\nrequire = '1 == 1'", r"1\.toml: rule 1\.reason: must be a text"),
        (ENGINE + "[[rule]]\nreason = 'r'", r"1\.toml: rule 1\.require: must be a text"),
        (ENGINE + "[[rule]]\nrequire = '1 == 1'\nreson = 'r'", r"rule 1: unknown key 'reson'; nearest known: reason"),
        (
            ENGINE + "[[rule]]\nrequire = 'session.thread > 1'\nreason = 'r'",
            r"1\.toml: rule 1\.require: unknown parameter 'session\.thread'; nearest known: session\.threads",
        ),
        (
            ENGINE + "[[rule]]\nrequire = 'host.cpus > 1'\nreason = 'r'",
            r"1\.toml: rule 1\.require: unknown fact 'host\.cpus'",
        ),
        (ENGINE + MODE + 'when = "session.treads > 1"', r"session\.mode\.when: unknown parameter 'session\.treads'"),
        (
            ENGINE.replace("4", '"session.threads"'),
            r"1\.toml: session\.threads\.max: a bound names facts only, not session\.threads",
        ),
        (ENGINE.replace("4", '"host.cpubudget"'), r"session\.threads\.max: .* nearest known: host\.cpu_budget"),
        (ENGINE + MODE + "when = \"session.mode == 'a'\"", r"session\.mode\.when: conditions go in a circle"),
        (STEP.replace("[1, 2]", "[]"), r"1\.toml: artifact\.shrink\.level\.values: a choice needs"),
        ('[process.env.X]\nkind = "choice"\nvalues = [1]\nwhen = "session.no > 1"', r"unknown parameter 'session\.no'"),
    ],
)
def test_refusal(load, text, message):
    """What a file gets wrong is refused in one line with file and key."""
    with pytest.raises(UsageError, match=message) as caught:
        load(text)
    assert "\n" not in str(caught.value)


def test_schema_is_required(tmp_path):
    """A file of another schema is refused."""
    file = tmp_path / "a.toml"
    file.write_text('schema = "tuner.space/2"')
    with pytest.raises(UsageError, match=r'schema: write schema = "tuner.space/1", not \'tuner.space/2\''):
        load_space([file])


@pytest.mark.parametrize("data", [b"a = ", b"\xff\xfe", b"a = " + b"[" * 5000, b"[a]\n[a]"])
def test_broken_toml(tmp_path, data):
    """A file that is no TOML is refused, however it is broken."""
    file = tmp_path / "a.toml"
    file.write_bytes(data)
    with pytest.raises(UsageError, match=r"a\.toml: "):
        load_space([file])


def test_deep_tables_are_refused(load):
    """Tables nested without end are refused, not followed."""
    with pytest.raises(UsageError, match="must be a table of parameters"):
        load('backend = "a"\nsession.' + ".".join("a" * 900) + " = 1")


def test_large_files_are_refused(tmp_path):
    """A file above the limit is not parsed."""
    file = tmp_path / "a.toml"
    file.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(UsageError, match="has at most 1048576"):
        load_space([file])


def test_missing_file(tmp_path):
    """A file that does not exist is named."""
    with pytest.raises(UsageError, match=r"no\.toml: cannot be read: No such file"):
        load_space([tmp_path / "no.toml"])


def test_too_many_parameters(load):
    """A backend with more parameters than can be searched is refused."""
    tables = "".join(f'[session.p{number}]\nkind = "choice"\nvalues = [1]\n' for number in range(201))
    with pytest.raises(UsageError, match="202 parameters; at most 200"):
        load(f'backend = "a"\n{tables}')


def test_later_file_wins_key_by_key(resolve):
    """A later file of the same backend replaces the keys that it names and keeps the others."""
    space = resolve(ENGINE, 'backend = "engine"\n[session.threads]\nmax = 2')
    assert [point["session.threads"] for point in space.enumerate()] == [1, 2]


def test_later_kind_replaces_the_table(resolve):
    """A later table with a kind stands for itself."""
    space = resolve(ENGINE, 'backend = "engine"\n[session.threads]\nkind = "choice"\nvalues = [3]')
    assert [point["session.threads"] for point in space.enumerate()] == [3]


def test_later_rules_add_up(resolve):
    """Rules of a later file bind as well."""
    rule = 'backend = "engine"\n[[rule]]\nrequire = "session.threads != 2"\nreason = "no"'
    assert [point["session.threads"] for point in resolve(ENGINE, rule).enumerate()] == [1, 3, 4]


def test_backend_narrows_its_steps(resolve):
    """A backend's own file has the last word on settings of the steps that it uses."""
    engine = 'backend = "engine"\n[artifacts]\na = ["shrink"]\n[artifact.shrink.level]\nvalues = [2]'
    assert [point["artifact.shrink.level"] for point in resolve(STEP, engine).enumerate()] == [2]


def test_conditions_may_name_later_parameters(resolve):
    """A parameter stands after those that its condition names, whatever the order in the file."""
    text = 'backend = "a"\n[session.b]\nkind = "choice"\nvalues = [1, 2]\nwhen = "session.mode == \'a\'"\n' + MODE
    assert resolve(text).parameters("a") == ("artifact.chain", "session.mode", "session.b")


def test_digest_ignores_order_and_spelling(load):
    """The digest is over the content: not the order of files or tables, not comments, not white space."""
    one = load(ENGINE + MODE, STEP)
    other = load(STEP, '# comment\nbackend="engine"\n' + MODE + ENGINE.replace('backend = "engine"', "\n"))
    assert one.digest() == other.digest()


def test_digest_follows_the_content(load):
    """Another bound gives another digest."""
    assert load(ENGINE).digest() != load(ENGINE.replace("4", "5")).digest()


def test_shared_rule_may_name_parameters_of_one_backend(resolve):
    """A rule for every backend binds those that have the parameter."""
    rule = '[[rule]]\nrequire = "session.threads == 1"\nreason = "r"'
    other = 'backend = "other"\n' + MODE
    points = resolve(ENGINE, other, rule).enumerate()
    assert [point.get("session.threads") for point in points] == [1, None, None]
