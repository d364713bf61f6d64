"""Peak memory from /proc."""

from tuner.measure.memory import peak_rss_bytes, reset_peak, rss_bytes, status_bytes

STATUS = "Name:\tpython\nVmPeak:\t  900 kB\nVmHWM:\t     256 kB\nVmRSS:\t     128 kB\n"


def test_status_field_in_bytes():
    """The kernel's kB are 1024 bytes."""
    assert status_bytes(STATUS, "VmHWM") == 262144


def test_absent_field_is_null():
    """Kernel threads and other kernels have no VmHWM."""
    assert status_bytes("Name:\tkthread\n", "VmHWM") is None
    assert status_bytes("VmHWM:\tgarbage\n", "VmHWM") is None


def test_reads_a_given_file(tmp_path):
    """Peak and present size of a saved process."""
    status = tmp_path / "status"
    status.write_text(STATUS)
    assert (peak_rss_bytes(status), rss_bytes(status)) == (262144, 131072)


def test_no_proc_is_null(tmp_path):
    """Elsewhere than on Linux nothing is invented."""
    assert peak_rss_bytes(tmp_path / "none") is None


def test_reset_writes_five(tmp_path):
    """5 resets the peak (proc(5))."""
    clear_refs = tmp_path / "clear_refs"
    clear_refs.touch()
    assert reset_peak(clear_refs)
    assert clear_refs.read_text() == "5"


def test_reset_that_is_not_allowed_says_so(tmp_path):
    """A path that cannot be written returns False."""
    assert not reset_peak(tmp_path / "none" / "clear_refs")
