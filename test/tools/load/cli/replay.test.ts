// Without it `abohawa replay` could report requests that it never sent, or pass a failed threshold.

import { readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttp2Server } from 'node:http2'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../../src/common/clock.ts'
import { replayResult } from '../../../../tools/load/report/result.ts'
import { startSimulator } from '../../../../tools/provider/simulator.ts'
import { listenOn } from '../../../support/listening.ts'
import { runCommands } from '../../../support/printed.ts'
import { product, runProgram, spawnProgram } from '../../../support/process.ts'
import { startGateway } from '../../../support/start-gateway.ts'
import { until } from '../../../support/until.ts'
import { ok, startTarget } from '../replay/scripted-target.ts'
import { arriving, every, linesOf } from '../replay/send-some.ts'

const folder = t.testdir({})
const file = (name: string, text = ''): string => {
  const path = join(folder, name)
  if (text !== '') writeFileSync(path, text)
  return path
}

const traffic = file('traffic.ndjson', linesOf(arriving(every(2, 40), { key: 'key-0001' })))
const keyless = file('keyless.ndjson', linesOf(arriving(every(2, 40))))
const key = file('key.txt', 'svc_live_a\n')
const headers = 'cache-status: abohawa; hit; ttl=9; detail=memory\r\n'

t.test('what was replayed is printed and written', async t => {
  const target = await startTarget(t, () => ok('{}', headers))
  const broken = file('broken.ndjson', `${readFileSync(traffic, 'utf8')}{"at":"yesterday"}\n`)
  const [json, page] = [file('result.json'), file('page.html')]
  const [percentiles, other, bodies] = [file('percentiles.hgrm'), file('other.hgrm'), file('bodies.ndjson')]
  const outs = [json, page, percentiles, other].map(path => `--out ${path}`).join(' ')
  const to = `--target ${target.url} --key ${key}`
  const [text, inJson] = await runCommands([
    `replay ${broken} ${to} --threshold errors<0.1% ${outs} --bodies ${bodies} --check-bodies --duration 1m`,
    `replay ${traffic} ${to} --as-fast-as 4 --workers 2 --loop --duration 100ms --json`,
  ])
  t.equal(text?.code, 99, `the body of this target is no weather: ${text?.stderr}`)
  t.match(text?.stderr, /broken\.ndjson:41: at is "yesterday", expected an instant/)
  t.match(text?.stderr, /All 40 requests were sent in \S+ of 1m; --loop starts again after/)
  t.notMatch(inJson?.stderr, '--loop')
  t.match(text?.stdout, /40 due, 40 sent, 40 answered/)
  t.match(text?.stdout, /as recorded, for \S+ s; \S+\/s answered/)
  t.match(text?.stdout, /errors<0\.1% +0 %, passed/)
  t.match(text?.stdout, /weather +hit +40 [\s\S]*\nall +40 /)
  const result = replayResult.parse(JSON.parse(readFileSync(json, 'utf8')))
  t.match(result, {
    kind: 'replay',
    interrupted: false,
    traffic: { requests: 40, keys: 1, faultyLines: 1, spanSeconds: 0.078 },
    pace: { mode: 'recorded', speed: 1, rate: null, workers: 1, http: '1.1', target: target.url },
    totals: { due: 40, sent: 40, answered: 40, dropped: 0 },
    outcomes: { hit: 40 },
    gateway: null,
    provider: null,
    settings: null,
    command: / --threshold 'errors<0\.1%' /,
    // The script of this target is no weather.
    bodies: { checked: 1, faults: [{ path: '/api/v1/weather/district/3026', count: 1 }] },
  })
  t.notMatch(JSON.stringify(result), /svc_live/)
  t.match(readFileSync(page, 'utf8'), /^<!doctype html>/i)
  t.match(readFileSync(percentiles, 'utf8'), /Value\s+Percentile\s+TotalCount/)
  t.equal(readFileSync(other, 'utf8'), readFileSync(percentiles, 'utf8'))
  const digest = { path: '/api/v1/weather/district/3026', status: 200, digest: /^[0-9a-f]+$/ }
  t.match(JSON.parse(readFileSync(bodies, 'utf8')), digest)

  t.equal(inJson?.code, 0, `${inJson?.stderr}`)
  const closed = replayResult.parse(JSON.parse(inJson?.stdout ?? ''))
  t.hasStrict(closed.pace, { mode: 'closed', connections: 4, workers: 2 })
  t.equal(closed.totals.answered, closed.totals.sent, 'of both workers together')
  t.equal(target.received.length, 40 + closed.totals.sent)
})

