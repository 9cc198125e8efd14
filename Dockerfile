# The image: one static binary on nothing.
#
#   docker build -t shed .                      compiles in a builder image
#   docker build -t shed --target prebuilt .    takes dist/shed as it is
#
# The second way is for machines that can't pull a builder image: e2e/image.sh
# compiles with the flags below on the host and hands the result over. Both
# ways differ in where the binary comes from, and in nothing else. (A target, and
# no build argument in a FROM: some builders look for the stages that are needed
# before they know the argument.)

ARG BUILDER_IMAGE=docker.io/library/rust:1.95-bookworm

FROM ${BUILDER_IMAGE} AS build
# More features of the operator, such as otel (docs/how-to/trace-the-operator.md).
ARG FEATURES=
WORKDIR /src
COPY . .
# --target keeps build scripts and procedural macros apart from the program:
# they can't be linked statically. It names the builder's own architecture, so
# for another one build with --platform.
# The cargo home is renamed in panic messages so that the bytes don't tell
# where they were built. Keep both flags the same as in e2e/image.sh.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    set -eu; \
    target=$(rustc -vV | sed -n 's/^host: //p'); \
    RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=${CARGO_HOME:-/usr/local/cargo}=/cargo" \
        cargo build --release --locked --bin shed --features "$FEATURES" --target "$target"; \
    mkdir -p dist; \
    cp "target/$target/release/shed" dist/shed

FROM scratch AS base
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="shed" \
      org.opencontainers.image.description="Kubernetes operator that makes batch jobs meet their deadlines" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# A number, because an empty root has no passwd file to look a name up in, and
# runAsNonRoot can only be checked against a number.
USER 65532:65532
ENTRYPOINT ["/shed"]

FROM base AS prebuilt
COPY --chown=0:0 --chmod=0755 dist/shed /shed

FROM base
COPY --from=build --chown=0:0 --chmod=0755 /src/dist/shed /shed
