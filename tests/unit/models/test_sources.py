"""Where a model is, from the words the user typed."""

import os
import sys
from pathlib import Path

import pytest

from tuner.errors import HostError, UsageError
from tuner.models.sources import Located, locate


@pytest.mark.parametrize("model", ["./no/such/dir", "/no/such", "~/no-such-dir", "no-such-dir", "a/b/c", "no dir/x y"])
def test_missing_directory_is_never_a_hub_id(model):
    """A path is a path: the error says so and nothing asks the network."""
    with pytest.raises(UsageError, match="directory does not exist: "):
        locate(model)


@pytest.mark.parametrize("model", ["org/model.onnx", "org/model.xml", "model.gguf", "org/model.safetensors"])
def test_missing_file_is_never_a_hub_id(model):
    """A name with a model file's suffix is a file."""
    with pytest.raises(UsageError, match=f"file does not exist: {model}"):
        locate(model)


@pytest.mark.parametrize("rest", ["", "/", "/tree/main", "?library=transformers"])
def test_page_of_the_hub(rest):
    """The address of a model's page is no model; its hub id is named."""
    with pytest.raises(UsageError, match=r"give the model's hub id, org/name-1\.5$"):
        locate(f"https://huggingface.co/org/name-1.5{rest}")


@pytest.mark.parametrize("model", ["", " "])
def test_empty_name(model):
    """A variable of the shell that is not set is not the current directory."""
    with pytest.raises(UsageError, match="name is empty"):
        locate(model)


def test_uncached_hub_id_needs_the_network():
    """Without network a hub id that is not cached is a host error that names it."""
    with pytest.raises(HostError, match=r"no-such-org/no-such-model-v1\.5 is not in the local cache"):
        locate("no-such-org/no-such-model-v1.5", allow_network=False)


def test_directory_named_like_a_hub_id_is_a_directory(tmp_path, monkeypatch):
    """What exists wins over what it looks like."""
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert locate("org/name", allow_network=False) == Located("huggingface", tmp_path / "org" / "name")


@pytest.mark.parametrize(("suffix", "kind"), [(".onnx", "onnx"), (".xml", "openvino"), (".gguf", "gguf")])
def test_kind_follows_the_suffix(tmp_path, suffix, kind):
    """The suffix of a file says what it is."""
    file = tmp_path / f"model{suffix}"
    file.touch()
    assert locate(str(file)) == Located(kind, file)


def test_unknown_suffix_is_refused(tmp_path):
    """Another file is no model."""
    file = tmp_path / "model.pt"
    file.touch()
    with pytest.raises(UsageError, match=r"is no model that is known here"):
        locate(str(file))


def test_pipe_is_refused(tmp_path):
    """A named pipe would be waited for without end."""
    os.mkfifo(tmp_path / "model.onnx")
    with pytest.raises(UsageError, match="neither a file nor a directory"):
        locate(str(tmp_path / "model.onnx"))


def test_python_models_need_trust():
    """py: runs code, so the option is named."""
    with pytest.raises(UsageError, match="--trust-code"):
        locate("py:module:function")


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Return a directory on sys.path with package ``shelf`` that explodes when imported and holds ``model``."""
    home = tmp_path / "site" / "shelf"
    (home / "model").mkdir(parents=True)
    (home / "__init__.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "site")])
    return home


def test_package_is_found_without_being_imported(packages):
    """Its __init__ does not run."""
    assert locate("pkg:shelf/model") == Located("huggingface", packages / "model")
    assert "shelf" not in sys.modules


def test_module_in_the_current_directory_does_not_count(packages, tmp_path, monkeypatch):
    """A shelf of the same name where the user stands is not the installed one."""
    here = tmp_path / "here"
    (here / "shelf" / "model").mkdir(parents=True)
    (here / "shelf" / "__init__.py").touch()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", ["", str(here), *sys.path])
    assert locate("pkg:shelf/model").path == packages / "model"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("pkg:no_such_package/model", "no installed package 'no_such_package'"),
        ("pkg:shelf/nothing", "package shelf holds no 'nothing'"),
        ("pkg:shelf/../shelf/model", "package shelf holds no"),
    ],
)
@pytest.mark.usefixtures("packages")
def test_package_without_the_model_is_refused(model, message):
    """The error names what is missing, and nothing outside the package is reached."""
    with pytest.raises(UsageError, match=message):
        locate(model)


def test_path_is_absolute(tmp_path, monkeypatch):
    """Workers start elsewhere, so the path does not depend on the current directory."""
    monkeypatch.chdir(tmp_path)
    Path("model.onnx").touch()
    assert locate("model.onnx").path == tmp_path / "model.onnx"


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Return the current directory with modules that explode when imported."""
    (tmp_path / "kit").mkdir()
    for name in ("net.py", "kit/__init__.py", "kit/nets.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("model", "file"), [("py:net:make", "net.py"), ("py:kit.nets:make", "kit/nets.py")])
def test_code_is_found_without_being_run(code, model, file):
    """The file of the module where the user stands, and only with trust."""
    assert locate(model, trust_code=True) == Located("python", code / file)
    assert not {"net", "kit"} & set(sys.modules)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("py:net", "write py:MODULE:FUNCTION"),
        ("py:net:", "write py:MODULE:FUNCTION"),
        ("py:./net.py:make", "write py:MODULE:FUNCTION"),
        ("py:nets.none:make", r"no module 'nets\.none' in .* or installed"),
        ("py:sys:make", "no module 'sys'"),
    ],
)
@pytest.mark.usefixtures("code")
def test_code_that_is_not_there_is_refused(model, message):
    """How it is written, or where it was looked for."""
    with pytest.raises(UsageError, match=message):
        locate(model, trust_code=True)
