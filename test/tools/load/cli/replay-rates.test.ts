// Without it the search for the highest rate could end at the wrong rate or with the wrong exit code.

import { readFileSync, writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { busiestMinute, type RateVerdict, searchRate } from '../../../../tools/load/replay/rate-search.ts'
import { replayResult } from '../../../../tools/load/report/result.ts'
import { runCommands } from '../../../support/printed.ts'
import { product, spawnProgram } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'
import { ok, startTarget } from '../replay/scripted-target.ts'
import { arriving, every, linesOf } from '../replay/send-some.ts'

const folder = t.testdir({})
// 20 requests a second, for two seconds.
const traffic = join(folder, 'traffic.ndjson')
writeFileSync(traffic, linesOf(arriving(every(50, 40))))
const refusal = (status: string): string => `HTTP/1.1 ${status}\r\ncontent-length: 0\r\n\r\n`

t.test('the search closes in on the limit, from below and from above', async t => {
  const tried: number[] = []
  const upTo =
    (limit: number) =>
    async (rate: number): Promise<RateVerdict> => {
      tried.push(rate)
      return rate <= limit ? 'held' : 'broken'
    }
  const up = await searchRate([100, 300], 1, upTo(1_800))
  t.strictSame(tried.slice(0, 6), [100, 300, 600, 1_200, 2_400, 2_400], 'one that breaks is tried again')
  t.ok((up.held ?? 0) <= 1_800 && (up.broken ?? 0) > 1_800 && up.ended === 'threshold', JSON.stringify(up))
  t.ok((up.broken ?? 0) / (up.held ?? 1) <= 1.1)
  t.ok(tried.length <= 13, `${tried.length} runs`)

  const down = await searchRate([100], 1, upTo(7))
  t.ok(down.ended === 'threshold' && (down.held ?? 0) <= 7 && (down.broken ?? 0) > 7, JSON.stringify(down))
  t.hasStrict(await searchRate([100], 30, upTo(5)), { held: undefined, broken: 30, ended: 'threshold' })
  t.hasStrict(await searchRate([100], 1, upTo(1e9)), { held: 100_000, ended: 'highest' })

  const verdicts: RateVerdict[] = ['held', 'broken', 'held', 'generator', 'generator']
  const lower = await searchRate([100], 1, async () => verdicts.shift() ?? 'held')
  t.hasStrict(lower, { held: 200, ended: 'generator' }, 'what the generator broke says nothing of the target')
  const stopped = await searchRate([100], 1, async () => 'interrupted')
  t.hasStrict(stopped, { held: undefined, ended: 'interrupted' })
})

t.test('the busiest minute is any minute of the traffic', t => {
  t.equal(busiestMinute(Float64Array.of(0)), undefined)
  t.strictSame(busiestMinute(Float64Array.of(0, 500)), { requests: 2, seconds: 1, rate: 2 })
  const minutes = Float64Array.of(0, 50_000, 70_000, 90_000, 109_999, 170_000, 400_000)
  t.strictSame(busiestMinute(minutes), { requests: 4, seconds: 60, rate: 4 / 60 })
  t.end()
})

t.test('several rates are a run each, and one report', async t => {
  const target = await startTarget(t)
  const out = ['page.html', 'rates.json'].map(name => join(folder, name)) as [string, string]
  const line = ['replay', traffic, '--target', target.url, '--duration', '300ms', '--warm-up', '50ms']
  const [text, inJson] = await runCommands([
    [...line, '--rate', '100,50', '--threshold', 'p99<9s', ...out.flatMap(path => ['--out', path])],
    [...line, '--rate', '50,100', '--threshold', 'status.404>1', '--json'],
  ])
  t.equal(text?.code, 0, `${text?.stderr}`)
  t.match(text?.stdout, /^ *rate +answered +p50 +p99 +errors\n +50\/s .* held\n100\/s .* held\n$/)
  t.match(text?.stderr, /^100\/s: held, p99 [\d.]+ ms$/m)
  const rates = JSON.parse(readFileSync(out[1], 'utf8')).map(
    (run: unknown) => replayResult.parse(run).pace.rate,
  )
  t.strictSame(rates, [50, 100])
  t.match(readFileSync(out[0], 'utf8'), /Rates compared[\s\S]*1\. 50\S* requests\/s, evenly/)
  t.equal(inJson?.code, 99)
  t.hasStrict(JSON.parse(inJson?.stdout ?? ''), {
    results: [{ kind: 'replay' }, { thresholds: [{ passed: false }] }],
  })
})

t.test('--until-slower says in one sentence how far the target is from the traffic', async t => {
  // Answers 60 requests of a run, whose connections are all closed before the next one: 100/s has 35, 400/s has 140.
  let left = 0
  const open = new Set<Socket>()
  const limited = await startTarget(t, (_request, socket) => {
    if (open.size === 0) left = 60
    if (!open.has(socket)) socket.once('close', () => open.delete(socket))
    open.add(socket)
    return left-- > 0 ? ok() : refusal('503 Service Unavailable')
  })
  const dead = await startTarget(t, () => refusal('503 Service Unavailable'))
  const foreign = await startTarget(t, () => refusal('401 Unauthorized'))
  let units = 26
  const spent = await startTarget(t, () => (units-- > 0 ? ok() : refusal('429 Too Many Requests')))
  const kept = join(folder, 'kept.json')
  const line = ['replay', traffic, '--until-slower', '--duration', '300ms', '--warm-up', '50ms']
  const [found, none, refused, exhausted] = await runCommands([
    [...line, '--target', limited.url, '--threshold', 'errors<20%', '--json'],
    [...line, '--target', dead.url, '--rate', '50', '--threshold', 'errors<50%', '--json'],
    [...line, '--target', foreign.url, '--rate', '50', '--threshold', 'p99<9s'],
    [...line, '--target', spent.url, '--rate', '50', '--threshold', 'p99<9s', '--out', kept],
  ])
  const value = JSON.parse(found?.stdout ?? '')
  t.match(value, {
    busiestMinute: { requests: 40, seconds: 2, rate: 20 },
    results: [{ pace: { rate: 100 } }],
  })
  t.ok(value.heldRate >= 50 && value.heldRate < 400, `${value.heldRate}`)
  t.equal(value.times, value.heldRate / 20)
  t.match(value.sentence, /held \d+\/s.*; the traffic, of 2 s, has 20\/s: [\d.]+ times/)
  t.ok(value.results.length >= 3 && value.results.length < 20, `${value.results.length} runs`)
  t.equal(found?.code, 0, `${found?.stderr}`)

  // Other work on the machine may make the generator the bottleneck, which decides nothing.
  const { ended, sentence } = JSON.parse(none?.stdout ?? '')
  t.equal(none?.code, ended === 'threshold' ? 99 : 1)
  if (ended === 'threshold') t.match(sentence, /did not hold 40\/s either \(errors<50%: 100 %\)/)
  t.match([refused?.code, refused?.stdout], [1, /Nothing is known of/])
  t.match(
    refused?.stderr,
    /abohawa: only 0 of \d+ responses were 2xx or 304 \(401: \d+\); check the target, the keys/,
  )
  t.match(exhausted, {
    code: 1,
    stdout:
      /^ *rate.*\n +50\/s .* held\n.*\(200: \d+, 429: \d+\)\n\nhttp\S+ held 50\/s, and refused most requests/,
    stderr: /only \d+ of \d+ responses were 2xx or 304 .*; check the target/,
  })
  t.equal(JSON.parse(readFileSync(kept, 'utf8')).length, 2, 'no result is lost')
})

t.test('Ctrl-C says what was held until then', async t => {
  const target = await startTarget(t)
  const line = `replay ${traffic} --target ${target.url} --until-slower --duration 1m --threshold errors<9%`
  const { child, said, closed } = spawnProgram(t, [product, ...line.split(' ')])
  await until('some requests were sent', () => target.received.length > 5)
  child.kill('SIGINT')
  t.equal(await closed, 1, said.stderr)
  t.match(said.stdout, /Interrupted: http.* held no rate that was tried until then; .* has 20\/s\.\n$/)
})
