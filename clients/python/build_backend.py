"""Builds the package: writes `api.py` from the OpenAPI document of Retake first, so that `pip install ./clients/python` needs no other step.

The document is that of the program `retake`: the one that RETAKE_PROGRAM names, or is installed, or is built here.
"""

import importlib.machinery
import importlib.util
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
GENERATOR = HERE.parent.parent / "scripts" / "python-client"
MODULE = HERE / "src" / "retake_client" / "api.py"


def generate():
    """Writes the module. A package without the repository around it has the module already."""
    if not GENERATOR.is_file():
        return
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("python_client", str(GENERATOR))
    python_client = importlib.util.module_from_spec(importlib.util.spec_from_loader("python_client", loader))
    loader.exec_module(python_client)
    MODULE.write_text(python_client.generate(python_client.ask_server()))


def get_requires_for_build_wheel(settings=None):
    return []


def get_requires_for_build_sdist(settings=None):
    return []


def build_wheel(folder, settings=None, metadata=None):
    from setuptools import build_meta

    generate()
    return build_meta.build_wheel(folder, settings, metadata)


def build_sdist(folder, settings=None):
    from setuptools import build_meta

    generate()
    return build_meta.build_sdist(folder, settings)


def prepare_metadata_for_build_wheel(folder, settings=None):
    from setuptools import build_meta

    return build_meta.prepare_metadata_for_build_wheel(folder, settings)
