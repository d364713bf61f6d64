"""A space as text."""

import re
from io import StringIO

from rich.console import Console

from tuner.reporting.spaces import count_lines, render_space

HUGE = 'backend = "engine"\n' + "".join(
    f'[session.p{number}]\nkind = "integer"\nmin = 1\nmax = 10\n' for number in range(6)
)


def text_of(space):
    """Return the space as printed without colours."""
    console = Console(file=StringIO(), width=160, color_system=None)
    console.print(render_space(space))
    return console.file.getvalue()


def test_counts(on_host):
    """The counts say how many configurations there are and how many outputs differ."""
    space = on_host(2, isa=("amx_bf16", "avx512_vnni"))
    total, *backends = count_lines(space)
    assert total == f"{space.size()} configurations"
    assert [line.split(":")[0].strip() for line in backends] == sorted(space.backends)
    assert all(re.search(r": \d+, with \d+ different outputs to check$", line) for line in backends)


def test_estimates_are_called_so(resolve):
    """A space that is not listed has an estimate."""
    assert count_lines(resolve(HUGE)) == [
        "about 1000000 configurations (estimated) of engine; they are sampled, not listed"
    ]


def test_empty_space(resolve):
    """A space without points says so."""
    text = 'backend = "engine"\n[[rule]]\nrequire = "1 > 2"\nreason = "never"'
    assert "The space is empty on this host." in text_of(resolve(text))


def test_tables(on_host):
    """Parameters that vary stand in the table, constants below, and what was left out at the end."""
    text = text_of(on_host(2, isa=("avx2",)))
    assert "session.intra_op_threads" in text
    assert "chain int8: onnx_export > ort_sensitivity > ort_dynamic_int8" in text
    assert "process.placement.n_cpus=2" in text
    assert "note: pytorch: session.precision = bfloat16, bfloat16_autocast " in text


def test_rules_that_bind_nothing_are_not_shown(on_host):
    """A rule over constants, or over parameters that do not exist here, is not shown."""
    assert "rule: session.threads <=" not in text_of(on_host(2, isa=("avx2",)))
    assert "rule: session.threads <= process.placement.n_cpus" in text_of(on_host(2, threads_per_core=2))


def test_markup_is_not_interpreted(resolve):
    """Texts of a file are printed as they are."""
    text = 'backend = "engine"\n[session.a]\nkind = "choice"\nvalues = ["[red]x[/red]", "[/]"]'
    assert "[red]x[/red], [/]" in text_of(resolve(text))
