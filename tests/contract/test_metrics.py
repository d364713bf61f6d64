"""The user's accuracy on labelled rows: real models, real artifacts, good and damaged ones, and what is refused."""

import json
import sys
import warnings

import numpy as np
import pytest

from tuner.backends.base import Context
from tuner.errors import UsageError
from tuner.messages import CheckFidelity, Prepare
from tuner.models.inspect import inspect
from tuner.models.judging import judge
from tuner.models.metrics import check_rows, metric_of
from tuner.models.prepare import prepare
from tuner.models.references import open_reference
from tuner.models.tokenizing import TextTokenizer
from tuner.plugins import plugin
from tuner.records.workload import DataSource, Workload

N = 200
ALL = CheckFidelity(max_samples=4096)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Run the reference on one thread: models this small only wait for the others."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def words(random, n=N):
    """Return random texts of letters."""
    return ["".join(random.choice(list(LETTERS), random.integers(6, 20))) for _ in range(n)]


def outputs_of(reference, directory, texts):
    """Return the reference's main output for texts, one at a time."""
    tokenizer = TextTokenizer.open(directory)
    found = []
    for text in texts:
        arrays = tokenizer.encode([text], 16)
        answer = reference.run({spec.name: arrays[spec.name] for spec in reference.inputs})
        found.append(next(iter(answer.values()))[0])
    return found


@pytest.fixture(scope="module")
def classifier(tiny_bert, tiny_shape, tmp_path_factory):
    """Return a directory with a BERT that classifies texts into three classes, and labels of which 15% are wrong."""
    directory = tmp_path_factory.mktemp("text classifier")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own
        import torch
        from transformers import BertConfig, BertForSequenceClassification

        torch.manual_seed(1)
        shape = BertConfig(**tiny_shape, initializer_range=0.5, id2label={0: "red", 1: "green", 2: "blue"})
        BertForSequenceClassification(shape).save_pretrained(directory)
    (directory / "tokenizer.json").write_bytes((tiny_bert.directory / "tokenizer.json").read_bytes())
    random = np.random.default_rng(0)
    texts = words(random)
    classes = [int(logits.argmax()) for logits in outputs_of(open_reference(inspect(str(directory))), directory, texts)]
    labels = [(label + 1) % 3 if random.random() < 0.15 else label for label in classes]
    return directory, texts, labels


@pytest.fixture(scope="module")
def pairs(tiny_bert):
    """Return the tiny BERT's directory, and pairs of texts whose scores follow its own cosine, with noise."""
    random = np.random.default_rng(2)
    texts = words(random, 2 * N)
    vectors = np.array(
        [tokens.mean(axis=0) for tokens in outputs_of(open_reference(tiny_bert.facts), tiny_bert.directory, texts)]
    )
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors[::2] * vectors[1::2]).sum(axis=1)
    scores = cosines + random.normal(0, 0.3 * cosines.std(), N)
    return tiny_bert.directory, [
        {"text": texts[2 * i], "pair": texts[2 * i + 1], "score": float(score)} for i, score in enumerate(scores)
    ]


@pytest.fixture
def prepared(tmp_path):
    """Return a function that prepares a model with a metric on rows, as the command does; directory and record."""

    def run(directory, name, rows, *, max_loss=None):
        data = str(tmp_path / "rows.jsonl")
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        facts = inspect(str(directory))
        metric = metric_of(name, max_loss, data)
        n = check_rows(metric, facts, data)
        place = tmp_path / "prepared"
        place.mkdir()
        command = Prepare(
            model=facts,
            workload=Workload(task=facts.task, lengths=(16,), data=DataSource(source=data, n=n)),
            data=data,
            directory=str(place),
            max_samples=256,
            sample_budget_s=60.0,
            metric=metric,
            code_dir=str(tmp_path),
        )
        record, _ = prepare(command)
        return place, record

    return run


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Return a function that writes a module of the user's in the current directory and names its function."""
    monkeypatch.chdir(tmp_path)
    names = []

    def write(text, function="score"):
        names.append(f"users_{len(names)}_{tmp_path.name}".replace("-", "_"))
        (tmp_path / f"{names[-1]}.py").write_text(text)
        return f"{names[-1]}:{function}"

    yield write
    for name in names:
        sys.modules.pop(name, None)


def labelled(texts, labels):
    """Return rows of a text and a label."""
    return [{"text": text, "label": label} for text, label in zip(texts, labels, strict=True)]


@pytest.mark.parametrize("name", ["accuracy", "f1"])
def test_reference_loses_nothing(classifier, prepared, name):
    """Labels by name or number; the figure is the share that was labelled rightly."""
    directory, texts, labels = classifier
    named = [("red", "green", "blue")[label] if index % 2 else label for index, label in enumerate(labels)]
    place, record = prepared(directory, name, labelled(texts, named))
    done = judge(place, record, open_reference(record.model).run, ALL)
    figures = done.fidelity
    assert (figures.n, figures.metric_loss, figures.metric_loss_high) == (N, 0, 0)
    assert figures.metric == figures.metric_reference == pytest.approx(record.metric_reference)
    assert 0.6 < figures.metric < 0.95


