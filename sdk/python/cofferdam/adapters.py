# SPDX-License-Identifier: Apache-2.0
"""Tools of Cofferdam in the shapes of agent frameworks. None of them has to be installed: shapes are plain dictionaries.

A model decides about the name and the arguments of a call, so both are hostile. A name that was not offered is not called;
arguments are checked by the tool's schema in the daemon. What goes back to the model is JSON, so that nothing a tool prints
can pass for another field of the answer.
"""
from __future__ import annotations

import json
from typing import Any, Awaitable, Callable, Dict, Iterable, List, Mapping, Optional

from .aio import AsyncCoffer
from .client import Coffer
from .errors import CofferError
from .types import CallResult, ToolInfo

Shape = Dict[str, Any]
_ANY_OBJECT: Shape = {"type": "object"}


def described(coffer: Coffer, names: Optional[Iterable[str]] = None) -> List[ToolInfo]:
    """The tools with their schemas: all that are ready, or those named."""
    wanted = [tool.name for tool in coffer.tools() if tool.state == "ready"] if names is None else list(names)
    return [coffer.tool(name) for name in wanted]


async def async_described(coffer: AsyncCoffer, names: Optional[Iterable[str]] = None) -> List[ToolInfo]:
    wanted = [tool.name for tool in await coffer.tools() if tool.state == "ready"] if names is None else list(names)
    return [await coffer.tool(name) for name in wanted]


# ---- Definitions ----------------------------------------------------------------------------------------------------

def _description(tool: ToolInfo) -> str:
    return tool.summary + (f" The call {tool.blast_radius}." if tool.blast_radius else "")


def _schema(tool: ToolInfo) -> Shape:
    return dict(tool.input_schema) if tool.input_schema is not None else dict(_ANY_OBJECT)


def openai_chat_tools(tools: Iterable[ToolInfo]) -> List[Shape]:
    """`tools` of OpenAI's chat completions."""
    return [{"type": "function", "function": {"name": tool.name, "description": _description(tool),
                                              "parameters": _schema(tool)}} for tool in tools]


def openai_response_tools(tools: Iterable[ToolInfo]) -> List[Shape]:
    """`tools` of OpenAI's responses. Not strict: that mode allows only a part of JSON Schema."""
    return [{"type": "function", "name": tool.name, "description": _description(tool), "parameters": _schema(tool),
             "strict": False} for tool in tools]


def anthropic_tools(tools: Iterable[ToolInfo]) -> List[Shape]:
    """`tools` of Anthropic's messages."""
    return [{"name": tool.name, "description": _description(tool), "input_schema": _schema(tool)} for tool in tools]


def langchain_tools(coffer: Coffer, tools: Iterable[ToolInfo], *, session_id: Optional[str] = None) -> List[Shape]:
    """Keyword arguments for LangChain: `[StructuredTool.from_function(**shape) for shape in ...]`."""
    def function_of(name: str) -> Callable[..., str]:
        def run(**arguments: Any) -> str:
            return _answer(lambda: coffer.call(name, arguments, session_id=session_id, check=False))[0]
        run.__name__ = name.replace("-", "_")
        return run
    return [{"name": tool.name, "description": _description(tool), "args_schema": _schema(tool),
             "func": function_of(tool.name)} for tool in tools]


# ---- Calls that a model asks for ------------------------------------------------------------------------------------

def result_text(result: CallResult) -> str:
    """What a model is told of a call: the same members as over MCP."""
    return json.dumps({
        "outcome": result.outcome, "exit_code": result.exit_code, "signal": result.exit_signal, "stdout": result.stdout,
        "stderr": result.stderr, "truncated": result.truncated,
        "error": None if result.error is None else {"class": result.error.error_class, "message": result.error.message},
        "denials": [{"rule": denial.rule, "reason": denial.reason, "fix": denial.fix} for denial in result.denials],
        "retry_after": result.retry_after, "call_id": result.call_id}, ensure_ascii=False)


def _failure(error_class: str, message: str) -> "tuple[str, bool]":
    return json.dumps({"outcome": "error", "error": {"class": error_class, "message": message}}, ensure_ascii=False), True


def _answer(make: Callable[[], CallResult]) -> "tuple[str, bool]":
    try:
        result = make()
    except (CofferError, ValueError) as error:
        return _failed(error)
    return result_text(result), not result.ok


def _failed(error: Exception) -> "tuple[str, bool]":
    return _failure(error.error_class if isinstance(error, CofferError) else "client.arguments", str(error))


def _asked(name: object, arguments: object, offered: Iterable[str]) -> "tuple[str, Mapping[str, Any]]":
    """The tool and arguments that a model asked for; ValueError is for the model."""
    if not isinstance(name, str) or name not in set(offered):
        raise ValueError("this tool was not offered")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            raise ValueError("the arguments are not JSON") from None
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are not a JSON object")
    return name, arguments


def _openai_parts(call: Mapping[str, Any]) -> "tuple[object, object]":
    function = call.get("function")
    part = function if isinstance(function, Mapping) else call
    return part.get("name"), part.get("arguments")


def _openai_message(call: Mapping[str, Any], text: str) -> Shape:
    if call.get("type") == "function_call":
        return {"type": "function_call_output", "call_id": call.get("call_id"), "output": text}
    return {"role": "tool", "tool_call_id": call.get("id"), "content": text}


def _anthropic_block(block: Mapping[str, Any], text: str, failed: bool) -> Shape:
    return {"type": "tool_result", "tool_use_id": block.get("id"), "content": text, "is_error": failed}


def answer_openai(coffer: Coffer, call: Mapping[str, Any], offered: Iterable[str], *,
                  session_id: Optional[str] = None) -> Shape:
    """Makes the call of one `tool_calls` entry (chat) or `function_call` item (responses); returns the message for it."""
    try:
        name, arguments = _asked(*_openai_parts(call), offered)
    except ValueError as error:
        return _openai_message(call, _failed(error)[0])
    return _openai_message(call, _answer(lambda: coffer.call(name, arguments, session_id=session_id, check=False))[0])


def answer_anthropic(coffer: Coffer, block: Mapping[str, Any], offered: Iterable[str], *,
                     session_id: Optional[str] = None) -> Shape:
    """Makes the call of one `tool_use` block; returns the `tool_result` block."""
    try:
        name, arguments = _asked(block.get("name"), block.get("input"), offered)
    except ValueError as error:
        return _anthropic_block(block, *_failed(error))
    return _anthropic_block(block, *_answer(
        lambda: coffer.call(name, arguments, session_id=session_id, check=False)))


async def _async_answer(work: Awaitable[CallResult]) -> "tuple[str, bool]":
    try:
        result = await work
    except (CofferError, ValueError) as error:
        return _failed(error)
    return result_text(result), not result.ok


async def async_answer_openai(coffer: AsyncCoffer, call: Mapping[str, Any], offered: Iterable[str], *,
                              session_id: Optional[str] = None) -> Shape:
    try:
        name, arguments = _asked(*_openai_parts(call), offered)
    except ValueError as error:
        return _openai_message(call, _failed(error)[0])
    return _openai_message(call, (await _async_answer(coffer.call(name, arguments, session_id=session_id, check=False)))[0])


async def async_answer_anthropic(coffer: AsyncCoffer, block: Mapping[str, Any], offered: Iterable[str], *,
                                 session_id: Optional[str] = None) -> Shape:
    try:
        name, arguments = _asked(block.get("name"), block.get("input"), offered)
    except ValueError as error:
        return _anthropic_block(block, *_failed(error))
    return _anthropic_block(block, *(await _async_answer(coffer.call(name, arguments, session_id=session_id, check=False))))
