// Checks `abohawa saturate`: how the rate is looked for, what the traffic's busiest minute is, and the command over sockets, with
// its sentence, its JSON and its exit codes.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { busiestMinute, type RateVerdict, searchRate } from '../../../../tools/load/replay/saturation.ts'
import { runCommands } from '../../../support/printed.ts'
import { spawnCommand } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'
import { ok, startTarget } from '../replay/scripted-target.ts'
import { arriving, every, linesOf } from '../replay/send-some.ts'

const folder = t.testdir({})
const file = (name: string, instants: readonly number[]): string => {
  const path = join(folder, name)
  writeFileSync(path, linesOf(arriving(instants)))
  return path
}
// 20 requests a second, for two seconds.
const traffic = file('traffic.ndjson', every(50, 40))
const refusal = (status: string): string => `HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`

t.test('the search closes in on the limit, from below and from above', async t => {
  const tried: number[] = []
  const upTo =
    (limit: number) =>
    async (rate: number): Promise<RateVerdict> => {
      tried.push(rate)
      return rate <= limit ? 'held' : 'broken'
    }
  const up = await searchRate({ first: 100, least: 1, most: 100_000 }, upTo(1_800))
  t.strictSame(tried.slice(0, 7), [100, 200, 400, 800, 1_600, 3_200, 3_200], 'one that breaks is tried again')
  t.equal(up.ended, 'threshold')
  t.ok((up.held ?? 0) <= 1_800 && (up.broken ?? 0) > 1_800, JSON.stringify(up))
  t.ok((up.broken ?? 0) / (up.held ?? 1) <= 1.1)
  t.ok(tried.length <= 13, `${tried.length} runs`)

  const disturbed = await searchRate({ first: 100, least: 1, most: 100_000 }, async rate =>
    rate === 100 || rate > 900 ? 'broken' : 'held',
  )
  // Twice the rate that broke is beyond --most.
  const high = await searchRate({ first: 100, least: 1, most: 100_000 }, async rate =>
    rate < 75_000 ? 'held' : 'broken',
  )
  t.match(high, { ended: 'threshold' })
  t.ok((disturbed.held ?? 0) > 800 && (disturbed.broken ?? 0) > 900, JSON.stringify(disturbed))

  const down = await searchRate({ first: 100, least: 1, most: 100_000 }, upTo(7))
  t.ok(down.ended === 'threshold' && (down.held ?? 0) <= 7 && (down.broken ?? 0) > 7, JSON.stringify(down))
  const least = await searchRate({ first: 100, least: 30, most: 1_000 }, upTo(5))
  t.match(least, { held: undefined, broken: 30, ended: 'least' })
  t.match(await searchRate({ first: 100, least: 1, most: 300 }, upTo(5_000)), { held: 300, ended: 'most' })

  const verdicts: RateVerdict[] = ['held', 'broken', 'held', 'generator', 'generator']
  const next = async () => verdicts.shift() ?? 'held'
  const lower = await searchRate({ first: 100, least: 1, most: 1_000 }, next)
  t.match(lower, { held: 200, ended: 'generator' }, 'what the generator broke says nothing of the target')
  const stopped = await searchRate({ first: 100, least: 1, most: 1_000 }, async () => 'interrupted')
  t.match(stopped, { held: undefined, ended: 'interrupted' })
})

t.test('the busiest minute is any minute of the traffic', t => {
  t.equal(busiestMinute(Float64Array.of(0)), undefined)
  t.strictSame(busiestMinute(Float64Array.of(0, 500)), { requests: 2, seconds: 1, rate: 2 })
  const minutes = Float64Array.of(0, 50_000, 70_000, 90_000, 109_999, 170_000, 400_000)
  t.strictSame(busiestMinute(minutes), { requests: 4, seconds: 60, rate: 4 / 60 })
  t.end()
})

t.test('one sentence says how far the target is from the traffic', async t => {
  // Has 150 requests a second, and 20 at once.
  let tokens = 20
  let at = performance.now()
  const limited = await startTarget(t, () => {
    const now = performance.now()
    tokens = Math.min(20, tokens + ((now - at) * 150) / 1000)
    at = now
    if (tokens < 1) return refusal('503 Service Unavailable')
    tokens -= 1
    return ok()
  })
  const fast = await startTarget(t)
  const dead = await startTarget(t, () => refusal('503 Service Unavailable'))
  const foreign = await startTarget(t, () => refusal('401 Unauthorized'))
  const line = ['saturate', traffic, '--step', '300ms', '--warm-up', '50ms']
  const one = [...line, '--from', '50', '--most', '50', '--threshold', 'errors<50%']
  const [found, most, undecided, none, refused] = await runCommands([
    [...line, '--target', limited.url, '--threshold', 'errors<20%', '--at-least', '1000', '--json'],
    [...one, '--target', fast.url],
    [...one, '--target', fast.url, '--at-least', '3'],
    [...one, '--target', dead.url],
    [...one, '--target', foreign.url],
  ])
  const value = JSON.parse(found?.stdout ?? '')
  t.match(value, {
    format: 'abohawa-saturation/1',
    busiestMinute: { requests: 40, seconds: 2, rate: 20 },
    traffic: { requests: 40 },
    thresholds: ['errors<20%'],
  })
  t.ok(value.heldRate >= 50 && value.heldRate < 400, `${value.heldRate}`)
  t.equal(value.times, value.heldRate / 20)
  t.match(value.sentence, /held \d+\/s \(errors<20%\).*; the traffic, of 2 s, has 20\/s: [\d.]+ times/)
  t.ok(value.steps.length >= 3 && value.steps.length < 20, `${value.steps.length} runs`)
  // Other work on the machine may make the generator the bottleneck, which decides nothing.
  t.equal(found?.code, value.ended === 'threshold' ? 99 : 1, `${found?.stderr}`)
  t.match(found?.stderr, /^100\/s: held, p99 [\d.]+ ms$/m)

  t.equal(most?.code, 0, `${most?.stderr}`)
  t.match(most?.stdout, /^rate +answered +p50 +p99 +errors\n50\/s .* held\n/)
  t.match(
    most?.stdout,
    /\n\nhttp:.* held 50\/s \(errors<50%\), the highest .* 20\/s: 2\.5 times or more\.\n$/,
  )
  t.match([undecided?.code, undecided?.stderr], [1, /Not decided: /])
  // As above.
  const isLate = /the load generator itself was late/.test(`${none?.stdout}`)
  t.equal(none?.code, isLate ? 1 : 99)
  if (!isLate) t.match(none?.stdout, /did not hold 40\/s either \(errors<50%: 100 %\)/)
  t.match([refused?.code, refused?.stdout], [1, ''])
  t.match(refused?.stderr, /abohawa: 0 of \d+ answers were 2xx or 304 \(401: \d+\); allowed: a target, keys/)
})

t.test('Ctrl-C says what was held until then', async t => {
  const target = await startTarget(t)
  const args = ['saturate', traffic, '--target', target.url, '--step', '1m', '--threshold', 'errors<9%']
  const { child, said, exited } = spawnCommand(t, args)
  await until('some requests were sent', () => target.received.length > 5)
  child.kill('SIGINT')
  t.equal(await exited, 1, said.stderr)
  t.match(said.stdout, /Interrupted: http.* held no rate that was tried until then; .* has 20\/s\.\n$/)
})
