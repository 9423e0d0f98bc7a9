// Three gateways on Redis live through a month of days on a clock that is moved: what they hold at each midnight, and whether
// every day admits exactly the limit of a key that asks for more.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Redis } from 'ioredis'
import { createFleetClock } from '../../proof/fleet/clock.ts'
import { createFleet } from '../../proof/fleet/fleet.ts'
import { openLane } from '../../proof/fleet/lane.ts'
import type { Answer, HistoryEvent, Recorder } from '../../proof/history.ts'
import { requestsOf } from '../../proof/mix.ts'
import { createRandom } from '../../proof/random.ts'
import type { Schedule } from '../../proof/steps.ts'
import { chart } from '../chart.ts'
import { count, median, type Row } from '../row.ts'

const hourMs = 3_600_000
const mib = 2 ** 20
// Midnight in Dhaka.
const begin = Date.UTC(2031, 0, 1, 18)
const limit = 24
const perHour = 10
const levelMiB = 5
const seed = 1

const schedule: Schedule = {
  seed,
  protocol: 'http',
  store: 'redis',
  hasProcesses: false,
  start: begin + 60_000,
  skews: [0, 0, 0],
  settings: {
    'quota.tiers.free': String(limit),
    'quota.tiers.enterprise': '100000',
    'cache.freshness': 'run',
    'provider.budget.perMinute': '',
    'provider.budget.perHour': '',
    'provider.budget.perDay': '',
  },
  keys: { plenty: 'enterprise', many: 'enterprise', some: 'enterprise', few: 'enterprise', small: 'free' },
  steps: [],
}

type Day = {
  readonly failed: number
  readonly calls: number
  readonly heap: number
  readonly resources: number
  readonly store: number
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** Keeps what happened since it was last asked. */
const createShortMemory = (now: () => number) => {
  let events: HistoryEvent[] = []
  let seq = 0
  const moment = () => ({ seq: ++seq, at: now(), ms: 0 })
  const recorder: Recorder = {
    get events() {
      return events
    },
    moment,
    add: event => void events.push({ ...moment(), ...event } as HistoryEvent),
  }
  return {
    recorder,
    take: (): HistoryEvent[] => {
      const taken = events
      events = []
      return taken
    },
  }
}

/** What found no weather took its unit, too. */
const isAdmitted = ({ status }: Answer): boolean => status === 200 || status === 304 || status === 500

export const month: Row = {
  id: 'month',
  method:
    'Three gateways on Redis live through days of twenty-four loads on a clock that is moved; every day one of them restarts, and the ' +
    'provider fails for an hour. Samples come at each midnight of the keys, after a collection of garbage.',
  run: async (scope, progress, { settings: { days = 30 } }) => {
    const lane = await openLane()
    scope.teardown(lane.close)
    const clock = createFleetClock(schedule.start)
    const { recorder, take } = createShortMemory(clock.now)
    const fleet = await createFleet({ lane, schedule, clock, recorder })
    scope.teardown(fleet.close)
    const redis = new Redis((await lane.redis('redis')).settings['redis.url'] ?? '')
    scope.teardown(() => redis.disconnect())
    const random = createRandom(seed, 'month')
    const all: Day[] = []
    const small: Answer[] = []
    for (let day = 0; day < days; day++) {
      progress(`day ${day + 1} of ${days}`)
      const restartsAt = random.between(1, 22)
      const failsAt = random.between(1, 22)
      for (let hour = 0; hour < 24; hour++) {
        if (hour === restartsAt) {
          await fleet.take({ do: 'stop', gateway: day % schedule.skews.length })
          await fleet.take({ do: 'start', gateway: day % schedule.skews.length, skewMs: 0 })
        }
        if (hour === failsAt)
          await fleet.take({ do: 'provider', id: 'outage', fault: { mode: 'internal-error' } })
        // Twice the limit in a day, of a key that is at all gateways.
        await fleet.send(requestsOf(random, perHour, schedule.skews.length, [], 'plenty'))
        await fleet.send(
          [0, 1].map(i => ({
            gateway: (hour + i) % schedule.skews.length,
            key: 'small',
            path: '/weather/district/3026',
          })),
        )
        if (hour === failsAt) await fleet.take({ do: 'heal', id: 'outage' })
        await clock.advance(hourMs)
      }
      const events = take()
      const answers = events.filter(event => event.kind === 'answer')
      small.push(...answers.filter(({ key }) => key === 'small'))
      collect()
      all.push({
        failed: answers.filter(({ status }) => status === 0 || status >= 500).length,
        calls: events.filter(({ kind }) => kind === 'provider').length,
        heap: process.memoryUsage().heapUsed / mib,
        resources: process.getActiveResourcesInfo().length,
        store: Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]) / mib,
      })
    }
    const growth = (name: 'heap' | 'resources' | 'store'): number => {
      const third = Math.max(1, Math.floor(all.length / 3))
      const middle = (part: readonly Day[]): number => median(part.map(each => each[name]))
      return middle(all.slice(-third)) - middle(all.slice(third, 2 * third))
    }
    // Loads take time too, so that a day of them is a little longer than a day.
    const byDay = Object.values(Object.groupBy(small, ({ headers }) => headers['x-ratelimit-reset'] ?? ''))
    const right = byDay.filter((asked = []) => {
      const refused = asked.filter(({ status }) => status === 429).length
      const admitted = asked.filter(isAdmitted).length
      return admitted === Math.min(limit, asked.length) && admitted + refused === asked.length
    }).length
    return {
      findings: [
        {
          what: `${days} days: the last third beside the second`,
          bar: `≤ ${levelMiB} MiB, ≤ 5 timers and sockets more`,
          measured: `heap ${growth('heap').toFixed(1)} MiB, Redis ${growth('store').toFixed(2)} MiB, timers and sockets ${growth('resources')}`,
          met: growth('heap') <= levelMiB && growth('store') <= levelMiB && growth('resources') <= 5,
          figures: { heap: all.map(each => each.heap), store: all.map(each => each.store) },
        },
        {
          what: `a key of ${limit} requests a day that sends twice as many to all gateways`,
          bar: `${limit} admitted in each day, all others 429`,
          measured: `${right} of ${byDay.length} days; ${count(small.length)} requests; ${count(all.reduce((sum, each) => sum + each.failed, 0))} answers of all failed`,
          met: right === byDay.length,
          figures: { right, days: byDay.length, requests: small.length },
        },
      ],
      drawings: {
        'soak-month.svg': {
          caption:
            'What three gateways in one process hold at each midnight of a month, and the calls to the provider',
          svg: chart({
            title: `${days} days on a clock that is moved`,
            x: { label: 'days', max: days, step: Math.max(1, Math.round(days / 10)) },
            panels: (
              [
                ['heap', 'heap MiB'],
                ['store', 'Redis MiB'],
                ['resources', 'timers and sockets'],
                ['calls', 'calls to the provider in a day'],
              ] as const
            ).map(([name, label]) => ({
              label,
              lines: [{ name: '', points: all.map((each, i) => [i + 1, each[name]] as const) }],
            })),
          }),
        },
      },
    }
  },
}
