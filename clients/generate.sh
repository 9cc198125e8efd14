#!/usr/bin/env bash
# Writes the typed models of a DeadlineJob for Go, Python and Java from its CustomResourceDefinition, with generators
# of JSON schema that each language has.
#
#   clients/generate.sh                  writes the models
#   clients/generate.sh --check [CRD]    fails if the models are not those of this definition; needs no generator
#
# The generators come from the Go module proxy, PyPI and Maven Central.
set -euo pipefail

here=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."

GO_JSONSCHEMA=github.com/atombender/go-jsonschema@v0.24.1
DATAMODEL_CODE_GENERATOR=datamodel-code-generator==0.89.0

work=$(mktemp -d "${TMPDIR:-/tmp}/shed-clients.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
mkdir "$work/schema" "$work/java"
schema=$work/schema/deadlinejob.json
e2e/json-schema.py "${2:-crds/deadlinejobs.yaml}" --models >"$schema"
digest=$(sha256sum "$schema" | cut -d' ' -f1)
note=clients/schema.sha256

case ${1-} in
"") ;;
--check)
    if [ "$(cat "$note" 2>/dev/null)" != "$digest" ]; then
        echo "the models in clients/ are not those of crds/deadlinejobs.yaml: run clients/generate.sh and commit the result" >&2
        exit 1
    fi
    exit 0
    ;;
*)
    echo "usage: ${0##*/} [--check]" >&2
    exit 2
    ;;
esac

models=clients/go/models.go
go run "$GO_JSONSCHEMA" --package shed --struct-name-from-title --only-models --tags json \
    --output "$work/models.go" "$schema"
# It gives both packages the same name.
sed -e 's|^import "k8s.io/api/core/v1"|import corev1 "k8s.io/api/core/v1"|' \
    -e 's|^import "k8s.io/apimachinery/pkg/apis/meta/v1"|import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"|' \
    "$work/models.go" | gofmt >"$models"
echo "wrote $models"

models=clients/python/shed_client/models.py
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "$DATAMODEL_CODE_GENERATOR"
"$work/venv/bin/datamodel-codegen" --input "$schema" --input-file-type jsonschema --output "$work/models.py" \
    --output-model-type pydantic_v2.BaseModel --target-python-version 3.10 --snake-case-field \
    --allow-population-by-field-name --use-title-as-name --use-schema-description --use-standard-collections \
    --use-union-operator --collapse-root-models --enum-field-as-literal all --formatters builtin --disable-timestamp
cp "$work/models.py" "$models"
echo "wrote $models"

models=clients/java/src/main/java/dev/shed/v1alpha1
mvn --quiet --batch-mode --file clients/java/pom.xml --activate-profiles generate \
    -Dshed.schema="$work/schema" -Dshed.models="$work/java" jsonschema2pojo:generate
rm -rf -- "$models"
mkdir -p "$models"
cp "$work"/java/dev/shed/v1alpha1/*.java "$models/"
echo "wrote $models"

echo "$digest" >"$note"
