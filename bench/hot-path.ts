// The cost of each step of a hit in ns, so that a regression is seen where it happens: `node bench/hot-path.ts`. One
// process, no kernel and no network: the same bytes go through Node's own HTTP server twice, once to a handler that
// writes a ready buffer and once to the API listener. bench/speed.ts measures throughput over real sockets.

import { createServer } from 'node:http'
import { parseArgs } from 'node:util'
import { fastify } from 'fastify'
import { measure } from 'mitata'
import { createAnswers } from '../src/answer.ts'
import { createCalendar, utcDayMs } from '../src/calendar.ts'
import { openCatalogue } from '../src/catalogue/live-catalogue.ts'
import { systemClock } from '../src/clock.ts'
import { buildApi } from '../src/edge/api.ts'
import { createPlaces } from '../src/edge/places.ts'
import { createRenderedWeather } from '../src/edge/rendered-weather.ts'
import { observeApi } from '../src/gateway/observers.ts'
import { createAdministration } from '../src/metering/administration.ts'
import { createAuthenticate } from '../src/metering/authentication.ts'
import { createKeyDirectory } from '../src/metering/key-directory.ts'
import { createMeter } from '../src/metering/meter.ts'
import { createUsageDetail } from '../src/metering/usage-detail.ts'
import { openEmbeddedStore } from '../src/stores/embedded/embedded-store.ts'
import { createAccessLog } from '../src/telemetry/access-log.ts'
import { openLog } from '../src/telemetry/log.ts'
import { createMetrics } from '../src/telemetry/metrics.ts'
import { openOutages } from '../src/telemetry/outages.ts'
import { createThrottle } from '../src/telemetry/throttle.ts'
import { createGrid } from '../src/weather/cell.ts'
import { box, catalogueFile } from '../test/scenarios/set-up.ts'
import { alwaysFresh, wholeTimeline } from '../test/scenarios/whole-timeline.ts'
import { openWire } from './hot-path/wire.ts'

// The cost of each step when this was written, as a multiple of what Node itself spends on the same request in the same
// run. A step fails the check at one and a half times that; steps too short to measure count in the whole only.
const expected: Readonly<Record<string, number>> = {
  'a hit, whole': 1.75,
  'authentication: the key, known': 0.15,
  'a unit, 64 at once, embedded store': 0.09,
  // Of which 0.02 look for keys that are hidden in what can't be seen.
  'a line of the access log': 0.08,
}
const tolerated = 1.5
const connections = 64
const rounds = 24

const usage = `Usage: node bench/hot-path.ts [options]

Measures the steps of a hit in ns, without a network, beside Node's own HTTP server with a ready body.

  --check  exit with 1 when a step costs ${tolerated} times what it did, as a multiple of Node's own cost
  --json   the figures as JSON
  --help   this text
`

const path = '/api/v1/weather/district/3026?lang=en'

const setUp = async () => {
  const clock = systemClock
  const store = openEmbeddedStore(':memory:', clock)
  const calendar = createCalendar('Asia/Dhaka')
  const catalogue = await openCatalogue({ path: catalogueFile, bounds: box, pollMs: utcDayMs })
  const tiers = { bench: 1e12 }
  const administration = createAdministration({ store, tiers, calendar, clock })
  const { key } = await administration.createKey('Bench', 'bench')
  const directory = createKeyDirectory(store, clock)
  await directory.readChanges()
  const authenticate = createAuthenticate(directory, tiers, clock)
  const authentication = await authenticate(key)
  if (!('client' in authentication)) throw new Error('the key is refused')
  const meter = createMeter({
    store,
    whenStoreIsDown: 'refuse',
    instances: () => 1,
    calendar,
    keepUsageForMs: utcDayMs,
    clock,
    observer: { storeAway: () => {}, storeBack: () => {}, unitsLost: () => {}, nearLimit: () => {} },
  })
  const quota = { now: clock.now, resetAfter: calendar.nextMidnight, consume: meter.consume }
  const metrics = createMetrics({ clock, store: 'embedded' })

  const now = clock.now()
  const timeline = wholeTimeline(now, calendar)
  const answers = createAnswers({
    grid: createGrid(0.1),
    timelines: alwaysFresh(timeline, clock.now),
    calendar,
    hourlyHours: 144,
  })
  const detail = createUsageDetail(store, calendar, clock)
  const { log } = openLog('silent')
  const observer = observeApi(metrics, log, undefined, detail, {
    often: createThrottle(clock),
    outages: openOutages(log, clock, metrics.staleReads),
  })
  const api = buildApi(
    {
      authenticate,
      quota,
      answers,
      catalogue,
      bounds: box,
      area: 'Bangladesh',
      timezone: calendar.zone,
      clock,
      observer,
    },
    {
      tls: { cert: null, key: null, ticketKey: null, http2: false },
      trustedProxies: [],
      clientAddress: 'full',
      requestTimeoutMs: 60_000,
      cors: { origins: [] },
      writeTimeoutMs: 60_000,
      maxConnections: 1_000,
      maxUnauthenticated: 1_000,
      unauthenticatedRateBytes: 2 ** 20,
      unauthenticatedBurstBytes: 8 * 2 ** 20,
      workers: 1,
      maxPipelined: 16,
      maxQueuedRequests: 1_000,
      keepBytes: 1_000_000,
    },
  )
  const close = async (): Promise<void> => {
    catalogue.close()
    directory.close()
    await detail.close()
    await meter.close()
    await store.close()
  }
  return {
    api,
    key,
    authenticate,
    client: authentication.client,
    quota,
    answers,
    catalogue,
    calendar,
    observer,
    metrics,
    clock,
    close,
  }
}

