#!/usr/bin/env python3
"""The SLSA provenance of a release: an in-toto statement in a DSSE envelope. scripts/release signs and verifies it.

  provenance.py statement REPOSITORY TAG COMMIT BUILDER <SHA256SUMS   the statement
  provenance.py signed-bytes <STATEMENT                               what the signature is of
  provenance.py envelope SIGNATURE <STATEMENT                         the envelope
  provenance.py open STATEMENT SIGNATURE <ENVELOPE                    writes both to files
  provenance.py subjects SHA256SUMS <STATEMENT                        compares the files, and prints who built them

Formats: in-toto Statement v1, SLSA Provenance v1, DSSE v1.0.
"""

import base64
import json
import pathlib
import sys

PAYLOAD = "application/vnd.in-toto+json"


def digests(text):
    """Digest by file, from lines of sha256sum."""
    lines = (line.split("  ", 1) for line in text.splitlines())
    return {name: digest for digest, name in lines}


def statement(repository, tag, commit, builder):
    source = f"git+https://github.com/{repository}"
    subjects = [{"name": name, "digest": {"sha256": digest}} for name, digest in digests(sys.stdin.read()).items()]
    build = {
        "buildType": f"https://github.com/{repository}/blob/{tag}/docs/develop/release.md",
        "externalParameters": {"repository": repository, "tag": tag},
        "resolvedDependencies": [{"uri": f"{source}@refs/tags/{tag}", "digest": {"gitCommit": commit}}],
    }
    print(json.dumps({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {"buildDefinition": build, "runDetails": {"builder": {"id": builder}}},
    }, indent=1))


def signed_bytes():
    body = sys.stdin.buffer.read()
    head = f"DSSEv1 {len(PAYLOAD)} {PAYLOAD} {len(body)} "
    sys.stdout.buffer.write(head.encode() + body)


def envelope(signature):
    encode = lambda data: base64.b64encode(data).decode()
    signatures = [{"keyid": "", "sig": encode(pathlib.Path(signature).read_bytes())}]
    print(json.dumps({"payloadType": PAYLOAD, "payload": encode(sys.stdin.buffer.read()), "signatures": signatures}))


def open_envelope(statement_file, signature_file):
    read = json.load(sys.stdin)
    if read["payloadType"] != PAYLOAD or len(read["signatures"]) != 1:
        sys.exit(f"provenance: the envelope has another payload than {PAYLOAD}, or more than one signature")
    pathlib.Path(statement_file).write_bytes(base64.b64decode(read["payload"]))
    pathlib.Path(signature_file).write_bytes(base64.b64decode(read["signatures"][0]["sig"]))


def subjects(sums):
    read = json.load(sys.stdin)
    named = {subject["name"]: subject["digest"]["sha256"] for subject in read["subject"]}
    if named != digests(pathlib.Path(sums).read_text(encoding="utf-8")):
        sys.exit(f"provenance: its files are not those of {sums}")
    build = read["predicate"]["buildDefinition"]["resolvedDependencies"][0]
    builder = read["predicate"]["runDetails"]["builder"]["id"]
    print(f"{len(named)} files of {build['uri']}, commit {build['digest']['gitCommit']}, built by {builder}")


VERBS = {
    "statement": (statement, 4),
    "signed-bytes": (signed_bytes, 0),
    "envelope": (envelope, 1),
    "open": (open_envelope, 2),
    "subjects": (subjects, 1),
}

if __name__ == "__main__":
    verb, *arguments = sys.argv[1:] or [""]
    if verb not in VERBS or len(arguments) != VERBS[verb][1]:
        sys.exit(__doc__)
    VERBS[verb][0](*arguments)
