# syntax=docker/dockerfile:1
# The daemon's image: no Spark, no compiler, no pip, no root. Build: docker build -t rgd:0.1.0 .
# The report's, with Java and Spark: docker build --target report -t rgd-report:0.1.0 .

FROM python:3.11-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY constraints.txt ./
RUN pip install -q -c constraints.txt hatchling && python -m venv --without-pip /opt/rgd
COPY pyproject.toml README.md ./
COPY docs/runbooks.md ./docs/runbooks.md
COPY rgd ./rgd
RUN pip wheel -q --no-deps --no-build-isolation --wheel-dir /dist . \
    && pip --python /opt/rgd/bin/python install -q -c constraints.txt "$(echo /dist/rgd-*.whl)[embedded,tier]"

FROM build AS build-report
RUN pip --python /opt/rgd/bin/python install -q -c constraints.txt "$(echo /dist/rgd-*.whl)[report]"

FROM python:3.11-slim-bookworm AS base
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="rgd" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
RUN useradd --system --uid 10001 --home-dir /var/lib/rgd --create-home rgd
# The build is named in the log's `starting` and `stopped`, and in rgd_build_info.
ENV PATH=/opt/rgd/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 RGD_BUILD=$REVISION
WORKDIR /var/lib/rgd
ENTRYPOINT ["rgd"]

FROM base AS report
LABEL org.opencontainers.image.description="Fairness reports of rgd's usage logs, by Spark"
RUN apt-get update -qq && apt-get install -qq -y --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build-report /opt/rgd /opt/rgd
USER 10001:10001
CMD ["report", "--help"]

# The last one is what is built without --target.
FROM base AS daemon
LABEL org.opencontainers.image.description="The resource-group daemon: one cluster-wide quota, held by every broker together"
COPY --from=build /opt/rgd /opt/rgd
# By number, so that Kubernetes can see that it is not root. The usage log goes below this folder.
USER 10001:10001
VOLUME /var/lib/rgd
EXPOSE 7700
STOPSIGNAL SIGTERM
# Where it listens elsewhere or over TLS: RGD_URL, RGD_TLS_CA. Kubernetes has its own probes.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["rgd", "probe"]
CMD ["serve"]
