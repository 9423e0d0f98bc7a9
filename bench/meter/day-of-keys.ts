// A day of gateways with very many keys: load on them, the parts of the day with the turns of their event loops, and the
// comparison of all counts with the responses. many-keys.ts has the stores, the troubles of the day and the bars.

import { once } from 'node:events'
import { setTimeout as pause } from 'node:timers/promises'
import { createCalendar, hourMs } from '../../src/common/calendar.ts'
import type { Store } from '../../src/stores/store.ts'
import { type Caller, openCallers } from '../../test/scenarios/callers.ts'
import { meterEnv } from '../../test/scenarios/quota-load.ts'
import { type Env, forAll, metric, type Scope } from '../../test/scenarios/set-up.ts'
import { type Running, startLimited } from '../../test/support/process.ts'
import { until } from '../../test/support/until.ts'
import type { WrittenKeys } from '../write-keys.ts'
import type { Order, WatchedReport } from './watched.ts'

const zone = 'Asia/Dhaka'
const path = '/api/v1/locations?type=division'
const watched = new URL('watched.ts', import.meta.url).href
// Twice what a gateway has with a million keys.
const dataBytes = 2 * 2 ** 30
const callersEach = 32
const scrapeEveryMs = 5_000
const partAtMostMs = 1_200_000
// Of each caller, so that few requests wait for the processor.
const steadyPauseMs = 100

/** What a part of the day was like; times in ms. */
export type Part = {
  readonly name: string
  readonly seconds: number
  readonly responses: number
  /** Of other statuses than 200. */
  readonly failed: number
  readonly p99: number
  /** The longest of all gateways. */
  readonly turn: number
  readonly delay: number
  readonly collection: number
}

/** The number of the key of a caller's next request; undefined ends its load. */
type Next = () => number | undefined

export type Day = Awaited<ReturnType<typeof startDay>>

