// The time that `whatif` takes for a setting: `node bench/what-if.ts`. A generated day of requests passes in this thread, and
// its processor time is compared with the bar, because other work on the machine does not change that.

import { parseArgs } from 'node:util'
import { readCatalogue } from '../src/catalogue/live-catalogue.ts'
import { createCalendar, utcDayMs } from '../src/common/calendar.ts'
import { settingCases } from '../src/config/setting-grid.ts'
import { generate } from '../src/load/traffic/generate/generate.ts'
import { simulate } from '../src/load/what-if/simulate.ts'
import { readTrace } from '../src/load/what-if/trace.ts'

const barSeconds = 20

const usage = `Usage: node bench/what-if.ts [options]

Passes a day of generated requests through one setting, against a bar of ${barSeconds} s of a core.

  --requests <number>   how many; 1000000 if not given
  --instances <number>  of the gateway; 1 if not given
  --json                the figures as JSON
  --help                this text
`

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '1000000' },
    instances: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(usage)
  process.exit(0)
}

const [only] = settingCases(
  { case: ['provider.budget.perDay=null provider.budget.perHour=null'] },
  { files: [], env: {} },
)
if (!only) throw new Error('no case')
const { config } = only
const catalogue = await readCatalogue(config.catalogue.path)
const { bounds } = catalogue
const { offsetSecondsAt } = createCalendar(config.quota.timeZone)
const traffic = {
  start: Date.parse('2026-11-15T18:00:00Z'),
  durationMs: utcDayMs,
  seed: 1,
  rate: (Number(values.requests) / utcDayMs) * 1000,
  arrivals: 'poisson',
  shape: 'day',
  storms: [],
  mix: { weather: 62, forecast: 20, coords: 8, locations: 6, location: 4 },
  alpha: 1,
  keys: 1000,
  keysAlpha: 0.8,
  english: 0.3,
  conditional: 0.1,
  compressed: 0.75,
  bad: 0.01,
} as const
const trace = await readTrace(
  (async function* () {
    yield [...generate(traffic, { catalogue, bounds, offsetSecondsAt })]
  })(),
)

const started = performance.now()
const before = process.cpuUsage()
const options = { instances: Number(values.instances), warmUpMs: 0, warm: false, latencyMs: 0 }
const figures = await simulate(config, trace, options, { catalogue, onProgress: () => true })
const { user, system } = process.cpuUsage(before)
const result = {
  requests: trace.at.length,
  instances: options.instances,
  coreSeconds: (user + system) / 1e6,
  seconds: (performance.now() - started) / 1000,
  memoryMiB: Math.round(process.memoryUsage().rss / 2 ** 20),
  hitShare: figures?.hitShare,
  cells: figures?.memory.mostEntries,
  met: (user + system) / 1e6 <= barSeconds,
}
process.stdout.write(
  values.json
    ? `${JSON.stringify(result)}\n`
    : `${result.requests} requests on ${result.cells} cells, ${result.instances} instances: ${result.coreSeconds.toFixed(1)} s of a core ` +
        `(bar ${barSeconds} s: ${result.met ? 'met' : 'missed'}), ${result.seconds.toFixed(1)} s in all, ${result.memoryMiB} MiB\n`,
)
