// The settings of the gateways of a proof beside those of the schedule: short real waits, because a history lasts a second or
// two, and places, points and listeners of this machine.

import type { Settings } from '../steps.ts'

export const fleetSettings: Settings = {
  'server.port': '0',
  'server.drainFor': '0s',
  'ops.port': '0',
  'redis.connectTimeout': '300ms',
  'redis.commandTimeout': '300ms',
  'provider.connectTimeout': '250ms',
  'provider.timeout': '250ms',
  'provider.bodyTimeout': '250ms',
  'provider.totalTimeout': '600ms',
  'provider.retries': '1',
  'provider.retryDelay': '1ms',
  'provider.refusedFor': '5s',
  'provider.breaker.after': '2',
  'provider.breaker.halfOpenAfter': '100ms',
  'provider.breaker.halfOpenAfterAtMost': '200ms',
  'cache.retryAfter': '1s',
  'cache.retryAfterAtMost': '5s',
  'cache.waitFor': '4s',
  'cache.leaseFor': '300ms',
  'cache.warmFor': '200ms',
  'cache.settleFor': '1m',
  'cache.spreadOver': '5m',
  'catalogue.pollEvery': '1h',
  'config.watch': 'false',
  'log.access': 'false',
}
