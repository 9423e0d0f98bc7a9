// The API as a Fastify application without a socket, for unit tests: a small catalogue, a timeline with every hour,
// one good key, and a quota that the test sets.

import { type Api, type ApiOptions, type ApiParts, buildApi } from '../../src/api/api.ts'
import { writeByWriteHead } from '../../src/api/connection/choose-writer.ts'
import type { Access } from '../../src/api/request-state.ts'
import { openCatalogue } from '../../src/catalogue/live-catalogue.ts'
import { createCalendar, utcDayMs } from '../../src/common/calendar.ts'
import type { Authentication, Client } from '../../src/keys/authentication.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { apiOptions } from '../scenarios/api-options.ts'
import { alwaysFresh, wholeTimeline } from '../scenarios/whole-timeline.ts'
import { sampleKey } from '../support/key-records.ts'
import { type ManualClock, manualClock } from '../support/manual-clock.ts'
import type { Teardown } from '../support/teardown.ts'
import { usualCatalogue } from '../support/usual-catalogue.ts'

export const goodKey = 'svc_live_good'
export const goodClient: Client = {
  ...{
    keyId: 'key_1',
    keyNumber: 1,
    subscriberId: 'sub_1',
    tier: 'free',
    limit: 10,
    record: sampleKey('key_1'),
  },
  ...{ endsAt: null, endsSoon: false, restrictedBy: undefined, isTest: false },
}

export type TestApp = Api & {
  readonly options: ApiOptions
  /** Why connections were closed. */
  readonly closed: string[]
  readonly clock: ManualClock
  readonly answered: Access[]
  readonly decisions: string[]
  readonly failures: unknown[]
  /** Reads of weather so far. */
  readonly reads: () => number
  inject(
    url: string,
    headers?: Record<string, string>,
    method?: string,
  ): Promise<{
    status: number
    headers: Record<string, string>
    bytes: Buffer
    // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
    body: any
  }>
}

/** @param consume the quota's decision; by default one unit after another of ten */
export const startApp = async (
  t: Teardown,
  parts: Partial<ApiParts> = {},
  options: Partial<ApiOptions> = {},
): Promise<TestApp> => {
  const clock = manualClock('2026-11-21T06:05:00Z')
  const calendar = createCalendar('Asia/Dhaka')
  const catalogue = await openCatalogue({ path: usualCatalogue, pollMs: utcDayMs })
  t.teardown(catalogue.close)
  const timelines = alwaysFresh(wholeTimeline(clock.now(), calendar), clock.now)
  let reads = 0
  let left = goodClient.limit
  const log = { answered: [], decisions: [], failures: [], closed: [] } as Pick<
    TestApp,
    'answered' | 'decisions' | 'failures' | 'closed'
  >
  const settings: ApiOptions = { ...apiOptions, ...options }
  const api = buildApi(
    {
      authenticate: (key): Authentication =>
        key === undefined
          ? { refusal: 'missing' }
          : key === goodKey
            ? { client: goodClient }
            : { refusal: 'unknown' },
      quota: {
        now: clock.now,
        resetAfter: calendar.nextMidnight,
        refund: () => 0,
        isExact: () => true,
        consume: (_client, _at, units, callback) => {
          const allowed = left >= units
          if (allowed) left -= units
          callback(undefined, { allowed, remaining: left })
        },
      },
      usage: { usedOn: async (_keyId, days) => days.map(() => 0) },
      grid: createGrid(0.1),
      timelines: {
        read: subject => {
          reads += 1
          return timelines.read(subject)
        },
      },
      inMemory: () => undefined,
      calendar,
      hourlyHours: 144,
      catalogue,
      clock,
      // Injected requests use the public way to write a response.
      writeReady: writeByWriteHead,
      observer: {
        admission: decision => log.decisions.push(decision),
        rateLimited: () => {},
        responded: () => {},
        respondedToTest: () => {},
        used: () => {},
        access: access => log.answered.push(access),
        failed: error => log.failures.push(error),
        writerFellBack: () => {},
        connectionClosed: reason => log.closed.push(reason),
      },
      ...parts,
    },
    settings,
  )
  return {
    ...{ ...api, ...log, options: settings, clock },
    reads: () => reads,
    inject: async (url, sent = { 'x-api-key': goodKey }, method = 'GET') => {
      const response = await api.app.inject({ url, headers: sent, method: method as 'GET' })
      const isJson = String(response.headers['content-type']).startsWith('application/json')
      const bytes = response.rawPayload
      const isPlain = response.headers['content-encoding'] === undefined
      const headers = Object.entries(response.headers).map(([name, value]) => [name, String(value)])
      return {
        status: response.statusCode,
        headers: Object.fromEntries(headers),
        bytes,
        body: isJson && isPlain && bytes.length > 0 ? JSON.parse(bytes.toString()) : undefined,
      }
    },
  }
}
