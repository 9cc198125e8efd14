#!/usr/bin/env python3
"""Prints the JSON schema of a DeadlineJob, from its CustomResourceDefinition.

  e2e/json-schema.py crds/deadlinejobs.yaml             all of it, for editors and validators; `make release-schema`
  e2e/json-schema.py crds/deadlinejobs.yaml --models    for generators of typed models: types of Kubernetes (the pod
                                                        template, metadata) are named, not spelled out, and the ledger,
                                                        which belongs to the operator alone, is left out
"""

import json
import sys

import yaml

ID = "https://shed.dev/schemas/v1alpha1/deadlinejob.schema.json"
METADATA = "https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/"

KIND = "DeadlineJob"

# Types of Kubernetes' own libraries, as the generators for Go and Java take them.
OBJECT_META = {
    "type": "object",
    "goJSONSchema": {"type": "metav1.ObjectMeta", "imports": ["k8s.io/apimachinery/pkg/apis/meta/v1"]},
    "existingJavaType": "io.fabric8.kubernetes.api.model.ObjectMeta",
}
POD_TEMPLATE = {
    "type": "object",
    "goJSONSchema": {"type": "corev1.PodTemplateSpec", "imports": ["k8s.io/api/core/v1"]},
    "existingJavaType": "io.fabric8.kubernetes.api.model.PodTemplateSpec",
}


def converted(node):
    """A schema of OpenAPI 3.0, as Kubernetes has it, as JSON schema."""
    if isinstance(node, list):
        return [converted(item) for item in node]
    if not isinstance(node, dict):
        return node
    # Rules in CEL, and hints for kubectl, mean nothing to a validator of JSON.
    schema = {key: value for key, value in node.items() if not key.startswith("x-kubernetes-")}
    nullable = schema.pop("nullable", False)
    for bound in ("minimum", "maximum"):
        # A flag in OpenAPI, the bound itself in JSON schema.
        exclusive = "exclusive" + bound.capitalize()
        if schema.get(exclusive) is True:
            schema[exclusive] = schema.pop(bound)
        elif schema.get(exclusive) is False:
            del schema[exclusive]
    for key in ("properties", "patternProperties"):
        if key in schema:
            schema[key] = {name: converted(value) for name, value in schema[key].items()}
    for key in ("items", "additionalProperties", "not", "allOf", "anyOf", "oneOf"):
        if key in schema:
            schema[key] = converted(schema[key])
    if node.get("x-kubernetes-int-or-string"):
        schema.pop("anyOf", None)
        schema["type"] = ["integer", "string"]
    if nullable and "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = [*kinds, "null"]
        if "enum" in schema and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
    return schema


def for_models(schema):
    """The schema with types of libraries in it.

    Fields that may be null may be absent as well, so that one type is enough. Defaults are the apiserver's matter.
    """

    def plain(node):
        if isinstance(node, dict):
            if not isinstance(node.get("default"), dict) or "type" not in node["default"]:
                node.pop("default", None)
            if isinstance(node.get("type"), list) and "null" in node["type"]:
                node["type"] = next(kind for kind in node["type"] if kind != "null")
            if "enum" in node:
                node["enum"] = [value for value in node["enum"] if value is not None]
            for value in node.values():
                plain(value)
        elif isinstance(node, list):
            for value in node:
                plain(value)

    def name(node, title):
        """Names the type of each object and choice after its field, behind the name of the type around it."""
        node["title"] = title
        prefix = "" if title.startswith(KIND) else title
        for field, value in node.get("properties", {}).items():
            inner = value["items"] if value.get("type") == "array" else value
            if "enum" in inner or inner.get("type") == "object" and field not in ("metadata", "template"):
                # An element of `rules` is a rule.
                own = field.removesuffix("s") if inner is not value else field
                own = own[0].upper() + own[1:]
                name(inner, KIND + own if title == KIND else prefix + own)

    schema = json.loads(json.dumps(schema))
    plain(schema)
    name(schema, KIND)
    described = ("description",)
    for properties, name, named in (
        (schema["properties"], "metadata", OBJECT_META),
        (schema["properties"]["spec"]["properties"], "template", POD_TEMPLATE),
    ):
        words = {key: properties[name][key] for key in described if key in properties[name]}
        properties[name] = {**named, **words}
    schema["properties"]["status"]["properties"].pop("ledger", None)
    return schema


def main(arguments):
    if not arguments or arguments[1:] not in ([], ["--models"]):
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[0], encoding="utf-8") as file:
        definition = yaml.load(file, yaml.CSafeLoader)
    spec = definition["spec"]
    version = next(version for version in spec["versions"] if version["storage"])
    schema = converted(version["schema"]["openAPIV3Schema"])
    head = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": ID,
        "title": KIND,
        "description": schema["description"],
        "type": "object",
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"type": "string", "const": f"{spec['group']}/{version['name']}"},
            "kind": {"type": "string", "const": KIND},
            "metadata": {"type": "object", "description": f"Name, namespace, labels: {METADATA}"},
            **schema["properties"],
        },
    }
    if arguments[1:]:
        head = for_models(head)
    print(json.dumps(head, indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