t.test('a threshold that fails is exit code 99, after the report', async t => {
  const target = await startTarget(t, () => 'HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n')
  const limit = '--threshold status.401<1%'
  const [failed] = await runCommands([
    `replay ${traffic} --target ${target.url} --key ${key} --threshold p99<1m ${limit} --rate 1000`,
  ])
  t.equal(failed?.code, 99)
  t.match(failed?.stdout, /status\.401<1% +100 %, FAILED/)
  t.match(failed?.stdout, /p99<1m .* passed/)
  t.match(failed?.stderr, /40 of 40 responses were 401: the target did not issue these keys/)
})

t.test('the answered rate is over the time in which the responses came', async t => {
  const target = await startTarget(t, () => ok('{}', headers))
  target.hold()
  const replay = runCommands([
    `replay ${keyless} --target ${target.url} --rate 400 --connections 40 --threshold rate>250 --json`,
  ])
  await until('all are sent', () => target.received.length === 40)
  const allSent = performance.now()
  await until('they wait five times as long as they were sent', () => performance.now() - allSent > 500)
  target.release()
  const [found] = await replay
  t.equal(found?.code, 99, `${found?.stderr}`)
  const { totals, thresholds } = replayResult.parse(JSON.parse(found?.stdout ?? ''))
  t.ok(totals.answered === 40 && totals.seconds > 0.5, JSON.stringify(totals))
  t.ok((totals.sendingSeconds ?? totals.seconds) < totals.seconds, JSON.stringify(totals))
  t.hasStrict(thresholds, [{ threshold: 'rate>250', passed: false }])
})

t.test('a target that leaves each tenth without an answer passes no threshold of all', async t => {
  let received = 0
  const target = await startTarget(t, () => (++received % 10 === 0 ? undefined : ok('{}', headers)))
  const limits = ['p99<9m', 'max<9m', 'p50<9m', 'weather.p99<9m', 'hit.p99<9m']
  const silent = await startTarget(t, () => undefined)
  const replay = ['replay', keyless, '--target']
  const page = file('unanswered.html')
  const [inText, inJson] = await runCommands([
    // Long enough for answers on a busy machine, so that only those fail that never come.
    [...replay, target.url, '--timeout', '4s', ...limits.map(limit => `--threshold=${limit}`), '--out', page],
    [...replay, silent.url, '--timeout', '100ms', '--connections', '1', '--patience', '30ms', '--json'],
  ])
  t.equal(inText?.code, 99)
  for (const said of [
    /Requests without a response count as the slowest;/,
    /p99<9m +no response after \S+ ms, FAILED/,
    /max<9m .*FAILED/,
    /weather.p99<9m .*FAILED/,
    /^ +p50<9m .*passed/m,
    /hit.p99<9m .*passed/,
    /weather +failed +4 /,
  ])
    t.match(inText?.stdout, said)
  t.match(readFileSync(page, 'utf8'), /no response<\/td>/)
  const { totals, latency, latencies } = replayResult.parse(JSON.parse(inJson?.stdout ?? ''))
  t.ok(totals.dropped > 0 && totals.failed.timeout && totals.answered === 0, JSON.stringify(totals))
  t.equal(latency.count, totals.due)
  t.equal(latencies.find(({ outcome }) => outcome === 'dropped')?.count, totals.dropped)
  t.equal(latency.p99, null)
})

/** As a user whose shell allows 60 open files. */
const runWithFewFiles = (args: readonly string[]) =>
  runProgram(t, ['/bin/sh', '-c', 'ulimit -n 60; exec "$0" "$@"', product, ...args])

