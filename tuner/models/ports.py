"""Names the inputs and outputs of an OpenVINO model as its file names them; OpenVINO keeps several names a tensor."""

from typing import Any

SUFFIX = "/sink_port_0"
"""What OpenVINO adds to the name of an output's node."""


def port_name(port: Any, index: int) -> str:  # noqa: ANN401 - the library is untyped
    """Return the name of a port: its node's where that is one of its names, else any, else ``port_<index>``."""
    names = port.get_names()
    if not names:
        return f"port_{index}"
    own = port.node.get_friendly_name().removesuffix(SUFFIX)
    return own if own in names else str(min(names))
