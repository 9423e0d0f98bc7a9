# The gateway as an image: no build step, no development packages, nothing written outside of /data. The target `tools` has the load
# tools, the simulated provider and the catalogue's builder too. A tag can be moved: docs/operating/install.md,
# "In a container", has the command that pins the base by its digest.

FROM node:26.10.0-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev

FROM node:26.10.0-slim AS gateway
LABEL org.opencontainers.image.title=abohawa org.opencontainers.image.version=1.2.0 org.opencontainers.image.licenses=MIT
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json locations.json ./
COPY config ./config
COPY docs/openapi.json docs/reference.en.html docs/reference.bn.html ./docs/
COPY bin ./bin
COPY dashboard ./dashboard
COPY src ./src
# What `--version`, /status and the metrics name beside the version: docker build --build-arg COMMIT="$(git rev-parse HEAD)" .
ARG COMMIT=
RUN printf %s "$COMMIT" > commit
# /data is the one folder the process writes to; keep it on a volume when the embedded store is used.
RUN install -d -o node -g node /data /cache
ENV NODE_ENV=production \
    NODE_COMPILE_CACHE=/cache \
    ABOHAWA_SERVER__HOST=0.0.0.0 \
    ABOHAWA_OPS__PORT=9090 \
    ABOHAWA_STORE__PATH=/data/abohawa.db
VOLUME /data
USER node
# One start, stopped as soon as it listens: what Node compiled for it stays in /cache, where every later start reads it and needs a
# third less of the processor. It has no time limit, for a slow builder; a start that fails fails the build. A config file is named
# for what reads YAML.
RUN ABOHAWA_SERVER__HOST=127.0.0.1 ABOHAWA_SERVER__DRAIN_FOR=0s ABOHAWA_STORE__PATH=:memory: \
    bin/abohawa serve --config config/default.yaml > /tmp/start & \
    until grep -qs '"listener":"api"' /tmp/start || ! kill -0 $!; do sleep 0.1; done; \
    kill $!; wait $! && rm /tmp/start
ENV NODE_COMPILE_CACHE_READONLY=1
# 9091 is the health.port of docs/operating/install.md, where one is set: a container has one gateway.
EXPOSE 8080 9090 9091
# A variable wins over a file, so the port here is the one the gateway has.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.ABOHAWA_OPS__PORT}/livez`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["bin/abohawa"]
CMD ["serve"]

FROM gateway AS tools
USER root
COPY package-lock.json .npmrc ./
RUN npm install --omit=dev --no-save --save-prod hdr-histogram-js@3.0.1 simple-statistics@7.12.1
COPY tools ./tools
USER node
# No command of these listens beyond the container.
ENV ABOHAWA_SERVER__HOST=127.0.0.1
HEALTHCHECK NONE
CMD ["--help"]

# The last stage is what a build without a target makes.
FROM gateway AS production
