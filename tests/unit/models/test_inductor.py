"""Options and caches of PyTorch's inductor, without PyTorch."""

import stat

import pytest

from tuner.errors import Unsupported
from tuner.models.inductor import inductor_options, memory_cache


def test_only_what_is_asked_is_set():
    """The library's defaults stay where nothing is asked."""
    assert inductor_options(max_autotune=False, freezing=True) == {"freezing": True}
    assert inductor_options(max_autotune=False, freezing=False, simdlen=256)["cpp.simdlen"] == 256


def test_memory_cache_is_this_users_alone(tmp_path):
    """A folder that nobody else can enter; the same one the next time."""
    cache = memory_cache(tmp_path)
    assert stat.S_IMODE(cache.parent.stat().st_mode) == 0o700
    assert memory_cache(tmp_path) == cache


@pytest.mark.parametrize("what", ["absent", "open", "link"])
def test_memory_cache_of_others_is_refused(tmp_path, what):
    """Code in a folder that others can write would run as this user."""
    folder = memory_cache(tmp_path).parent
    if what == "open":
        folder.chmod(0o777)
    if what == "link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unsupported, match="compile_cache=memory"):
        memory_cache(tmp_path / "none" if what == "absent" else tmp_path)
