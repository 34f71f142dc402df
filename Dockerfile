# Penstock with a Java runtime, as a user without rights.
#
# NOT BUILT YET: nobody has run `docker build` on this file. Its steps are those of docs/install.md ("As a package") and
# of `make check-wheel`, which are tested without Docker.
#
#   docker build -t penstock .
#   docker run --init --rm penstock doctor
#   docker run --init --rm --stop-timeout 120 -v "$PWD:/flows:ro" -v checkpoints:/data penstock \
#       run orders:flow --checkpoint /data/orders

FROM python:3.11-slim-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jdk-headless \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements.lock ./
RUN python -m venv /build && /build/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml hatch_build.py hatch_readme.py README.md LICENSE ./
COPY java ./java
COPY penstock ./penstock
# The lock file has hatchling and pyspark, so nothing is fetched here.
RUN /build/bin/python -m build --wheel --no-isolation --outdir /dist

FROM python:3.11-slim-bookworm
RUN apt-get update \
    && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps \
    && rm -rf /var/lib/apt/lists/*
COPY requirements.lock /tmp/
COPY --from=build /dist/*.whl /tmp/
# Versions of the lock file; of its packages only those that the extras need.
RUN sed 's/ *\\$//; /^ *--hash/d; /^ *#/d' /tmp/requirements.lock > /tmp/constraints.txt \
    && pip install --no-cache-dir -c /tmp/constraints.txt "$(ls /tmp/*.whl)[dashboard,kafka,metrics]" \
    && rm /tmp/*.whl /tmp/requirements.lock /tmp/constraints.txt
RUN useradd --create-home penstock && mkdir /data /flows && chown penstock /data
USER penstock
WORKDIR /flows
ENV PYTHONUNBUFFERED=1 PYTHONPATH=/flows
ENTRYPOINT ["penstock"]
CMD ["--help"]
