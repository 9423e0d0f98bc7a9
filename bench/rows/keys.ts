// A million keys, each used in one day by three gateways on one Redis: the longest turn of an event loop, whether each is counted
// exactly, what a key takes in memory and in the store, and how quickly a gateway is replaced. The clocks are moved to the parts of
// the day.

import { setTimeout as pause } from 'node:timers/promises'
import { createCalendar, hourMs } from '../../src/common/calendar.ts'
import type { Store } from '../../src/stores/store.ts'
import { type Caller, openCallers } from '../../test/scenarios/callers.ts'
import { meterEnv } from '../../test/scenarios/quota-load.ts'
import { type Env, forAll } from '../../test/scenarios/set-up.ts'
import { startRedis } from '../../test/support/redis-server.ts'
import type { Teardown } from '../../test/support/teardown.ts'
import { count, found, judged, ms, type Progress, quantile, type Row } from '../row.ts'
import { readerOfRedis } from '../tools/processes.ts'
import type { Order, WatchedReport } from '../tools/watched.ts'
import { startWatched, type Watched } from '../tools/watched-gateway.ts'
import { type Keys, openStoreOf, writeKeys } from '../tools/written-keys.ts'

const zone = 'Asia/Dhaka'
const path = '/api/v1/locations?type=division'
// Twice what a gateway has with a million keys.
const dataBytes = 2 * 2 ** 30
const longestTurnMs = 60
const callersEach = 32
const scrapeEveryMs = 5_000
const partAtMostMs = 1_200_000
// Of each caller, so that few requests wait for the processor.
const steadyPauseMs = 100

/** What a part of the day was like: times in ms, the longest of all gateways; `failed` are answers of other statuses than 200. */
type Part = { readonly name: string } & Readonly<
  Record<'seconds' | 'responses' | 'failed' | 'p99' | 'turn' | 'delay', number>
>

/** The number of the key of a caller's next request; undefined ends its load. */
type Next = () => number | undefined

const startDay = async (scope: Teardown, env: Env, { presented, ids }: Keys, progress: Progress) => {
  const calendar = createCalendar(zone)
  const midnight = calendar.nextMidnight(Date.now())
  // It begins at noon.
  let aheadMs = midnight - 12 * hourMs - Date.now()
  /** By the end of the day, then key: admitted requests. */
  const admitted = new Map<number, Uint16Array>()
  let [times, failed]: [number[], number] = [[], 0]
  const parts: Part[] = []

  const start = async (): Promise<{ gateway: Watched; callers: Caller[] }> => {
    const settings = meterEnv({ ABOHAWA_QUOTA__TIME_ZONE: zone, ...env })
    const gateway = await startWatched(scope, dataBytes, settings, aheadMs)
    return { gateway, callers: await openCallers(scope, gateway.urls.api ?? '', '', callersEach) }
  }
  const fleet = await Promise.all(Array.from({ length: 3 }, start))
  const askAll = (order: Order): Promise<WatchedReport[]> =>
    Promise.all(fleet.map(({ gateway }) => gateway.ask(order)))
  const scrape = async (): Promise<void> => {
    // A gateway may be ending.
    for (const { gateway } of fleet)
      for (const page of ['metrics', 'status'])
        await fetch(`${gateway.urls.ops}/${page}`)
          .then(response => response.arrayBuffer())
          .catch(() => {})
  }

  const send = async (caller: Caller, next: Next, pauseMs: number): Promise<void> => {
    const endsAt = performance.now() + partAtMostMs
    for (let key = next(); key !== undefined && performance.now() < endsAt; key = next()) {
      const { status, ms, head } = await caller.send(path, presented[key] ?? '')
      // Its gateway has ended.
      if (status === 0) return
      times.push(ms)
      if (status === 200) {
        const reset = 1_000 * Number(/^x-ratelimit-reset: (\d+)/im.exec(head)?.[1])
        const counts = admitted.getOrInsertComputed(reset, () => new Uint16Array(presented.length))
        counts[key] = (counts[key] ?? 0) + 1
      } else failed += 1
      if (pauseMs > 0) await pause(pauseMs)
    }
  }
  let drawn = 0
  /** Keys all over the table, by a prime step, until the end. */
  const steadyFor = (forMs: number): Promise<unknown> => {
    const endsAt = performance.now() + forMs
    const next: Next = () => {
      if (performance.now() >= endsAt) return undefined
      drawn = (drawn + 7_368_787) % presented.length
      return drawn
    }
    return Promise.all(
      fleet.flatMap(({ callers }) => callers).map(caller => send(caller, next, steadyPauseMs)),
    )
  }
  return {
    midnight,
    parts,
    steadyFor,
    memory: async () => (await askAll({ collect: true }))[0] as WatchedReport,
    /** Measures a part of the day, in which the gateways are scraped as often as by a monitoring. */
    part: async (name: string, act: () => Promise<unknown>): Promise<void> => {
      progress(name)
      ;[times, failed] = [[], 0]
      await askAll({})
      const scrapes = setInterval(() => void scrape(), scrapeEveryMs)
      const startedAt = performance.now()
      await act().finally(() => clearInterval(scrapes))
      const seconds = (performance.now() - startedAt) / 1_000
      const reports = await askAll({})
      const [turn, delay] = (['turn', 'delay'] as const).map(of => Math.max(...reports.map(one => one[of])))
      const [responses, p99] = [times.length, quantile(times, 0.99)]
      parts.push({ name, seconds, responses, failed, p99, turn: turn ?? 0, delay: delay ?? 0 })
    },
    /** As fast as it goes: the first gateway gets a request of each key, each other one of every twentieth. */
    useAll: (): Promise<unknown> =>
      Promise.all(
        fleet.flatMap(({ callers }, i) => {
          const step = i === 0 ? 1 : 20
          let key = i - step
          const next: Next = () => {
            key += step
            if (i === 0 && key % 100_000 === 0) progress(`${key} keys used`)
            return key < presented.length ? key : undefined
          }
          return callers.map(caller => send(caller, next, 0))
        }),
      ),
    moveTo: async (instant: number): Promise<void> => {
      aheadMs = instant - Date.now()
      await askAll({ aheadMs })
    },
    /** Ends the first gateway in order and starts another instead. @returns ms */
    replaceFirst: async (): Promise<{ stopMs: number; startMs: number }> => {
      const former = fleet[0]?.gateway as Watched
      const stoppedAt = performance.now()
      former.child.kill('SIGTERM')
      await former.exited
      const startedAt = performance.now()
      fleet[0] = await start()
      return { stopMs: startedAt - stoppedAt, startMs: performance.now() - startedAt }
    },
    /** How many keys the store counts otherwise than the responses, and all admitted requests. */
    compare: async (store: Store): Promise<{ off: number; total: number }> => {
      const ends = [...admitted.keys()]
      const days = ends.map(end => calendar.dayOf(end - 1))
      let [off, total] = [0, 0]
      await forAll(ids, 500, async (id, key) => {
        const used = await store.usedOn(id, days)
        const expected = ends.map(end => admitted.get(end)?.[key] ?? 0)
        if (used.some((units, i) => units !== expected[i])) off += 1
        for (const units of expected) total += units
      })
      return { off, total }
    },
  }
}