def test_damage_costs_accuracy(classifier, prepared):
    """Logits with noise are refused by the bound, after the quick look where that is plain."""
    directory, texts, labels = classifier
    place, record = prepared(directory, "accuracy", labelled(texts, labels))
    reference, random = open_reference(record.model), np.random.default_rng(3)

    def noisy(batch):
        logits = reference.run(batch)["logits"]
        return {"logits": logits + random.normal(0, 3 * np.abs(logits).max(), logits.shape).astype(np.float32)}

    done = judge(place, record, noisy, ALL)
    assert (done.stopped_early, done.fidelity.n) == (True, 64)
    assert done.fidelity.metric_loss_high > done.fidelity.metric_loss > 0.01


def test_pairs_are_ranked(pairs, prepared):
    """Two samples a row; the reference correlates as the scores were made."""
    place, record = prepared(pairs[0], "spearman", pairs[1])
    figures = judge(place, record, open_reference(record.model).run, ALL).fidelity
    assert (record.n_rows, figures.n, figures.metric_loss_high) == (N, 2 * N, 0)
    assert figures.metric == pytest.approx(0.95, abs=0.04)


def test_neighbours_are_those_of_float32(tiny_bert, prepared):
    """Plain texts are enough; noise on the vectors loses neighbours."""
    texts = words(np.random.default_rng(4))
    place, record = prepared(tiny_bert.directory, "recall@10", [{"text": text} for text in texts])
    reference, random = open_reference(record.model), np.random.default_rng(5)
    assert judge(place, record, reference.run, ALL).fidelity.metric == 1

    def noisy(batch):
        return {
            name: array + random.normal(0, 0.3, array.shape).astype(np.float32)
            for name, array in reference.run(batch).items()
        }

    assert judge(place, record, noisy, ALL).fidelity.metric_loss > 0.1