t.test('open files that run out limit the load generator, which goes on and decides nothing', async t => {
  const slow = await startTarget(t, (_request, socket) => {
    setTimeout(() => socket.write(ok('{}', headers)), 100)
    return undefined
  })
  const server = createHttp2Server((_request, response) => response.end('{}'))
  const http2 = `http://127.0.0.1:${await listenOn(t, server)}`
  const loop = ['--as-fast-as', '128', '--loop', '--duration', '500ms', '--threshold', 'errors<1%']
  for (const args of [
    ['--target', slow.url, ...loop],
    ['--target', http2, '--http', '2', ...loop],
    ['--target', slow.url, '--rate', '1500', '--loop', '--duration', '500ms', '--threshold', 'p99<1us'],
  ]) {
    const { code, stdout, stderr } = await runWithFewFiles(['replay', keyless, ...args, '--json'])
    const { totals, thresholds, generator } = replayResult.parse(JSON.parse(stdout))
    t.equal(code, 1, stderr)
    t.match(stderr, /^Not decided: the load generator reached a limit of its own machine/m)
    t.match(generator, {
      limited: true,
      saturated: true,
      reason: /reached its limit of open files .*ulimit -n/,
    })
    t.strictSame(thresholds, [])
    t.strictSame(totals.failed, {})
    t.ok(totals.answered > 0, 'it goes on')
  }
  const pace = ['--until-slower', '--rate', '1500', '--duration', '400ms', '--warm-up', '50ms']
  const search = ['replay', keyless, '--target', slow.url, ...pace, '--threshold', 'errors<99%']
  const { code, stdout, stderr } = await runWithFewFiles(search)
  t.equal(code, 1, stderr)
  t.match(stderr, /^1,500\/s: not decided: the load generator reached its limit of open files/m)
  t.match(stdout, /Nothing is known of http:.*: the load generator reached its limit of open files/)
})

t.test('Ctrl-C reports what ran', async t => {
  const target = await startTarget(t, () => ok('{}', headers))
  const out = file('interrupted.json')
  const line = `replay ${keyless} --target ${target.url} --rate 100 --loop --workers 2 --out ${out}`
  const { child, said, closed } = spawnProgram(t, [product, ...line.split(' ')])
  await until('some requests were sent', () => target.received.length > 5)
  child.kill('SIGINT')
  t.equal(await closed, 1, said.stderr)
  t.match(said.stdout, /^Interrupted: /)
  const result = replayResult.parse(JSON.parse(readFileSync(out, 'utf8')))
  t.equal(result.interrupted, true)
  t.equal(result.totals.sent, target.received.length)
  t.equal(result.totals.answered, result.totals.sent)
})

t.test('with the ops address, what the run cost the gateway and its settings', async t => {
  const simulator = await startSimulator({})
  t.teardown(simulator.close)
  const env = {
    ABOHAWA_TEST_PROVIDER__RETRY_DELAY: '1ms',
    ABOHAWA_PROVIDER__TIMEOUT: '5s',
    ABOHAWA_TEST_PROVIDER__BODY_TIMEOUT: '5s',
    ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '',
    ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '',
    ABOHAWA_PROVIDER__BUDGET__PER_DAY: '5000',
    ABOHAWA_CACHE__FRESHNESS: 'age',
    ABOHAWA_CACHE__FRESH_FOR: '30m',
  }
  const gateway = await startGateway(t, { providerUrl: simulator.url, clock: systemClock, env })
  const one = file('gateway-key.txt', gateway.keys.enterprise)
  const out = file('gateway.json')
  const args = ['replay', traffic, '--target', gateway.apiUrl, '--key', one, '--ops', gateway.opsUrl]
  const [other] = await runCommands([[...args, '--json']])
  t.equal(other?.code, 0, `${other?.stderr}`)
  t.match(other?.stderr, /has another configuration than this command/)
  const cold = replayResult.parse(JSON.parse(other?.stdout ?? ''))
  t.hasStrict(cold, { provider: { requests: 1, windows: [{ span: 'day', limit: 5000 }] }, settings: null })
  t.ok((cold.provider?.weight ?? 0) > 0, 'the one request weighs something')
  t.ok((cold.outcomes.miss ?? 0) >= 1, 'the first was a miss')
  t.ok((cold.gateway?.memoryBytes ?? 0) > 1_000_000)

  const own = { ...env, ABOHAWA_PROVIDER__BASE_URL: simulator.url }
  const checks = ['--check-bodies', '--threshold', 'hits>=100%']
  const [same] = await runCommands([[...args, '--out', out, ...checks]], own)
  t.equal(same?.code, 0, `${same?.stderr}`)
  const warm = replayResult.parse(JSON.parse(readFileSync(out, 'utf8')))
  t.match(warm, { provider: { requests: 0, weight: 0 }, bodies: { checked: 1, faults: [] } })
  const freshFor = warm.settings?.find(({ path }) => path === 'cache.freshFor')
  t.hasStrict(freshFor, { value: '30m', default: '1h' })
})
