"""What the command line says when it is interrupted."""

import pytest

from tuner.cli import app


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((), "nothing was changed"),
        (("show", "p.json"), "nothing was changed"),
        (("tune", "--model", "m"), "what was measured is kept, the same command goes on"),
        (("retune", "p.json"), "what was measured is kept, the same command goes on"),
        (("--model", "m"), "what was measured is kept, the same command goes on"),
    ],
)
def test_interrupted(capsys, monkeypatch, argv, said):
    """One line, also before any command is known; only a search has something to go on with."""

    def interrupt(_argv):
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "dispatch", interrupt)
    assert app.run(argv) == app.EXIT_INTERRUPTED
    assert capsys.readouterr().err == f"autotune: interrupted; {said}\n"
