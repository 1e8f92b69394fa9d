"""What the course adds to the Jupyter server that `serve` starts; nobody else's server loads it.

It is enabled by `jupyter/jupyter_server_config.json`.
"""

from typing import Any

from pytorch_lab.launch.saving import keep_pictures


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": "pytorch_lab.launch.extension"}]


def _load_jupyter_server_extension(server: Any) -> None:
    server.contents_manager.register_pre_save_hook(keep_pictures)
    if not server.identity_provider.token_generated:
        # With a password or a token of their own, Jupyter keeps the address to itself.
        print(f"JupyterLab answers at {server.display_url}", flush=True)
