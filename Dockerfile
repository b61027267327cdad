# syntax=docker/dockerfile:1
# The daemon's image: no Spark, no compiler, no pip, no root. Build: docker build -t rgd:0.1.0 .

FROM python:3.11-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY constraints.txt ./
RUN pip install -q -c constraints.txt hatchling && python -m venv --without-pip /opt/rgd
COPY pyproject.toml README.md ./
COPY rgd ./rgd
RUN pip wheel -q --no-deps --no-build-isolation --wheel-dir /dist . \
    && pip --python /opt/rgd/bin/python install -q -c constraints.txt "$(echo /dist/rgd-*.whl)[embedded,tier]"

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/rgd --create-home rgd
COPY --from=build /opt/rgd /opt/rgd
ENV PATH=/opt/rgd/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# By number, so that Kubernetes can see that it is not root. The usage log goes below this folder.
USER 10001:10001
WORKDIR /var/lib/rgd
VOLUME /var/lib/rgd
EXPOSE 7700
STOPSIGNAL SIGTERM
# Where it listens elsewhere or over TLS: RGD_URL, RGD_TLS_CA. Kubernetes has its own probes.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD ["rgd", "probe"]
ENTRYPOINT ["rgd"]
CMD ["serve"]
