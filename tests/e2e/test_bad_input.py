"""What a user may get wrong: each ends with its exit code and one line that names the cause and the way out."""

import json
import re
import subprocess
import sys

import pytest

from tuner.cli.app import run

CONFIG = {"architectures": ["BertModel"], "model_type": "bert", "hidden_size": 8, "max_position_embeddings": 512}
EXTERNAL = """
import sys
import numpy as np
from onnx import TensorProto as T, helper as h, numpy_helper, save
weight = numpy_helper.from_array(np.zeros((16, 600), np.float32), "w")
node = h.make_node("MatMul", ["x", "w"], ["y"])
inputs = [h.make_tensor_value_info("x", T.FLOAT, ["batch", 16])]
outputs = [h.make_tensor_value_info("y", T.FLOAT, ["batch", 600])]
graph = h.make_graph([node], "g", inputs, outputs, [weight])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8)
save(model, sys.argv[1], save_as_external_data=True, location="weights.data", size_threshold=0)
"""


@pytest.fixture
def workplace(place, tiny_onnx):
    """Return an empty current directory with a good model in it, and a cache of its own."""
    (place / "good.onnx").write_bytes(tiny_onnx.read_bytes())
    return place


def directory_with(place, weights=None, config=CONFIG):
    """Make a Hugging Face directory with these weights."""
    (place / "m").mkdir()
    (place / "m" / "config.json").write_text(json.dumps(config))
    if weights is not None:
        (place / "m" / "model.safetensors").write_bytes(weights)


