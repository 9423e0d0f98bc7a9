// Delays of the event loop under the mix at half of the gateway's capacity: the lengths of stretches in which it was busy
// without a pause, and the causes of the long ones. Read from a CPU profile, so the process is a tenth slower than in the other
// rows.

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '../../test/support/until.ts'
import { bars } from '../bars.ts'
import { count, notMeasured, type Row } from '../row.ts'
import { withoutRedis } from './contender.ts'
import { load } from './load.ts'
import { type CpuProfile, longMs, longTurnsOf } from './long-turns.ts'
import { sendInOpenLoop } from './mix-open.ts'
import { startGatewayForMix } from './mix-servers.ts'
import { generateMix } from './mix-traffic.ts'
import { openWorld } from './world.ts'

const sampleMicros = 100
const name = 'profiled'

/** Of the monotonic clock, as V8 has it in profiles. */
const nowMicros = (): number => Number(process.hrtime.bigint() / 1000n)

export const tails: Row = {
  id: 'tails',
  method:
    'The mix as in `mix` in an open loop at half of what a first burst found, against a gateway under a CPU profile with a sample each ' +
    `${sampleMicros} µs. A stretch is what lies between two samples of idleness; the cause of a sample is the innermost ` +
    'function that names one.',
  run: async (scope, progress, { settings }) => {
    const { seconds = 4, open = 20 } = settings
    progress('starts everything')
    const world = await openWorld(scope, { ABOHAWA_WEATHER__HOURLY_HOURS: '48' })
    if (world.redisUrl === undefined) return { findings: [notMeasured('the mix', withoutRedis)] }
    const mix = await generateMix(world.folder)
    const folder = join(world.folder, 'profile')
    const { contender, keys } = await startGatewayForMix(scope, world, mix, 'tails:', {
      NODE_OPTIONS: `--cpu-prof --cpu-prof-interval=${sampleMicros} --cpu-prof-dir=${folder}`,
    })
    await contender.tidy?.()
    await contender.check()
    progress('finds the capacity')
    const workload = await contender.workload()
    await load(world.folder, workload, seconds)
    const { answers, seconds: took } = await load(world.folder, workload, seconds)
    const rate = Math.floor(answers / took / 2)
    progress(`open loop at ${rate} a second`)
    const from = nowMicros()
    const sent = await sendInOpenLoop(world, mix, keys, { contender, name, rate }, open)
    const to = nowMicros()
    progress('reads the profile')
    process.kill(contender.pid(), 'SIGTERM')
    const { byLength, byCause, longestMs, busyMs } = longTurnsOf(await profileIn(folder), from, to)
    const long = byCause.reduce((sum, [, ms]) => sum + ms, 0)
    const share = (ms: number): string => `${((100 * ms) / busyMs).toFixed(1)} %`
    return {
      findings: [
        {
          what: `event loop held up for ${longMs} ms and more, the mix at half of its capacity`,
          bar: '—',
          measured:
            `${share(long)} of the busy time, ${longestMs.toFixed(0)} ms the longest; most of it ` +
            `${byCause
              .slice(0, 3)
              .map(([cause, ms]) => `${cause} ${((100 * ms) / long).toFixed(0)} %`)
              .join(
                ', ',
              )}; p99 ${sent.p99.toFixed(2)}, p99.9 ${sent.p999.toFixed(2)} ms at ${count(rate)} a second under the profiler`,
          met: null,
          figures: { long, longestMs, busyMs, ...Object.fromEntries(byCause) },
        },
      ],
      table: {
        head: ['stretches', 'how many', 'of the busy time'],
        lines: byLength.map(({ below, count: many, ms }, i) => [
          Number.isFinite(below) ? `below ${below} ms` : `${byLength[i - 1]?.below ?? 0} ms and more`,
          count(many),
          share(ms),
        ]),
      },
      drawings: {
        'performance-tails.svg': {
          caption: `The causes of stretches of ${longMs} ms and more, in ms a minute`,
          svg: bars({
            title: `Event loop held up for ${longMs} ms and more: ms a minute by cause`,
            kinds: ['ms a minute'],
            bars: byCause.map(([cause, ms]) => ({ name: cause, values: [(ms * 60) / open] })),
            digits: 0,
          }),
        },
      },
    }
  },
}

/** The profile that a process writes when it ends. */
const profileIn = async (folder: string): Promise<CpuProfile> => {
  let text = ''
  await until(
    'the profile is written',
    async () => {
      const [file] = await readdir(folder).catch(() => [])
      text = file === undefined ? '' : await readFile(join(folder, file), 'utf8')
      return text.endsWith('}')
    },
    30_000,
  )
  return JSON.parse(text) as CpuProfile
}