export const keys: Row = {
  id: 'keys',
  what: 'a million keys over three gateways: the longest turn, exact counts, memory',
  run: async (scope, { keys: size }, progress) => {
    const redis = await startRedis(scope)
    const env = { ABOHAWA_REDIS__URL: redis.url }
    const store = await openStoreOf(scope, env)
    const readRedis = readerOfRedis(scope, redis.url)
    const bytes = async (): Promise<number> => (await readRedis()).usedMemory
    const empty = await bytes()
    progress('writes the keys')
    const written = await writeKeys(store, size)
    const withKeys = await bytes()

    const day = await startDay(scope, env, written, progress)
    // First requests and first scrapes compile code.
    await day.part('warm-up', () => day.steadyFor(6_000))
    day.parts.pop()
    const before = await day.memory()
    await day.part('few keys', () => day.steadyFor(6_000))
    await day.part('all keys come in, as fast as it goes', day.useAll)
    // The last responses by endpoint are written within a second.
    await pause(2_000)
    const [used, after] = [await bytes(), await day.memory()]
    await day.moveTo(day.midnight - 3_000)
    await day.part('midnight', () => day.steadyFor(8_000))
    await day.moveTo(day.midnight + hourMs - 2_000)
    await day.part('an hour later, when counts are dropped', () => day.steadyFor(12_000))
    const replaced = await day.replaceFirst()
    await day.part('a gateway was replaced', () => day.steadyFor(5_000))
    progress('compares the counts')
    const { off, total } = await day.compare(store)

    const { parts } = day
    const longest = parts.reduce((one, other) => (other.turn > one.turn ? other : one))
    const perKey = (from: number, to: number): string => `${count((to - from) / size)} bytes`
    return {
      findings: [
        judged(
          `${count(size)} keys, 3 gateways: longest turn of an event loop`,
          `≤ ${longestTurnMs} ms`,
          longest.turn <= longestTurnMs,
          `${ms(longest.turn)} of processor time (${longest.name})`,
          parts,
        ),
        judged(
          'counts afterwards, vs admitted requests',
          'exact',
          off === 0,
          `${count(total)} admitted; ${off === 0 ? 'exact' : `${count(off)} keys off`}`,
          { total, off },
        ),
        found(
          'memory per key of the first gateway',
          `${perKey(before.heapUsed, after.heapUsed)} of heap, ${perKey(before.resident, after.resident)} resident ` +
            `(${count(after.resident / 2 ** 20)} MiB in all)`,
          { before, after },
        ),
        found(
          'store per key',
          `${perKey(empty, withKeys)} of records, ${perKey(withKeys, used)} of a day’s counts`,
          { empty, withKeys, used },
        ),
        found(
          'the first gateway is replaced',
          `ended in ${ms(replaced.stopMs)}, the next one ready in ${ms(replaced.startMs)}`,
          replaced,
        ),
      ],
      table: {
        head: ['part of the day', 's', 'responses', 'not 200', 'p99', 'longest turn', 'longest delay'],
        lines: parts.map(({ name, seconds, responses, failed, p99, turn, delay }) => [
          name,
          ...[seconds, responses, failed].map(count),
          ...[p99, turn, delay].map(ms),
        ]),
      },
    }
  },
}
