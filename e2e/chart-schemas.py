#!/usr/bin/env python3
"""Checks objects against the OpenAPI schemas of Kubernetes, with unknown fields refused, and their names and labels.

  e2e/chart-schemas.py FOLDER... <objects

On standard input is one JSON object per line: {"file": NAME, "object": {…}}. FOLDER is api/openapi-spec/v3 of a version
of Kubernetes. Each fault is a line on standard output. The kinds that no FOLDER knows, such as custom resources, are
named on standard error.
"""

import json
import pathlib
import re
import sys

TYPES = {"string": str, "boolean": bool, "array": list, "object": dict, "number": (int, float)}


def is_type(value, name):
    if name == "integer":
        return not isinstance(value, bool) and (isinstance(value, int) or isinstance(value, float) and value.is_integer())
    if name == "number" and isinstance(value, bool):
        return False
    return isinstance(value, TYPES[name])


class Schemas:
    """The schemas of one version of Kubernetes, read when they are needed."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.version = re.sub(r".*kubernetes@v([0-9.]+).*", r"\1", str(folder))
        self.groups = {}
        self.checked = {}

    def group(self, api_version):
        """The schemas by name, and those of kinds."""
        if api_version not in self.groups:
            name = "apis__" + api_version.replace("/", "__") if "/" in api_version else "api__" + api_version
            file = self.folder / f"{name}_openapi.json"
            named = json.loads(file.read_text())["components"]["schemas"] if file.exists() else {}
            kinds = {}
            for schema in named.values():
                for gvk in schema.get("x-kubernetes-group-version-kind", []):
                    own = f"{gvk['group']}/{gvk['version']}" if gvk["group"] else gvk["version"]
                    if own == api_version:
                        kinds[gvk["kind"]] = schema
            self.groups[api_version] = named, kinds
        return self.groups[api_version]

    def faults(self, thing):
        """The faults of an object; None if its kind has no schema."""
        named, kinds = self.group(str(thing.get("apiVersion")))
        kind = thing.get("kind")
        if kind not in kinds:
            return None
        key = json.dumps(thing, sort_keys=True)
        if key not in self.checked:
            self.checked[key] = list(faults(thing, kinds[kind], named, kind))
        return self.checked[key]


def faults(value, schema, named, path):
    """What is wrong with a value, as lines that begin with its path."""
    while "$ref" in schema or len(schema.get("allOf", [])) == 1:
        schema = named[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema["allOf"][0]
    if "oneOf" in schema:
        if not any(is_type(value, part["type"]) for part in schema["oneOf"]):
            yield f"{path}: {json.dumps(value)} is not one of {', '.join(part['type'] for part in schema['oneOf'])}"
        return
    if "type" in schema and not is_type(value, schema["type"]):
        yield f"{path}: {json.dumps(value)} is not of type {schema['type']}"
        return
    if schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
        yield f"{path}: {value} does not fit into 32 bits"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {json.dumps(value)} is not one of {', '.join(schema['enum'])}"
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from faults(item, schema.get("items", {}), named, f"{path}[{number}]")
    if isinstance(value, dict):
        # To the apiserver null is absent.
        present = {name: item for name, item in value.items() if item is not None}
        properties, others = schema.get("properties"), schema.get("additionalProperties")
        for name in schema.get("required", []):
            if name not in present:
                yield f"{path}.{name}: required"
        for name, item in present.items():
            if name in (properties or {}):
                yield from faults(item, properties[name], named, f"{path}.{name}")
            elif isinstance(others, dict):
                yield from faults(item, others, named, f"{path}.{name}")
            elif properties is not None:
                yield f"{path}.{name}: unknown field"


LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def identity_faults(thing):
    """Names and labels that the apiserver refuses, which no schema says."""
    kind, name = thing.get("kind"), (thing.get("metadata") or {}).get("name", "")
    if len(name) > (63 if kind in ("Namespace", "Service") else 253):
        yield f"{kind}.metadata.name: {name} has {len(name)} characters"
    # The schema in a CustomResourceDefinition has properties of the same names.
    open_parts = [(str(kind), thing)] if kind != "CustomResourceDefinition" else []
    while open_parts:
        path, part = open_parts.pop()
        if isinstance(part, list):
            open_parts += [(f"{path}[{number}]", item) for number, item in enumerate(part)]
        elif isinstance(part, dict):
            open_parts += [(f"{path}.{name}", item) for name, item in part.items()]
            if path.endswith((".metadata.labels", ".matchLabels")):
                for key, value in part.items():
                    if not KEY.fullmatch(key) or not LABEL.fullmatch(str(value)):
                        yield f"{path}: {key}={value} is not a label"


def main(folders):
    versions = [Schemas(folder) for folder in folders]
    unknown, count = set(), 0
    for line in sys.stdin:
        entry = json.loads(line)
        file, thing = entry["file"], entry["object"]
        count += 1
        found = {schemas.version: schemas.faults(thing) for schemas in versions}
        if all(lines is None for lines in found.values()):
            unknown.add(f"{thing.get('apiVersion')} {thing.get('kind')}")
        for fault in identity_faults(thing):
            print(f"{file}: {fault}")
        for version, lines in found.items():
            if lines is None and not all(other is None for other in found.values()):
                lines = [f"{thing['kind']}: not served as {thing['apiVersion']}"]
            for fault in lines or []:
                print(f"Kubernetes {version}: {file}: {fault}")
    if unknown:
        print(f"no schema, so not checked: {', '.join(sorted(unknown))}", file=sys.stderr)
    if not count:
        print("no objects")


if len(sys.argv) < 2:
    sys.exit(__doc__)
main(sys.argv[1:])
