"""Token vectors turned into one vector a row."""

import numpy as np
import pytest

from tuner.errors import UsageError
from tuner.models.pooling import pool
from tuner.models.pooling_files import pooling_of
from tuner.records.model import Pooling

TOKENS = np.array([[[1, 0], [3, 4], [9, 9]]], np.float32)
MASK = np.array([[1, 1, 0]])


@pytest.mark.parametrize(("mode", "vector"), [("mean", [2, 2]), ("cls", [1, 0]), ("max", [3, 4]), ("last", [3, 4])])
def test_padding_does_not_count(mode, vector):
    """Every mode leaves the masked token out."""
    assert pool(TOKENS, MASK, Pooling(mode=mode, normalize=False)).tolist() == [vector]


def test_left_padding_keeps_first_and_last():
    """First and last follow the mask, not the position."""
    mask = np.array([[0, 1, 1]])
    assert pool(TOKENS, mask, Pooling(mode="cls", normalize=False)).tolist() == [[3, 4]]
    assert pool(TOKENS, mask, Pooling(mode="last", normalize=False)).tolist() == [[9, 9]]


def test_vectors_are_scaled_to_length_one():
    """Normalised when the model says so."""
    assert np.allclose(pool(TOKENS, None, Pooling(mode="last")), [[0.5**0.5, 0.5**0.5]])


@pytest.mark.parametrize("mode", ["mean", "cls", "last"])
def test_row_without_a_token_is_finite(mode):
    """An empty row gives no NaN."""
    assert np.isfinite(pool(TOKENS, np.zeros((1, 3)), Pooling(mode=mode))).all()


def test_pooled_output_passes_through():
    """A graph that pools itself answers (batch, d)."""
    assert pool(np.array([[3.0, 4.0]]), None, Pooling()).tolist() == [[np.float32(0.6), np.float32(0.8)]]


def test_several_modes_are_refused(tmp_path):
    """A concatenation of poolings is not known here, and is said."""
    (tmp_path / "modules.json").write_text('[{"type": "a.Pooling", "path": "1_Pooling"}]')
    (tmp_path / "1_Pooling").mkdir()
    content = '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}'
    (tmp_path / "1_Pooling" / "config.json").write_text(content)
    with pytest.raises(UsageError, match="pooling that is not known here"):
        pooling_of(tmp_path)


def test_dense_module_is_said_to_be_left_out(tmp_path):
    """What is not applied stands in the record."""
    modules = '[{"type": "a.Pooling", "path": "1_Pooling"}, {"type": "a.Dense", "path": "2_Dense"}]'
    (tmp_path / "modules.json").write_text(modules)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode": "lasttoken"}')
    assert pooling_of(tmp_path) == Pooling(
        mode="last", normalize=False, source="1_Pooling/config.json (its Dense module is left out)"
    )
