"""Checks documents against conformance/protocol/v1.schema.json, with the part of JSON Schema that it uses."""

import json
import pathlib

PATH = pathlib.Path(__file__).resolve().parents[1] / "protocol" / "v1.schema.json"
# What a schema may say; a word that is not here would be a check that nobody makes.
KEYWORDS = {"$schema", "$id", "$ref", "$defs", "title", "description", "type", "const", "enum", "minimum",
            "properties", "required", "additionalProperties", "minProperties", "maxProperties", "items", "minItems",
            "maxItems", "allOf", "oneOf", "if", "then", "else", "not"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


class Schema:
    """A schema and its definitions.

    @throws ValueError  if it says something that is not checked here
    """

    def __init__(self, document: dict):
        self.document = document
        self._refuse_unknown(document)

    @classmethod
    def of_protocol(cls) -> "Schema":
        return cls(json.loads(PATH.read_text()))

    def problems(self, document, definition: str) -> list[str]:
        """What is wrong with a document that should be what the definition says; nothing if it is."""
        return self._check(document, self.document["$defs"][definition], definition)

    def _refuse_unknown(self, schema) -> None:
        if isinstance(schema, bool):
            return
        unknown = schema.keys() - KEYWORDS
        if unknown:
            raise ValueError(f"the schema says {', '.join(sorted(unknown))}, which is not checked")
        for name in ("properties", "$defs"):
            for part in schema.get(name, {}).values():
                self._refuse_unknown(part)
        for name in ("items", "additionalProperties", "if", "then", "else", "not"):
            self._refuse_unknown(schema.get(name, True))
        for name in ("allOf", "oneOf"):
            for part in schema.get(name, []):
                self._refuse_unknown(part)

    def _check(self, document, schema, where: str) -> list[str]:
        if isinstance(schema, bool):
            return [] if schema else [f"{where}: not allowed"]
        found = []
        if "$ref" in schema:
            found += self._check(document, self._referred(schema["$ref"]), where)
        found += self._check_scalar(document, schema, where)
        if isinstance(document, dict):
            found += self._check_object(document, schema, where)
        if isinstance(document, list):
            found += self._check_array(document, schema, where)
        return found + self._check_combined(document, schema, where)

    def _referred(self, reference: str) -> dict:
        return self.document["$defs"][reference.removeprefix("#/$defs/")]

    @staticmethod
    def _check_scalar(document, schema, where):
        found = []
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds and not any(is_type(document, kind) for kind in kinds):
            found.append(f"{where}: {document!r} is no {' or '.join(kinds)}")
        if "const" in schema and not same(document, schema["const"]):
            found.append(f"{where}: {document!r} is not {schema['const']!r}")
        if "enum" in schema and not any(same(document, value) for value in schema["enum"]):
            found.append(f"{where}: {document!r} is none of {schema['enum']}")
        if "minimum" in schema and is_type(document, "number") and document < schema["minimum"]:
            found.append(f"{where}: {document!r} is below {schema['minimum']}")
        return found

    def _check_object(self, document, schema, where):
        found = [f"{where}: {name} is missing" for name in schema.get("required", []) if name not in document]
        if len(document) < schema.get("minProperties", 0) or len(document) > schema.get("maxProperties", len(document)):
            found.append(f"{where}: {len(document)} fields")
        known = schema.get("properties", {})
        for name, value in document.items():
            part = known.get(name, schema.get("additionalProperties", True))
            found += self._check(value, part, f"{where}.{name}")
        return found

    def _check_array(self, document, schema, where):
        found = []
        if len(document) < schema.get("minItems", 0) or len(document) > schema.get("maxItems", len(document)):
            found.append(f"{where}: {len(document)} items")
        for i, value in enumerate(document):
            found += self._check(value, schema.get("items", True), f"{where}[{i}]")
        return found

    def _check_combined(self, document, schema, where):
        found = []
        for part in schema.get("allOf", []):
            found += self._check(document, part, where)
        if "oneOf" in schema:
            fitting = [part for part in schema["oneOf"] if not self._check(document, part, where)]
            if len(fitting) != 1:
                number = f"{len(fitting)} of {len(schema['oneOf'])} alternatives"
                found.append(f"{where}: fits {number}: {str(document)[:200]}")
        if "if" in schema:
            holds = not self._check(document, schema["if"], where)
            found += self._check(document, schema.get("then" if holds else "else", True), where)
        if "not" in schema and not self._check(document, schema["not"], where):
            found.append(f"{where}: is what it must not be")
        return found


def is_type(document, kind: str) -> bool:
    if kind == "integer":
        return isinstance(document, int) and not isinstance(document, bool)
    if kind == "number":
        return isinstance(document, (int, float)) and not isinstance(document, bool)
    return isinstance(document, TYPES[kind])


def same(one, other) -> bool:
    """Equality as JSON means it: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other
