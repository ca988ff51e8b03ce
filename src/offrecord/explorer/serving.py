"""Serving the explorer on loopback."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable
from threading import Thread

from offrecord.errors import InputError

ADDRESS = "127.0.0.1"


def serve(port: int, *, open_browser: bool, say: Callable[[str], None]) -> None:
    """Serve until somebody stops it.

    Args:
        port: on loopback; 0 takes any.
        open_browser: whether to open the page.
        say: is called with the address.

    Raises:
        InputError: for a port that cannot be had.
    """
    import uvicorn

    from offrecord.explorer.app import application

    with bound_to(port) as bound:
        url = f"http://{ADDRESS}:{bound.getsockname()[1]}/"
        say(url)
        config = uvicorn.Config(
            application(), log_level="error", access_log=False, server_header=False
        )
        if open_browser:
            Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        uvicorn.Server(config).run(sockets=[bound])


def bound_to(port: int) -> socket.socket:
    """A socket that listens on loopback alone."""
    if not 0 <= port <= 65_535:
        raise InputError(f"--port must be from 0 to 65535, got {port}")
    # asyncio sends small answers at once, 40 ms earlier, if it knows that this is TCP
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((ADDRESS, port))
        bound.listen(128)
    except OSError as error:
        bound.close()
        raise InputError(
            f"port {port} cannot be had ({error.strerror or error}): another program may listen"
            " there; choose another one with --port, or --port 0 for any"
        ) from None
    return bound
