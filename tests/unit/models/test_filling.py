"""Inputs made from a graph's own names, dtypes and axes."""

import numpy as np
import pytest

from tuner.errors import UsageError
from tuner.models.filling import fill, ids_input
from tuner.records.model import TensorSpec


def spec(name, dtype, *shape):
    """Return an input."""
    return TensorSpec(name=name, dtype=dtype, shape=shape)


@pytest.fixture
def random():
    """Return a seeded source."""
    return np.random.default_rng(0)


def test_voice_detector_takes_state_and_rate(random):
    """A free axis of a state is the batch; the rate is a scalar; states start at zero."""
    specs = [spec("input", "float32", None, None), spec("state", "float32", 2, None, 128), spec("sr", "int64")]
    arrays = fill(specs, 3, 512, random)
    assert {name: array.shape for name, array in arrays.items()} == {"input": (3, 512), "state": (2, 3, 128), "sr": ()}
    assert not arrays["state"].any()
    assert arrays["sr"] == 16_000
    assert arrays["input"].std() > 0.5


def test_masks_are_ones_types_are_zeros_and_dtypes_are_kept(random):
    """int32 ids with a mask, types and positions."""
    names = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    arrays = fill([spec(name, "int32", None, None) for name in names], 2, 5, random)
    assert {array.dtype.name for array in arrays.values()} == {"int32"}
    assert arrays["attention_mask"].tolist() == [[1] * 5] * 2
    assert not arrays["token_type_ids"].any()
    assert arrays["position_ids"].tolist() == [[0, 1, 2, 3, 4]] * 2
    assert arrays["input_ids"].min() >= 1


def test_text_fills_ids_mask_and_types(random):
    """Tokenized rows are used where the shape fits, padded to a fixed length."""
    text = {
        "input_ids": np.array([[7, 8, 9]]),
        "attention_mask": np.array([[1, 1, 1]]),
        "token_type_ids": np.array([[0, 0, 0]]),
    }
    specs = [spec("ids", "int64", 1, 4), spec("mask", "float32", 1, 4), spec("extra", "float32", 1, 2)]
    arrays = fill(specs, 1, 3, random, text)
    assert arrays["ids"].tolist() == [[7, 8, 9, 0]]
    assert arrays["mask"].tolist() == [[1.0, 1.0, 1.0, 0.0]]
    assert arrays["extra"].shape == (1, 2)


def test_images_get_three_channels(random):
    """The free channel axis of a rank-4 input."""
    assert fill([spec("pixels", "float32", None, None, None, None)], 1, 224, random)["pixels"].shape == (1, 3, 224, 224)


@pytest.mark.parametrize("dtype", ["str", "unknown"])
def test_strings_are_refused_by_name(random, dtype):
    """What cannot be made up asks for data."""
    with pytest.raises(UsageError, match=r"input 'words' takes .* --data FILE\.npz"):
        fill([spec("words", dtype, None)], 1, 4, random)


def test_inputs_are_contiguous_and_repeatable():
    """Equal seeds give equal arrays that engines take as they are."""
    specs = [spec("position_ids", "int64", None, None), spec("x", "float32", None, 3)]
    one, two = (fill(specs, 2, 4, np.random.default_rng(5)) for _ in range(2))
    assert all(array.flags.c_contiguous for array in one.values())
    assert all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["attention_mask", "token_type_ids", "input_ids"], "input_ids"),
        (["tokens", "mask"], "tokens"),
        (["bytes"], None),
        (["token_type_ids", "position_ids"], None),
    ],
)
def test_input_that_takes_token_ids(names, found):
    """By its name, never the types or positions."""
    assert ids_input([spec(name, "int64", None, None) for name in names]) == found
