// Values that nobody has to tune, in the form of the configuration, each with its reason. Only tests replace them.

export const constants = {
  server: {
    // Within it a request to the API must have arrived completely. Slow clients need some of it, and strangers can't keep more.
    requestTimeoutMs: 30_000,
    // At a stop, the time after that until an answer must be taken. Longer than weather is waited for; what is counted is still to be
    // reported before whoever stops the process kills it.
    takenWithinMs: 20_000,
  },
  ops: {
    // Beyond it the oldest without a whole request is closed; probes are answered in any case. Each costs memory and a descriptor.
    maxConnections: 128,
    // Within it a request to the ops or the health listener must have arrived completely.
    requestTimeoutMs: 10_000,
  },
  health: {
    // As for ops; probes and Prometheus need a handful.
    maxConnections: 32,
  },
  redis: {
    // Rides out a slow network, and delays a start without Redis by no more.
    connectTimeoutMs: 2_000,
  },
  provider: {
    // The share of each limit for gateways that have lost Redis. Nothing is set aside without Redis or with one process.
    outageShare: 0.05,
    // More helps on bad lines and makes an outage slower to notice.
    connectTimeoutMs: 2_000,
    // The silence allowed between two chunks of a body; a large batch is computed while it is sent.
    bodyTimeoutMs: 10_000,
    // For a whole call, until its body is decoded: a body that trickles in occupies one of provider.maxConcurrent that long.
    totalTimeoutMs: 30_000,
    // Each may spend the provider's quota and the consumer's time.
    retries: 2,
    // Before the first retry; later ones wait longer. Less adds load to a provider that is already failing.
    retryDelayMs: 300,
    // The longest backoff after the provider refused a point; the first is cache.retryAfterMs, doubled by each refusal in a row.
    refusedForMs: 600_000,
    // After some failures in a row no request is sent until a probe succeeds.
    breaker: {
      // Fewer failures would take bad luck for an outage.
      after: 3,
      // Until the first probe, with up to 25 % jitter less. A probe fetches one point, also when no consumer asks. With another
      // upstream behind it fetches up to ten more. Each failed one doubles the time. After a recovery weather is back within it.
      halfOpenAfterMs: 5_000,
      // Longer would put less load on a struggling provider, and notice its recovery later.
      halfOpenAfterAtMostMs: 60_000,
    },
    runs: {
      // The model behind the best match of Bangladesh, as the provider names it under /data.
      model: 'ecmwf_ifs',
      // Runs come every six hours. A poll weighs nothing.
      pollEveryMs: 300_000,
    },
  },
  catalogue: {
    // A poll costs next to nothing.
    pollEveryMs: 1_000,
  },
  cache: {
    // The largest jitter of freshness, as a share of cache.freshFor, so that cells fetched together are not fetched again together.
    freshSpread: 0.2,
    // A new run may not have reached all of the provider's servers for that long: Open-Meteo asks for ten minutes.
    settleForMs: 600_000,
    // The fetches after a new run are spread over it: gentler on the provider's minute and hour, and later with the new weather.
    spreadOverMs: 1_800_000,
    // Before it turns stale a cell in demand is refreshed, so that nobody gets stale weather. Freshness is longer by as much, so
    // this costs no fetches but those of cells that nobody requests again.
    refreshAheadForMs: 60_000,
    // After its last request a cell counts as in demand that long: it is refreshed ahead, loaded from the shared tier at a restart, and
    // counted when freshness is stretched to the budget.
    demandForMs: 7_200_000,
    // A start loads cells in demand from the shared tier for no longer before the gateway is ready.
    warmForMs: 1_500,
    // The first backoff after a cell could not be fetched; it doubles with each failure in a row, with up to 50 % jitter more.
    retryAfterMs: 10_000,
    // The longest backoff, jitter included.
    retryAfterAtMostMs: 300_000,
    // A consumer waits for a cell with nothing cached no longer, however long the queue to the provider is; then the response is an
    // error, and the fetch continues for the next request.
    waitForMs: 15_000,
    // Held, and renewed, by the gateway that fetches a cell for the fleet. When it dies another takes over after this; too short lets
    // two gateways fetch one cell when one of them stalls.
    leaseForMs: 2_000,
  },
  tracing: {
    // A collector that hangs must not hold up a stop, for which a process manager allows a few seconds.
    closeWithinMs: 1_000,
  },
  doctor: {
    // How long a gateway, a proxy and the probe of the provider may take to answer; one that hangs delays the report by as much.
    answerWithinMs: 10_000,
  },
  config: {
    // A file is read once two polls agree, so that none is read half written.
    pollEveryMs: 1_000,
  },
}

export type Constants = typeof constants