def safetensors(shape, n_bytes):
    """Return a safetensors file whose header announces a shape, with so many bytes of tensors."""
    header = json.dumps({"w": {"dtype": "F32", "shape": shape, "data_offsets": [0, n_bytes]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(n_bytes)


@pytest.mark.parametrize(
    ("argv", "pattern"),
    [
        (["tun", "--model", "x"], r"unknown command 'tun': did you mean tune\?"),
        (["frobnicate"], r"unknown command 'frobnicate': known: tune, show"),
        (["tune"], r"--model"),
        (["--model", "good.onnx", "--budgett", "5m"], r"unknown option --budgett: did you mean --budget\?"),
        (["--budgett", "5m"], r"unknown option --budgett: did you mean --budget\?"),
        (["tune", "--zzz"], r"unknown option --zzz"),
        (["--model", "good.onnx", "--target", "p500"], r"unknown target 'p500': did you mean p50\?"),
        (["--model", "good.onnx", "--backends", "onnxruntim"], r"unknown backend 'onnxruntim': did you mean onnx"),
        (["--model", "good.onnx", "--backends", ""], r"--backends names none: choose from "),
        (["--model", "good.onnx", "--task", "feature-extracton"], r"unknown task 'feature-extracton': did you mean"),
        (["--model", "good.onnx", "--sampler", "grid"], r"unknown sampler 'grid': choose one of"),
        (["--model", "good.onnx", "--budget", "soon"], r"--budget 'soon': write a duration"),
        (["--model", "good.onnx", "--lengths", "0"], r"--lengths: at least one length above zero"),
        (["--model", "good.onnx", "--batch-size", "0"], r"batch_size: Input should be greater than or equal to 1"),
        (["--model", "good.onnx", "--batch-size", "two"], r"batch-size"),
        (["--model", "good.onnx", "--trials", "0"], r"trials: Input should be greater than or equal to 1"),
        (["--model", "good.onnx", "--max", "p99"], r"write --max PATH=VALUE"),
        (["--model", "good.onnx", "--max", "p98=1s"], r"unknown path 'p98': did you mean p9"),
        (["--model", "good.onnx", "--min", "fidelity.cosine_min=much"], r"'much' is not a figure with a unit"),
        (["--model", "good.onnx", "--constraint", "load_s"], r"no operator: quote it"),
        (["--model", "good.onnx", "--fix", "session.spinning"], r"write --fix KEY=VALUE"),
        (["--model", "good.onnx", "--fix", "session.allow_spining=false"], r"session\.allow_spining.*allow_spinning"),
        (["--model", "good.onnx", "--space", "none.toml"], r"--space none\.toml: no such file"),
        (["--model", "good.onnx", "--baseline", "none.json"], r"--baseline none\.json: cannot be read"),
        (["--model", "good.onnx", "--data", "none.jsonl"], r"none\.jsonl"),
        (["--model", "./no/such/dir"], r"directory does not exist: \./no/such/dir"),
        (["--model", "no such model"], r"directory does not exist: no such model"),
        (["--model", "gone.onnx"], r"file does not exist: gone\.onnx"),
        (["--model", ""], r"model"),
        (["--model", "pkg:no_such_package/model"], r"no installed package 'no_such_package'"),
        (["--model", "good.onnx", "--output", "."], r"is a directory: name a file"),
        (["--model", "good.onnx", "--output", "good.onnx/p.json"], r"--output: .* cannot be written"),
        (["show"], r"what|WHAT"),
        (["show", "none.json"], r"none\.json: no such profile or study directory"),
        (["show", "good.onnx"], r"good\.onnx: not JSON"),
        (["show", "."], r"no study here"),
        (["check", "none.json"], r"none\.json: no such profile"),
        (["exec", "none.json", "--", "true"], r"none\.json: no such profile"),
        (["exec", "none.json"], r"the command to run is missing"),
        (["bench", "none.json", "--processes", "1"], r"--processes: at least two are needed"),
        (["host", "--affinity", "x-y"], r"x-y"),
        (["host", "--root", "./no/such/root"], r"no/such/root"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("workplace")
def test_usage(refusal, argv, pattern):
    """Whatever is wrong on the command line is exit code 2, said before any process is started."""
    assert re.search(pattern, refusal(*argv))


def test_empty_directory(refusal, workplace):
    """An empty directory is no model."""
    (workplace / "m").mkdir()
    assert re.search(r"directory is empty: m", refusal("--model", "m"))


def test_directory_without_weights(refusal, workplace):
    """A directory without weights says which file is expected."""
    directory_with(workplace)
    assert re.search(r"no weights in .*m: expected model\.safetensors", refusal("--model", "m"))


def test_safetensors_cut_short(refusal, workplace):
    """A truncated file is named with both sizes (case C42)."""
    directory_with(workplace, safetensors([250], 1000)[:-500])
    assert re.search(r"model\.safetensors is truncated: header says \d+ bytes, file has \d+", refusal("--model", "m"))


def test_git_lfs_pointer(refusal, workplace):
    """A pointer in place of the weights says what to do (case C42)."""
    directory_with(workplace, b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 90868376\n")
    assert re.search(
        r"model\.safetensors \(\d+ bytes\) looks like a Git LFS pointer: run git lfs pull", refusal("--model", "m")
    )


def test_model_too_large(refusal, workplace):
    """A model that cannot fit is refused with the estimate, before anything is loaded (case C14)."""
    directory_with(workplace, safetensors([10**7, 10**6], 4))
    assert re.search(
        r"m needs about \d+\.\d GiB .* but \d+\.\d GiB are available: use a smaller model", refusal("--model", "m")
    )


def test_length_above_the_models(refusal, workplace):
    """A length that the model cannot take is refused with its limit."""
    directory_with(workplace, safetensors([1], 4))
    assert re.search(r"--lengths 600 is above the 512 tokens that m takes", refusal("--model", "m", "--lengths", "600"))


def test_missing_external_data(refusal, workplace):
    """An ONNX file without its weights names the file that is missing (case C38)."""
    subprocess.run([sys.executable, "-P", "-c", EXTERNAL, str(workplace / "big.onnx")], check=True)
    (workplace / "weights.data").unlink()
    assert re.search(r"weights\.data", refusal("--model", "big.onnx"))


def test_damaged_onnx(refusal, workplace):
    """A file that is no ONNX graph is refused."""
    (workplace / "bad.onnx").write_bytes(b"\x00\x01not a graph")
    assert re.search(r"bad\.onnx", refusal("--model", "bad.onnx"))


@pytest.mark.parametrize(
    ("name", "content", "pattern"),
    [
        ("d.jsonl", b"", r"d\.jsonl has no usable rows"),
        ("d.jsonl", b'{"label": 1}\n{"text": "  "}\n', r"d\.jsonl has no usable rows"),
        ("d.jsonl", b'{"text": "a"}\n\n{"text": \n', r"d\.jsonl, line 3: not JSON"),
        ("d.jsonl", b'{"text": "a"}\n["b"]\n', r"d\.jsonl, line 2: not an object"),
        ("d.txt", b"a\n\xff\xfe\n", r"d\.txt, line 2: not UTF-8"),
        ("d.txt", b"x" * 100_000_000, r"d\.txt, line 1: longer than 8 MiB"),
        ("d.npz", b"PK", r"d\.npz is no \.npz file"),
        ("d.csv", b"a,b\n", r"d\.csv: data must be \.jsonl, \.txt or \.npz"),
    ],
    ids=["empty", "no text", "bad JSON", "no object", "encoding", "100 MB line", "no archive", "suffix"],
)
def test_data(refusal, workplace, name, content, pattern):
    """Unusable data is refused with file and line, before any process is started."""
    (workplace / name).write_bytes(content)
    assert re.search(pattern, refusal("--model", "good.onnx", "--data", name))


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("schema = 1", r"s\.toml.*schema"),
        (
            'schema = "tuner.space/1"\nbackend = "onnxruntime"\n[session.x]\nkind = "choice"\nvalue = [1]\n',
            r"s\.toml.*value",
        ),
        ('schema = "tuner.space/1"\n[[rule]]\nrequire = "__import__(1)"\nreason = "x"\n', r"s\.toml"),
        ("= broken", r"s\.toml"),
        (
            (
                'schema = "tuner.space/1"\nbackend = "onnxruntime"\n'
                '[session.denormal_as_zero]\nkind = "choice"\nvalues = [true, false]\n'
            ),
            r"session\.denormal_as_zero can change outputs: add numerics = true",
        ),
    ],
    ids=["schema", "key", "call", "syntax", "numerics"],
)
def test_space_file(refusal, workplace, text, pattern):
    """A bad space file is refused with file and key."""
    (workplace / "s.toml").write_text(text)
    assert re.search(pattern, refusal("--model", "good.onnx", "--space", "s.toml"))


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"backend": "fake", "sesion": {}}',
        "[]",
        '{"backend": "no_such_backend"}',
        '{"backend": "fake", "session": {"treads": 1}}',
    ],
)
def test_baseline_file(refusal, workplace, text):
    """A baseline that is no config, or of an unknown backend, is refused with its file."""
    (workplace / "b.json").write_text(text)
    assert re.search(r"b\.json", refusal("--model", "good.onnx", "--baseline", "b.json"))


def test_cache_that_cannot_be_written(refusal, workplace):
    """A cache directory below a file is exit code 3 and names the option."""
    (workplace / "file").write_text("")
    assert re.search(
        r"name another with --cache-dir", refusal("--model", "good.onnx", "--cache-dir", "file/cache", code=3)
    )


def test_study_that_cannot_be_written(refusal, workplace):
    """A study directory below a file is exit code 3 and names the option."""
    (workplace / "file").write_text("")
    assert re.search(r"name another with --study", refusal("--model", "good.onnx", "--study", "file/study", code=3))


@pytest.mark.usefixtures("workplace")
def test_backend_that_does_not_take_the_model(refusal):
    """A backend that the user named and that cannot run the model is exit code 3 with the reason."""
    assert re.search(
        r"backend pytorch: .*leave it out", refusal("--model", "good.onnx", "--backends", "pytorch", code=3)
    )


def test_no_arguments_is_help(capsys, workplace):
    """Without arguments the help is printed."""
    del workplace
    assert (run([]), "tune" in capsys.readouterr().out) == (0, True)


@pytest.mark.parametrize("argv", [["--help"], ["tune", "--help"], ["show", "--help"], ["--version"]])
def test_help_and_version(capsys, argv):
    """Help and version go to standard output with exit code 0."""
    assert (run(argv), capsys.readouterr().out != "") == (0, True)


def test_host_json(capsys):
    """`host --json` prints one document."""
    assert (run(["host", "--json"]), json.loads(capsys.readouterr().out)["cpu_budget"] >= 1) == (0, True)


def test_space_json(capsys):
    """`show space --json` prints one document."""
    code = run(["show", "space", "--backends", "fake", "--json"])
    assert (code, json.loads(capsys.readouterr().out)["size"] >= 3) == (0, True)


def test_traceback_only_on_request(capsys, monkeypatch):
    """With AUTOTUNE_DEBUG=1 an error has its traceback."""
    monkeypatch.setenv("AUTOTUNE_DEBUG", "1")
    run(["show", "none.json"])
    assert "Traceback" in capsys.readouterr().err


@pytest.fixture
def stranger(workplace, profile_document, tiny_onnx):
    """Return a function that writes a profile as a stranger might send it."""

    def make(artifacts=(), **process):
        best = profile_document()["best"] | {"artifacts": list(artifacts)}
        best["config"]["process"] |= process
        model = {"source": str(tiny_onnx), "sha256": "0" * 64, "task": "forward"}
        (workplace / "p.json").write_text(json.dumps(profile_document(best=best, model=model)))

    return make


@pytest.mark.parametrize("command", ["show", "check", "exec"])
@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        ({"env": {"LD_PRELOAD": "/x/evil.so"}}, r"LD_PRELOAD"),
        ({"env": {"PYTHONPATH": "."}}, r"PYTHONPATH"),
        ({"artifacts": [{"path": "/etc/passwd", "sha256": "0", "bytes": 1}]}, r"only relative paths"),
        ({"artifacts": [{"path": "../../x", "sha256": "0", "bytes": 1}]}, r"only relative paths"),
    ],
    ids=["LD_PRELOAD", "PYTHONPATH", "absolute", "dots"],
)
def test_profile_of_a_stranger(refusal, stranger, command, change, pattern):
    """No command uses a profile that sets loader variables or points out of its directory."""
    stranger(**change)
    assert re.search(pattern, refusal(command, "p.json", *(["--", "true"] if command == "exec" else [])))


def test_allocator_that_is_a_path(refusal, stranger):
    """`exec` preloads no file that a profile names."""
    stranger(allocator="/x/evil.so")
    line = refusal("exec", "p.json", "--", "true")
    assert re.search(r"process\.allocator '/x/evil\.so' in the profile: only a name is allowed", line)


def test_program_that_does_not_exist(refusal, stranger):
    """`exec` names a program that cannot be found."""
    stranger()
    assert re.search(r"no-such-program: no such program", refusal("exec", "p.json", "--", "no-such-program"))
