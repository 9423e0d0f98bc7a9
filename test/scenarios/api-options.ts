// The options of an API over plain HTTP, with limits that nothing reaches by itself.

import type { ApiOptions } from '../../src/api/api.ts'

export const apiOptions: ApiOptions = {
  tls: { cert: null, key: null, ticketKey: null, http2: true },
  trustedProxies: [],
  publicUrl: null,
  clientAddress: 'full',
  requestTimeoutMs: 60_000,
  cors: { origins: [] },
  notModifiedCost: 1,
  keepAliveTimeoutMs: 60_000,
  takenWithinMs: 60_000,
  maxConnections: 1_000,
  maxConnectionsPerAddress: 1_000,
  keepBytes: 1_000_000,
}
