"""The asynchronous view has what the view has."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import recollect.pipeline
from recollect import AsyncView, View
from recollect.pipeline.standpoint import Group
from recollect.pipeline.view import Groups

#: What is made to be used in a thread, together with what it gives.
USED_IN_THREAD = {"ConversationMemory.retriever", "ConversationMemory.assembler"}


def public(kind: type) -> set[str]:
    return {
        name
        for name, value in inspect.getmembers(kind)
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    }


def test_everything_that_a_view_has_an_asynchronous_one_has():
    own = public(AsyncView) - {"in_thread", "view_of"}
    parts = {"standpoint", "config", "scope", "store", "models", "embedder"}
    missing = {f"View.{one}" for one in public(View) - parts - own}
    for module in pkgutil.iter_modules(recollect.pipeline.__path__, "recollect.pipeline."):
        importlib.import_module(module.name)
    kinds = {kind.__name__: kind for kind in Group.__subclasses__()}
    groups = {name: kinds[kind] for name, kind in inspect.get_annotations(Groups).items()}
    for name, kind in groups.items():
        twin = inspect.signature(getattr(AsyncView, name).fget, eval_str=False).return_annotation
        assert twin == f"Async{kind.__name__}"
        asynchronous = getattr(inspect.getmodule(AsyncView), twin)
        methods = {one for one in public(kind) if inspect.isfunction(getattr(kind, one))}
        missing |= {f"{kind.__name__}.{one}" for one in methods - public(asynchronous)}
        for one in public(asynchronous):
            twin_method, method = getattr(asynchronous, one), getattr(kind, one)
            taken, given = inspect.signature(twin_method), inspect.signature(method)
            assert taken.parameters == given.parameters and twin_method.__doc__ == method.__doc__
            assert str(taken.return_annotation).replace("AsyncGenerator", "Iterator") == given.return_annotation
    assert missing == USED_IN_THREAD, "name each in pipeline/asynchronous.py: x = threaded(Group.x), or streamed"
    assert own <= public(View)
