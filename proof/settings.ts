// The settings of the gateways of a proof beside those of the schedule, and the constants: short real waits, because a history
// lasts a second or two, and places, points and listeners of this machine.

import type { Settings } from './steps.ts'

export const fleetSettings: Settings = {
  'server.port': '0',
  'server.drainFor': '0s',
  'server.statusPage': 'true',
  'ops.port': '0',
  'redis.commandTimeout': '300ms',
  'provider.timeout': '250ms',
  'log.access': 'false',
}

/** As test/support/constants.ts takes them. */
export const fleetConstants: Readonly<Record<string, string>> = {
  ABOHAWA_TEST_REDIS__CONNECT_TIMEOUT: '300ms',
  ABOHAWA_TEST_PROVIDER__CONNECT_TIMEOUT: '250ms',
  ABOHAWA_TEST_PROVIDER__BODY_TIMEOUT: '250ms',
  ABOHAWA_TEST_PROVIDER__TOTAL_TIMEOUT: '600ms',
  ABOHAWA_TEST_PROVIDER__RETRIES: '1',
  ABOHAWA_TEST_PROVIDER__RETRY_DELAY: '1ms',
  ABOHAWA_TEST_PROVIDER__REFUSED_FOR: '5s',
  ABOHAWA_TEST_PROVIDER__BREAKER__AFTER: '2',
  ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '100ms',
  ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '200ms',
  ABOHAWA_TEST_CACHE__RETRY_AFTER: '1s',
  ABOHAWA_TEST_CACHE__RETRY_AFTER_AT_MOST: '5s',
  ABOHAWA_TEST_CACHE__WAIT_FOR: '4s',
  ABOHAWA_TEST_CACHE__LEASE_FOR: '300ms',
  ABOHAWA_TEST_CACHE__WARM_FOR: '200ms',
  ABOHAWA_TEST_CACHE__SETTLE_FOR: '1m',
  ABOHAWA_TEST_CACHE__SPREAD_OVER: '5m',
  ABOHAWA_TEST_CATALOGUE__POLL_EVERY: '1h',
  ABOHAWA_TEST_CONFIG__POLL_EVERY: '1h',
}
