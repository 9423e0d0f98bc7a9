// The cost of a unit: the meter beside one plain Redis command per request, in one process, in turn.

import { Redis } from 'ioredis'
import { loadConfig } from '../../src/config/load.ts'
import { createMeter } from '../../src/keys/meter.ts'
import { localDays } from '../../src/keys/window.ts'
import { openRedisStore } from '../../src/stores/redis/redis-store.ts'
import { startRedis } from '../../test/support/redis-server.ts'
import { count, median, type Row, sorted } from '../row.ts'

/** The options of a store on this server, as a gateway has them. */
const redisOptions = (url: string) => ({ ...loadConfig({ files: [], env: {} }).redis, url })

const rounds = 7
const roundMs = 700
const callers = [1, 64, 1_000]
const manyKeys = 1_000

/** Processor time of this process and of Redis in microseconds, for each unit. */
type Measured = { perSecond: number; p99: number; ownUs: number; redisUs: number }

// Each caller sends its next request on the reply to the last.
const measure = async (
  atOnce: number,
  send: (caller: number) => Promise<unknown>,
  redisSeconds: () => Promise<number>,
): Promise<Measured> => {
  const [redisBefore, ownBefore] = [await redisSeconds(), process.cpuUsage()]
  const end = performance.now() + roundMs
  const times: number[] = []
  const started = performance.now()
  await Promise.all(
    Array.from({ length: atOnce }, async (_, caller) => {
      for (let at = performance.now(); at < end; ) {
        await send(caller)
        const now = performance.now()
        times.push(now - at)
        at = now
      }
    }),
  )
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(ownBefore)
  return {
    perSecond: times.length / seconds,
    p99: sorted(times)[Math.floor(times.length * 0.99)] ?? 0,
    ownUs: (user + system) / times.length,
    redisUs: (((await redisSeconds()) - redisBefore) * 1e6) / times.length,
  }
}

export const throughput: Row = {
  id: 'throughput',
  method:
    `No HTTP: callers in one process send the next request on the reply to the last, ${roundMs} ms a round, ${rounds} rounds ` +
    'in turn: the meter with one key, with a key per caller and with 1,000 keys in turn, and one INCR per request, as it is and ' +
    'with the commands of one turn of the event loop sent together. Best and median of the rounds; p99 is the median of the ' +
    'rounds; the processor time of this process (including its timing of each request) and of the main thread of Redis is the minimum of the rounds.',
  run: async (scope, progress) => {
    const server = await startRedis()
    scope.teardown(server.stop)
    const store = await openRedisStore(redisOptions(server.url), { redisAway: () => {}, redisBack: () => {} })
    scope.teardown(() => store.close())
    const plain = new Redis(server.url)
    const together = new Redis(server.url, { enableAutoPipelining: true })
    scope.teardown(() => Promise.all([plain.quit(), together.quit()]))
    const endsAt = Date.now() + 86_400_000
    const meter = createMeter({
      store,
      whenStoreIsDown: 'refuse',
      instances: () => 1,
      windows: localDays({ dayOf: () => '2026-11-21', nextMidnight: () => endsAt }, 86_400_000),
      keepUsageForMs: 86_400_000,
      clock: Date,
      observer: { storeAway: () => {}, storeBack: () => {}, unitsLost: () => {}, nearLimit: () => {} },
    })
    const redisSeconds = async (): Promise<number> =>
      [...(await plain.info('cpu')).matchAll(/^used_cpu_(?:sys|user)_main_thread:([\d.]+)/gm)].reduce(
        (sum, [, seconds]) => sum + Number(seconds),
        0,
      )
    let next = 0
    const ways: Record<string, (caller: number) => Promise<unknown>> = {
      'meter, one key': () => meter.consume({ keyId: 'key_one', limit: 1e12 }, endsAt - 1),
      'meter, a key each': caller => meter.consume({ keyId: `key_${caller}`, limit: 1e12 }, endsAt - 1),
      'meter, 1,000 keys': () => {
        next = (next + 1) % manyKeys
        return meter.consume({ keyId: `key_${next}`, limit: 1e12 }, endsAt - 1)
      },
      'one INCR each': () => plain.incr('count'),
      'one INCR each, sent together': () => together.incr('count'),
    }
    const findings = []
    for (const atOnce of callers) {
      const seen = new Map<string, Measured[]>()
      for (let round = 0; round <= rounds; round++) {
        progress(`${atOnce} callers, round ${round} of ${rounds}`)
        for (const [name, send] of Object.entries(ways)) {
          const measured = await measure(atOnce, send, redisSeconds)
          // The first round is a warm-up.
          if (round > 0) seen.set(name, [...(seen.get(name) ?? []), measured])
        }
      }
      for (const [name, all] of seen) {
        const rates = all.map(({ perSecond }) => perSecond)
        const p99 = median(all.map(one => one.p99))
        const [ownUs, redisUs] = [
          Math.min(...all.map(one => one.ownUs)),
          Math.min(...all.map(one => one.redisUs)),
        ]
        findings.push({
          what: `${count(atOnce)} ${atOnce === 1 ? 'caller' : 'callers'}: ${name}`,
          bar: '—',
          measured:
            `${count(Math.max(...rates))} a second best, ${count(median(rates))} median; p99 ${p99.toFixed(2)} ms; ` +
            `${ownUs.toFixed(2)} µs here and ${redisUs.toFixed(2)} µs of Redis a unit`,
          met: null,
          figures: { best: Math.max(...rates), median: median(rates), p99, ownUs, redisUs },
        })
      }
    }
    return { findings }
  },
}
