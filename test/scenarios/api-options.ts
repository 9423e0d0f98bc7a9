// The options of an API over plain HTTP on one worker, with limits that nothing reaches by itself.

import type { ApiOptions } from '../../src/edge/api.ts'

export const apiOptions: ApiOptions = {
  tls: { cert: null, key: null, ticketKey: null, http2: true },
  trustedProxies: [],
  publicUrl: null,
  clientAddress: 'full',
  requestTimeoutMs: 60_000,
  cors: { origins: [] },
  writeTimeoutMs: 60_000,
  keepAliveTimeoutMs: 60_000,
  maxConnections: 1_000,
  maxUnauthenticated: 1_000,
  unauthenticatedRateBytes: 2 ** 20,
  unauthenticatedBurstBytes: 8 * 2 ** 20,
  workers: 1,
  maxPipelined: 16,
  maxQueuedRequests: 1_000,
  keepBytes: 1_000_000,
}