def damage(source, target):
    """Write a copy of an int8 graph with a tenth of the weights of its products at the other end of their range."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(str(source))
    random = np.random.default_rng(6)
    for tensor in model.graph.initializer:
        if tensor.name.endswith("_quantized") and len(tensor.dims) == 2:
            values = numpy_helper.to_array(tensor).copy()
            hit = random.random(values.shape) < 0.1
            values[hit] = (255 - values[hit].astype(int) if values.dtype == np.uint8 else ~values[hit]).astype(
                values.dtype
            )
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    onnx.save(model, target)


def build(name, source, prepared, target, **inputs):
    """Run a step with its defaults and return the directory of what it built."""
    step = plugin("tuner.steps", name)
    target.mkdir()
    step.build({"source": source, "prepared": prepared, **inputs}, step.Settings(), target)
    return target


def test_damaged_artifact_is_refused(classifier, prepared, tmp_path):
    """The same limit holds for the int8 artifact and is missed by its damaged copy."""
    directory, texts, labels = classifier
    place, record = prepared(directory, "accuracy", labelled(texts, labels), max_loss=0.1)
    export = build("onnx_export", directory, place, tmp_path / "export")
    whole = build("ort_dynamic_int8", directory, place, tmp_path / "int8", onnx_export=export)
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    damage(whole / "model.onnx", damaged / "model.onnx")
    backend = plugin("tuner.backends", "onnxruntime")
    context = Context(model=record.model, workload=record.workload, cache_dir=str(tmp_path))
    highs = []
    for artifact in (whole, damaged):
        session = backend.open(artifact, backend.SessionSettings(), context)
        highs.append(judge(place, record, session.run, ALL).fidelity.metric_loss_high)
        session.close()
    assert highs[0] <= record.metric.max_loss < highs[1]


@pytest.mark.parametrize(
    "body",
    [
        "return float(np.mean([np.argmax(o) == r['label'] for r, o in zip(rows, outputs)]))",
        "return [np.argmax(o) == r['label'] for r, o in zip(rows, outputs)]",
    ],
)
def test_function_of_the_users(classifier, prepared, code, body):
    """One number, or one a row, is the accuracy of ours."""
    directory, texts, labels = classifier
    name = code(f"import numpy as np\ndef score(rows, outputs):\n    {body}\n")
    place, record = prepared(directory, name, labelled(texts, labels))
    figures = judge(place, record, open_reference(record.model).run, ALL).fidelity
    assert (figures.metric, figures.metric_loss_high) == (pytest.approx(record.metric_reference), 0)
    assert 0.7 < figures.metric < 0.95


def test_function_sees_pairs(pairs, prepared, code):
    """Rows that all have a pair come with two vectors each, and nothing of ours is changed by what it does to them."""
    name = code(
        "def score(rows, outputs):\n"
        "    assert outputs.shape == (len(rows), 2, 32) and rows[0]['pair']\n"
        "    figure = float((outputs[:, 0] * outputs[:, 1]).sum(axis=1) @ [row['score'] for row in rows])\n"
        "    outputs[:] = 0\n"
        "    rows.clear()\n"
        "    return figure\n"
    )
    place, record = prepared(pairs[0], name, pairs[1], max_loss=1.0)
    assert judge(place, record, open_reference(record.model).run, ALL).fidelity.metric_loss == 0


def test_directory_is_importable_only_meanwhile(pairs, prepared, code, tmp_path):
    """The user's directory is on the path while code of the user's runs, and not afterwards."""
    (tmp_path / "beside_the_metric.py").write_text("VALUE = 0.5\n")
    name = code("def score(rows, outputs):\n    import beside_the_metric as b\n    return b.VALUE\n")
    prepared(pairs[0], name, pairs[1])
    sys.modules.pop("beside_the_metric")
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("def score(rows, outputs): return 1 / 0", r"raised ZeroDivisionError: division by zero: it is called as"),
        ("def score(rows): return 1", r"raised TypeError: .*it is called as function\(rows, outputs\)"),
        ("def score(rows, outputs): return float('nan')", "returned nan: it is called as"),
        ("def score(rows, outputs): return 'good'", "returned str, no number"),
        ("def score(rows, outputs): return None", "returned nan: it is called as|returned NoneType"),
        ("def score(rows, outputs): return [1.0]", r"returned shape \[1\] for 200 rows"),
        ("def score(rows, outputs): return 0", "is 0 for the float32 model: no loss could be seen"),
        ("def score(rows, outputs): raise SystemExit(3)", "raised SystemExit: 3"),
        ("def scores(rows, outputs): return 1", "has no function score: did you mean scores"),
        ("import no_such_module_of_mine", "importing users_.* raised ModuleNotFoundError: No module named"),
        ("def score(rows, outputs)\n", "importing users_.* raised SyntaxError"),
        (
            "def score(rows, outputs): return 1 + sum((-1) ** i * o[0, 0] for i, o in enumerate(outputs))",
            "no better than chance",
        ),
    ],
)
def test_function_at_fault_is_refused_before_anything_is_spent(pairs, prepared, code, text, cause):
    """One line with the function, what it did, and how it is called."""
    directory, rows = pairs
    with pytest.raises(UsageError, match=cause) as caught:
        prepared(directory, code(text), rows)
    assert str(caught.value).startswith("--metric users_")
    assert "\n" not in str(caught.value)


def test_chance_is_refused(classifier, prepared):
    """Labels that have nothing to do with the model's classes: nothing could be lost."""
    directory, texts, labels = classifier
    shuffled = np.random.default_rng(8).permutation(labels).tolist()
    with pytest.raises(
        UsageError, match=r"accuracy is 0\.\d+ for the float32 model on 200 rows, no better than chance"
    ):
        prepared(directory, "accuracy", labelled(texts, shuffled))


def test_one_label_alone_is_refused(classifier, prepared):
    """Where every row has the same label, a model that always answers it is right."""
    directory, texts, _ = classifier
    with pytest.raises(UsageError, match=r"no better than chance|is 0 for the float32 model"):
        prepared(directory, "f1", labelled(texts, [0] * N))


def test_neighbours_of_few_texts_are_refused(tiny_bert, prepared):
    """Half of so few texts are neighbours anyway."""
    rows = [{"text": text} for text in words(np.random.default_rng(9), 18)]
    with pytest.raises(UsageError, match="recall@10 on 18 texts is 100% by chance: give more"):
        prepared(tiny_bert.directory, "recall@10", rows)


def test_pairs_are_classified_together(classifier, prepared):
    """Both texts of a row are read at once: one sample a row, other answers than for the first text alone."""
    directory, texts, _ = classifier
    tokenizer, reference = TextTokenizer.open(directory), open_reference(inspect(str(directory)))
    pairs = list(zip(texts, reversed(texts), strict=True))
    labels = [int(reference.run(tokenizer.encode([pair], 16))["logits"].argmax()) for pair in pairs]
    rows = [{"text": one, "pair": two, "label": label} for (one, two), label in zip(pairs, labels, strict=True)]
    _, record = prepared(directory, "accuracy", rows)
    assert (record.n_rows, record.n_samples, record.metric_reference) == (N, N, 1)


@pytest.mark.parametrize(
    ("label", "cause"),
    [
        ("purple", "line 3: the model does not know label 'purple': it knows red, green, blue"),
        (7, "line 3: the model does not know label 7"),
        (None, "line 3: no label, which --metric accuracy needs"),
    ],
)
def test_labels_that_cannot_be_used(classifier, prepared, label, cause):
    """The line is named, with what the model knows."""
    directory, texts, labels = classifier
    with pytest.raises(UsageError, match=cause):
        prepared(directory, "accuracy", labelled(texts, [*labels[:2], label, *labels[3:]]))
