"""The kernel's CPU-list syntax."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuner.hardware.lists import format_cpu_list, parse_cpu_list


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", ()),
        ("\n", ()),
        ("0", (0,)),
        ("0-3", (0, 1, 2, 3)),
        ("0,4-7", (0, 4, 5, 6, 7)),
        ("5,1-2,2", (1, 2, 5)),
        (" 0-1 , 4 ", (0, 1, 4)),
        ("0-10:2/4", (0, 1, 4, 5, 8, 9)),
    ],
)
def test_lists_are_read(text, cpus):
    """Ranges, strides (used/group), repeats and space give sorted ids."""
    assert cpus == parse_cpu_list(text)


@pytest.mark.parametrize(
    "text", ["x", "3-1", "1-", "-1", "1,,2", "0-99999999", "0-7:3/2", "0-7:0/2", "٣", "1_0", "0x3"]
)
def test_garbage_is_refused(text):
    """What is no list raises and allocates nothing."""
    with pytest.raises(ValueError, match="CPU"):
        parse_cpu_list(text)


@given(st.sets(st.integers(min_value=0, max_value=65535), max_size=50))
def test_formatting_and_reading_are_inverse(cpus):
    """A written list reads back as the same ids."""
    assert tuple(sorted(cpus)) == parse_cpu_list(format_cpu_list(cpus))


def test_runs_are_shortened():
    """Neighbours become a range."""
    assert format_cpu_list([3, 2, 1, 0, 8, 11, 10]) == "0-3,8,10-11"