export const startDay = async (
  scope: Scope,
  { env: more, gateways: size, keys }: { env: Env; gateways: number; keys: WrittenKeys },
  progress: (text: string) => void,
) => {
  const calendar = createCalendar(zone)
  const midnight = calendar.nextMidnight(Date.now())
  // It begins at noon.
  let aheadMs = midnight - 12 * hourMs - Date.now()
  /** By the end of the day, then key: admitted requests. */
  const admitted = new Map<number, Uint16Array>()
  let [times, failed]: [number[], number] = [[], 0]
  let replaced: WatchedReport[] = []

  const start = (): Promise<Running> =>
    startLimited(
      scope,
      dataBytes,
      ['serve'],
      ['api', 'ops'],
      meterEnv({
        ABOHAWA_QUOTA__TIME_ZONE: zone,
        NODE_OPTIONS: `--import=${watched}`,
        BENCH_AHEAD_MS: String(aheadMs),
        ...more,
      }),
      true,
    )
  const gateways = await Promise.all(Array.from({ length: size }, start))
  const ask = async ({ child }: Running, order: Order): Promise<WatchedReport> => {
    const reported = once(child, 'message')
    child.send(order)
    const [report] = await reported
    return report
  }
  const askAll = (order: Order) => Promise.all(gateways.map(gateway => ask(gateway, order)))

  const note = (key: number, ms: number, status: number, head: string): void => {
    times.push(ms)
    if (status !== 200) {
      failed += 1
      return
    }
    const reset = 1_000 * Number(/^x-ratelimit-reset: (\d+)/im.exec(head)?.[1])
    const counts = admitted.getOrInsertComputed(reset, () => new Uint16Array(keys.presented.length))
    counts[key] = (counts[key] ?? 0) + 1
  }
  const send = async (caller: Caller, next: Next, pauseMs: number): Promise<void> => {
    const endsAt = performance.now() + partAtMostMs
    for (let key = next(); key !== undefined && performance.now() < endsAt; key = next()) {
      const { status, ms, head } = await caller.send(path, keys.presented[key] ?? '')
      // Its gateway has ended.
      if (status === 0) return
      note(key, ms, status, head)
      if (pauseMs > 0) await pause(pauseMs)
    }
  }
  const loadOn = async ({ urls }: Running, next: Next, pauseMs = 0): Promise<void> => {
    const teardowns: (() => unknown)[] = []
    const own = { teardown: (fn: () => unknown) => void teardowns.push(fn) }
    const callers = await openCallers(own, urls.api ?? '', '', callersEach)
    await Promise.all(callers.map(caller => send(caller, next, pauseMs)))
    for (const teardown of teardowns) teardown()
  }
  let drawn = 0
  /** Keys all over the table: a step that is prime visits each before it repeats. */
  const draw = (): number => {
    drawn = (drawn + 7_368_787) % keys.presented.length
    return drawn
  }
  const steady = (isOver: () => boolean, on: readonly Running[] = gateways): Promise<unknown> =>
    Promise.all(on.map(gateway => loadOn(gateway, () => (isOver() ? undefined : draw()), steadyPauseMs)))

  const scrapeOne = async ({ urls }: Running): Promise<void> => {
    // It may be ending.
    for (const page of ['metrics', 'status'])
      await fetch(`${urls.ops}/${page}`).then(
        response => response.arrayBuffer(),
        () => {},
      )
  }
  const scrape = (): void => {
    for (const gateway of gateways) void scrapeOne(gateway)
  }
  const isCounting = async (): Promise<boolean> => {
    const name = 'abohawa_quota_counting{state="counting"}'
    const states = await Promise.all(gateways.map(({ urls }) => metric(urls.ops ?? '', name)))
    return states.every(state => state === 1)
  }

  return {
    midnight,
    /** Measures a part of the day, in which the gateways are scraped as often as by a monitoring. */
    part: async (name: string, act: () => Promise<unknown>): Promise<Part> => {
      progress(name)
      ;[times, failed, replaced] = [[], 0, []]
      await askAll({})
      scrape()
      const scrapes = setInterval(scrape, scrapeEveryMs)
      const startedAt = performance.now()
      await act().finally(() => clearInterval(scrapes))
      const seconds = (performance.now() - startedAt) / 1_000
      const reports = [...replaced, ...(await askAll({}))]
      const inOrder = Float64Array.from(times).sort()
      const longest = (of: 'turn' | 'delay' | 'collection') => Math.max(...reports.map(report => report[of]))
      return {
        name,
        seconds,
        responses: times.length,
        failed,
        p99: inOrder[Math.floor(inOrder.length * 0.99)] ?? Number.NaN,
        turn: longest('turn'),
        delay: longest('delay'),
        collection: longest('collection'),
      }
    },
    /** As fast as it goes: the first gateway gets a request of each key, each other one of every twentieth. */
    useAll: (): Promise<unknown> =>
      Promise.all(
        gateways.map((gateway, i) => {
          let key = i - 1
          const step = i === 0 ? 1 : 20
          if (i === 0) key = 0
          return loadOn(gateway, () => {
            const next = key
            key += step
            if (i === 0 && next % 100_000 === 0) progress(`${next} keys used`)
            return next < keys.presented.length ? next : undefined
          })
        }),
      ),
    steadyFor: (ms: number): Promise<unknown> => {
      const end = performance.now() + ms
      return steady(() => performance.now() >= end)
    },
    /** Steady load while something happens. */
    steadyDuring: async (act: () => Promise<unknown>): Promise<void> => {
      let isOver = false
      const loaded = steady(() => isOver)
      await act().finally(() => {
        isOver = true
      })
      await loaded
    },
    isCounting,
    memory: () => askAll({ collect: true }),
    untilCounting: () => until('every gateway counts', isCounting, 120_000, 50),
    moveTo: async (instant: number): Promise<void> => {
      aheadMs = instant - Date.now()
      await askAll({ aheadMs })
    },
    /** Ends the first gateway in order, starts another in its place and puts load on it. @returns ms */
    replaceFirst: async (): Promise<{ stopMs: number; startMs: number }> => {
      const former = gateways[0] as Running
      const stoppedAt = performance.now()
      former.child.kill('SIGTERM')
      await former.exited
      replaced.push(JSON.parse(former.lines.findLast(line => line.startsWith('{"watched"')) ?? '').watched)
      const startedAt = performance.now()
      const next = await start()
      gateways[0] = next
      const startMs = performance.now() - startedAt
      // A start, and the first request of an operator, compile code, with few keys as with many.
      await scrapeOne(next)
      await ask(next, {})
      const end = performance.now() + 5_000
      await steady(() => performance.now() >= end, [next])
      return { stopMs: startedAt - stoppedAt, startMs }
    },
    /** @returns how many keys the store counts otherwise than the responses, and all admitted requests */
    compare: async (store: Store): Promise<{ off: number; admitted: number }> => {
      const ends = [...admitted.keys()]
      const days = ends.map(end => calendar.dayOf(end - 1))
      let [off, sum] = [0, 0]
      await forAll(keys.ids, 500, async (id, key) => {
        const used = await store.usedOn(id, days)
        const expected = ends.map(end => admitted.get(end)?.[key] ?? 0)
        if (used.some((units, i) => units !== expected[i])) off += 1
        for (const units of expected) sum += units
      })
      return { off, admitted: sum }
    },
  }
}