/** The headers of a response, without those that Node sets. */
const headersIn = (answer: Buffer): Record<string, string> =>
  Object.fromEntries(
    answer
      .toString('latin1', 0, answer.indexOf('\r\n\r\n'))
      .split('\r\n')
      .slice(1)
      .map(line => line.split(/: (.*)/s).slice(0, 2) as [string, string])
      .filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name)),
  )

type Step = {
  readonly name: string
  readonly run: () => unknown /** How often a run does it. */
  readonly times: number
}

const main = async (): Promise<void> => {
  const { values: given } = parseArgs({
    options: { check: { type: 'boolean' }, json: { type: 'boolean' }, help: { type: 'boolean' } },
  })
  if (given.help) {
    process.stdout.write(usage)
    return
  }
  const parts = await setUp()
  const { api, key, authenticate, client, quota, answers, catalogue, calendar, observer, metrics, clock } =
    parts
  const request = Buffer.from(`GET ${path} HTTP/1.1\r\nhost: bench\r\nx-api-key: ${key}\r\n\r\n`)
  await api.app.ready()
  const hits = openWire(api.server, connections)
  await hits.sendOnAll(request)
  const answer = hits.lastAnswer()
  const body = answer.subarray(answer.indexOf('\r\n\r\n') + 4)
  if (!answer.toString('latin1', 0, 15).includes(' 200 ')) throw new Error(`a hit answered ${answer}`)
  JSON.parse(body.toString())

  const bare = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  })
  const raw = openWire(bare, connections)
  const app = fastify()
  const headers = headersIn(answer)
  app.get('/api/v1/weather/:type/:id', (_, reply) => reply.headers(headers).send(body))
  await app.ready()
  const framework = openWire(app.server, connections)

  const places = createPlaces(catalogue, answers.cellAt)
  const rendered = createRenderedWeather(answers, calendar.zone)
  const place = places('district', '3026')
  const access = {
    requestId: 'abcdefghijkl-1',
    method: 'GET',
    url: path,
    endpoint: 'weather',
    status: 200,
    arrivedAt: clock.now(),
    ms: 0.123,
    keyId: client.keyId,
    cache: 'hit; ttl=4000; detail=memory',
    cell: '23.8,90.4',
    tier: client.tier,
    reason: undefined,
    client: '203.0.113.7',
    connection: 12,
    connectionRequest: 345,
    httpVersion: '1.1',
    bytes: 4321,
    encoding: 'br',
    notModified: undefined,
    traceId: undefined,
  } as const
  const accessLog = createAccessLog({ accessShare: 1 }, { write: () => {} }, clock)
  const units = Array.from({ length: connections })

  const steps: Step[] = [
    { name: 'Node alone, whole', run: () => raw.sendOnAll(request), times: connections },
    { name: 'Fastify alone, whole', run: () => framework.sendOnAll(request), times: connections },
    { name: 'a hit, whole', run: () => hits.sendOnAll(request), times: connections },
    { name: 'authentication: the key, known', run: () => authenticate(key), times: 1 },
    {
      name: `a unit, ${connections} at once, embedded store`,
      run: () => Promise.all(units.map(() => quota.consume(client, clock.now()))),
      times: connections,
    },
    { name: 'which place', run: () => places('district', '3026').part('en'), times: 1 },
    {
      name: 'the weather of its cell, read and rendered before',
      run: () => rendered.current(place.cell, place.part('en'), ''),
      times: 1,
    },
    {
      name: 'counts and times of an answer',
      run: () => {
        observer.responded(access.endpoint, access.status, access.ms / 1000)
        observer.used(access)
      },
      times: 1,
    },
    {
      name: 'counts of a read, and the age of what was served',
      run: () => metrics.cacheRead('hit', 'memory', 2_400_000),
      times: 1,
    },
    { name: 'a line of the access log', run: () => accessLog(access), times: 1 },
  ]

  const best = new Map<string, number>()
  for (let round = 0; round < rounds; round++) {
    process.stderr.write(process.stderr.isTTY ? `\rround ${round + 1} of ${rounds}` : '')
    for (const { name, run, times } of steps) {
      const { min, p50 } = await measure(run, { min_cpu_time: 60e6, min_samples: 8, inner_gc: false })
      // The fastest sample of a batch of calls, or the median where one call is long enough to be a sample.
      const ns = (times > 1 ? p50 : min) / times
      best.set(name, Math.min(best.get(name) ?? Number.POSITIVE_INFINITY, ns))
    }
  }
  if (process.stderr.isTTY) process.stderr.write('\n')
  hits.close()
  raw.close()
  framework.close()
  await parts.close()

  const alone = best.get('Node alone, whole') ?? Number.NaN
  const results = [...best].map(([name, ns]) => ({
    name,
    ns: Math.round(ns),
    ofNode: ns / alone,
    atMost: expected[name] === undefined ? undefined : expected[name] * tolerated,
  }))
  if (given.json) process.stdout.write(`${JSON.stringify(results)}\n`)
  else
    for (const { name, ns, ofNode, atMost } of results)
      process.stdout.write(
        `${name.padEnd(44)} ${String(ns).padStart(7)} ns  ${ofNode.toFixed(2)} of Node${atMost === undefined ? '' : `, at most ${atMost.toFixed(2)}`}\n`,
      )
  const slow = results.filter(({ ofNode, atMost }) => atMost !== undefined && ofNode > atMost)
  for (const { name, ofNode, atMost } of slow)
    process.stderr.write(
      `${name} costs ${ofNode.toFixed(2)} times what Node spends; allowed: ${atMost?.toFixed(2)}\n`,
    )
  if (given.check && slow.length > 0) process.exitCode = 1
}

await main()
