// Without it two upstreams could be asked, charged or stored by the protocol of one.

import t, { type Test } from 'tap'
import { keyFor, namespaceOf } from '../../src/cache/entry-codec.ts'
import { silentObserver } from '../../src/cache/silent-observer.ts'
import { openUpstream } from '../../src/cache/upstream.ts'
import type { Catalogue } from '../../src/catalogue/catalogue.ts'
import { shipped } from '../../src/catalogue/snapshot-reader.ts'
import { createCalendar } from '../../src/common/calendar.ts'
import { loadConfig } from '../../src/config/load.ts'
import { protocolIn } from '../../src/provider/account.ts'
import { ProviderError } from '../../src/provider/errors.ts'
import type { ProviderProtocol } from '../../src/provider/protocol.ts'
import { openEmbeddedStore } from '../../src/stores/sqlite/embedded-store.ts'
import { createGrid } from '../../src/weather/cell.ts'
import { usualLengths } from '../../src/weather/horizon.ts'
import { syntheticTimeline } from '../../src/weather/synthetic-timeline.ts'
import { manualClock } from '../support/manual-clock.ts'

const cell = createGrid(0.1).cellOf(23.71, 90.41)
const urls = { first: 'http://first.test', second: 'http://second.test' }

const setUp = (t: Test) => {
  const clock = manualClock('2026-11-21T06:10:30Z')
  const calendar = createCalendar('Asia/Dhaka')
  const store = openEmbeddedStore(':memory:', clock)
  const config = loadConfig({
    files: [],
    env: {
      ABOHAWA_CACHE__FRESHNESS: 'age',
      ABOHAWA_PROVIDER__BASE_URL: urls.first,
      ABOHAWA_PROVIDER__FALLBACKS: JSON.stringify([{ baseUrl: urls.second, name: 'second' }]),
    },
  })
  const asked: string[] = []
  const heartbeats: unknown[] = []
  const away = new Set<string>()
  /** A protocol of its own: another path, weight and identity. */
  const protocolOf = (baseUrl: string): ProviderProtocol => ({
    ...protocolIn(config),
    identity: `protocol of ${baseUrl}`,
    weightPerCell: baseUrl === urls.first ? 2 : 7,
    requestFor: cells => ({
      path: `${baseUrl}/${cells.map(({ id }) => id).join(';')}`,
      maxBytes: 1_000,
      decode: async body => {
        for await (const _ of body);
        return cells.map(() => syntheticTimeline(clock.now(), usualLengths, calendar))
      },
    }),
  })
  const upstream = openUpstream(config, {
    ...{ store, clock, instances: () => 1, settings: () => '', report: () => '' },
    observer: { ...silentObserver, onHeartbeat: fleet => void heartbeats.push(fleet) },
    catalogue: { current: { bounds: shipped.bounds } as Catalogue },
    stubs: {
      protocolOf: ({ provider }) => protocolOf(provider.baseUrl),
      call: {
        bytes: async function* ({ path }) {
          asked.push(path)
          if (away.has(new URL(path).origin)) throw new ProviderError('provider_refused', 'not here')
          yield* []
        },
        text: async () => '',
        stream: async () => {
          throw new Error('no operator is here')
        },
        close: async () => {},
      },
    },
  })
  t.teardown(async () => {
    await upstream.close()
    await store.close()
  })
  const spent = () =>
    upstream.accounts.all.map(
      ({ account }) => account.budget.state().windows.find(({ name }) => name === 'day')?.used,
    )
  const isStored = (baseUrl: string) =>
    store.hasBytes([keyFor(namespaceOf(baseUrl, protocolOf(baseUrl)), cell.id)])
  return { upstream, asked, away, spent, isStored, heartbeats }
}

t.test('each upstream is asked, charged and stored by its own protocol', async t => {
  const { upstream, asked, spent, isStored, away } = setUp(t)
  t.match(await upstream.timelines.read(cell), { outcome: 'miss', upstream: 'primary' })
  t.strictSame(asked.splice(0), [`${urls.first}/${cell.id}`])
  t.strictSame([spent(), await isStored(urls.first), await isStored(urls.second)], [[2, 0], [true], [false]])

  away.add(urls.first)
  await upstream.timelines.reload(cell)
  t.strictSame(asked, [`${urls.first}/${cell.id}`, `${urls.second}/${cell.id}`])
  t.match(await upstream.timelines.read(cell), { outcome: 'hit', upstream: 'second' })
  const [, ofSecond] = spent()
  t.strictSame([ofSecond, await isStored(urls.second)], [7, [true]])
})

t.test('each heartbeat is reported with the fleet that it found', async t => {
  const { upstream, heartbeats } = setUp(t)
  await upstream.timelines.sendHeartbeat()
  t.match(heartbeats, [{ instances: 1, wanted: 0 }])
})
