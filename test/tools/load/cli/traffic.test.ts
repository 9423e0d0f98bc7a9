// Without it `traffic import` and `stats` could lose requests, leak keys, or leave half a file.

import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { requestOf, type TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'
import { manualClock } from '../../../support/manual-clock.ts'
import { runCommands } from '../../../support/printed.ts'
import { cleanEnv, product, spawnProgram } from '../../../support/process.ts'
import { startProvider } from '../../../support/provider.ts'
import { startGateway } from '../../../support/start-gateway.ts'
import { until } from '../../../support/until.ts'
import { linesOf } from '../replay/send-some.ts'
import { request, start } from '../traffic/read-all.ts'

const root = join(import.meta.dirname, '../../../..')
const requestsIn = (path: string): TrafficRequest[] => {
  const bytes = readFileSync(path)
  const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
  return text.split('\n').filter(Boolean).map(requestOf)
}
const traffic = (...args: string[]) => ['traffic', ...args]

t.test('the log of a running gateway becomes traffic, with what was answered and without keys', async t => {
  const provider = await startProvider(t)
  const clock = manualClock(start)
  const gateway = await startGateway(t, { providerUrl: provider.url, clock })
  const paths = ['/weather/district/3026?lang=en', '/weather/district/3026', '/forecast/district/3026?days=3']
  for (const [i, path] of [...paths, '/locations?type=division', '/weather/district/9'].entries()) {
    clock.set(start + i * 1_000)
    await gateway.get(path, { headers: i === 1 ? { 'accept-encoding': 'gzip' } : {} })
  }
  const { headers } = await gateway.get(paths[1] ?? '')
  await gateway.get(paths[1] ?? '', { headers: { 'if-none-match': headers.etag ?? '' } })
  await gateway.get(paths[0] ?? '', { key: null })
  const answered = () => gateway.logged.filter(({ msg }) => msg === 'answered')
  await until('a line for each request', () => answered().length === 8)
  const folder = t.testdir({ log: gateway.logged.map(line => JSON.stringify(line)).join('\n') })
  const out = join(folder, 'day.ndjson.gz')
  const [ended] = await runCommands([traffic('import', join(folder, 'log'), '--out', out, '--json')])
  t.hasStrict(ended, { code: 0, stderr: '' })
  const files = [{ format: 'access-log', sha256: /^[0-9a-f]{64}$/ }]
  t.match(JSON.parse(ended?.stdout ?? ''), { requests: 8, faultyLines: 0, files })
  const requests = requestsIn(out)
  const key = gateway.keyIds.enterprise
  const miss = { outcome: 'miss', tier: 'provider' }
  const path = '/api/v1/weather/district/3026'
  t.hasStrict(requests, [
    { at: start, method: 'GET', path: `${path}?lang=en`, key, status: 200, ...miss },
    { at: start + 1_000, path, accepts: 'gzip', outcome: 'hit', tier: 'memory', cell: '23.7,90.4' },
    { at: start + 2_000, path: '/api/v1/forecast/district/3026?days=3', outcome: 'hit' },
    { at: start + 3_000, path: '/api/v1/locations?type=division', outcome: 'none' },
    { at: start + 4_000, path: '/api/v1/weather/district/9', status: 404 },
    { at: start + 4_000, path },
    { at: start + 4_000, path, conditional: true, status: 304, bytes: 0 },
    { at: start + 4_000, path: `${path}?lang=en`, status: 401, outcome: 'none' },
  ])
  t.equal(requests[7]?.key, undefined)
  const text = JSON.stringify(requests)
  for (const secret of [...Object.values(gateway.keys), '127.0.0.1']) t.notOk(text.includes(secret))
})

t.test('the commands of docs/load-testing.md do what it says', async t => {
  const line = (at: number, cell: string) => {
    const time = new Date(start + at).toISOString()
    const url = '/api/v1/weather/district/3026'
    const answered = { method: 'GET', url, status: 200, ms: 1, arrivedAt: time, cell, msg: 'answered' }
    return `${JSON.stringify({ level: 'info', time, ...answered })}\n`
  }
  const lines = Array.from({ length: 200 }, (_, i) => line(i * 10, `${20 + (i % 50) / 10},90`))
  const folder = t.testdir({
    'abohawa.log': lines.slice(100).join(''),
    'gateway-1.log': lines.join(''),
    'gateway-2.log': lines.join(''),
  })
  writeFileSync(join(folder, 'abohawa.log.1.gz'), gzipSync(lines.slice(0, 100).join('')))
  const page = readFileSync(join(root, 'docs', 'load-testing.md'), 'utf8')
  const [, sections = ''] = /\n## Record\n(.*?)\n## Generate\n/s.exec(page) ?? []
  const inFolder = (word: string) =>
    /^[\w-]+\.[\w.]+$/.test(word) ? join(folder, word) : word.replace(/^samples/, join(root, 'samples'))
  const commands = [...sections.matchAll(/^abohawa (.+)$/gm)].map(([, words = '']) =>
    words.split(' ').map(inFolder),
  )
  t.ok(commands.length >= 9)
  const ended = await runCommands(commands)
  for (const [i, { code, stderr }] of ended.entries())
    t.hasStrict({ code, stderr }, { code: 0, stderr: '' }, commands[i]?.join(' ') ?? '')
  t.equal(requestsIn(join(folder, 'day.ndjson.gz')).length, 200)
  const sampled = requestsIn(join(folder, 'tenth.ndjson.gz')).length
  t.ok(sampled > 0 && sampled < 150 && sampled % 8 === 0, `${sampled} of 400: cells as a whole`)
  t.equal(requestsIn(join(folder, 'thousand.ndjson')).length, 1_000)
  // The sample has no cells of its own; the catalogue has.
  t.match(ended[3]?.stdout, /\n +place +requests +share +cell .*\n.* 23\.7,90\.4 /)
  t.match(ended[3]?.stdout, /LRU misses +by objects held: 1: /)
  const sample = (name: string) => requestsIn(join(root, 'samples', `${name}.ndjson.gz`))
  const [weekday, both] = [sample('weekday'), requestsIn(join(folder, 'both.ndjson.gz'))]
  t.equal(both.length, weekday.length + sample('storm').length)
  const isOrdered = both.every(({ at }, i) => at >= (both[i - 1]?.at ?? 0))
  t.ok(isOrdered, 'in order')
  const others = requestsIn(join(folder, 'for-others.ndjson.gz'))
  t.ok(others.every(({ key }) => key === undefined || /^anon_[0-9a-f]{12}$/.test(key)))
  t.equal(new Set(others.map(({ key }) => key)).size, new Set(weekday.map(({ key }) => key)).size)
  t.notOk(others.some(({ path }) => /[?&]q=/.test(path)))
})

t.test('a file far out of order is sorted by its lines, and gaps are shortened in the result', async t => {
  const requests = Array.from({ length: 9_000 }, (_, i) => request(i * 10 + (i >= 6_000 ? 3_600_000 : 0)))
  const folder = t.testdir({
    mixed: linesOf([...requests.slice(4_000), ...requests.slice(0, 4_000)]),
    ordered: linesOf(requests),
  })
  const at = (name: string): string => join(folder, name)
  const [whole, shortened] = await runCommands([
    traffic('import', at('mixed'), '--window', '500', '--out', at('whole')),
    traffic('import', at('ordered'), '--out', at('cut.gz'), '--longest-gap', '1m', '--json'),
  ])
  t.hasStrict(whole, { code: 0, stderr: '' })
  for (const said of [
    /whole has 9,000 requests\.\n/,
    /order +[\d,]+ requests were too far apart for --window and are out of order; `LC_ALL=C sort` sorts/,
    /gaps +1 longer than 5m, the longest 1 h from 2026-11-21T06:00:59\.990Z; import --longest-gap shortens/,
  ])
    t.match(whole?.stdout, said)
  t.equal(requestsIn(at('whole')).length, 9_000, 'and none is lost')
  const sorted = spawnSync('sort', [at('whole')], { encoding: 'utf8', env: { ...cleanEnv(), LC_ALL: 'C' } })
  t.ok(sorted.stdout === linesOf(requests))
  t.match(JSON.parse(shortened?.stdout ?? ''), { late: 0, gaps: { count: 1 } })
  const [last] = requestsIn(at('cut.gz')).slice(-1)
  t.equal(last?.at, start + 8_999 * 10 + 60_000 - 10)
  t.strictSame(readdirSync(folder).sort(), ['cut.gz', 'mixed', 'ordered', 'whole'])
})

t.test('faulty lines are shown, the first ten in full, and the exit code says so with --strict', async t => {
  const folder = t.testdir({ a: `${linesOf([request(0)])}${'broken\n'.repeat(25)}${linesOf([request(1)])}` })
  const [file, out] = [join(folder, 'a'), join(folder, 'out')]
  writeFileSync(join(folder, 'b'), 'broken {"at":"\n')
  const [loose, strict, strictStats, none] = await runCommands([
    traffic('import', file, '--out', out),
    traffic('import', file, '--strict', '--out', `${out}2`),
    traffic('stats', file, '--strict'),
    traffic('stats', join(folder, 'b'), '--format', 'ndjson'),
  ])
  t.match(none, { code: 1, stdout: '', stderr: /there are no requests in .*b\n$/ })
  t.match(loose, { code: 0, stdout: /out has 2 requests\.[\s\S]*faulty +25 lines, left out/ })
  const remarks = loose?.stderr.trim().split('\n') ?? []
  t.equal(remarks.length, 11)
  t.match(remarks[0], /a:2: "broken" is not JSON$/)
  t.equal(remarks[10], 'and 15 more faulty lines.')
  for (const ended of [strict, strictStats])
    t.match(ended, { code: 1, stdout: '', stderr: /^abohawa: .*a:2: "broken" is not JSON\n$/ })
  t.strictSame(readdirSync(folder).sort(), ['a', 'b', 'out'])
})

t.test('a file that is packed otherwise than by gzip is refused by name', async t => {
  const folder = t.testdir({
    a: Buffer.from('28b52ffd0458', 'hex'),
    b: Buffer.from('fd377a585a00', 'hex'),
    c: 'BZh91AY',
  })
  for (const [name, packer] of [
    ['a', 'zstd'],
    ['b', 'xz'],
    ['c', 'bzip2'],
  ] as const) {
    const [ended] = await runCommands([['traffic', 'stats', join(folder, name)]])
    t.equal(ended?.code, 1)
    t.match(
      ended?.stderr,
      `is compressed by ${packer}: unpack it first, with \`${packer} -d\`, or compress it by gzip`,
    )
  }
})

t.test('one request is no rate, and a dumb terminal gets no control sequences', async t => {
  const folder = t.testdir({ a: linesOf([request(0)]) })
  const onTerminal = (TERM: string, ...args: string[]) =>
    spawnSync(product, traffic(...args), {
      encoding: 'utf8',
      env: { ...cleanEnv(), TERM, NODE_OPTIONS: '--import=data:text/javascript,process.stderr.isTTY=true' },
    })
  const stats = onTerminal('xterm', 'stats', join(folder, 'a'))
  t.match(stats.stderr, '\r\u001b[K')
  t.notMatch(stats.stdout, /mean .*requests a second/)
  const written = onTerminal('dumb', 'import', join(folder, 'a'), '--out', join(folder, 'out'))
  t.match(written, { status: 0, stdout: /out has 1 request\.\n/ })
  t.equal(written.stderr, '')
})

t.test('standard input and output are a file too', async t => {
  const text = linesOf([request(0), request(1)])
  const pipe = (args: string[], input: string | Buffer) =>
    spawnSync(product, args, { input, encoding: 'utf8', env: cleanEnv() })
  const ended = pipe(traffic('import', '-'), gzipSync(text))
  t.match(ended, { status: 0, stdout: text, stderr: /^Standard output has 2 requests\./ })
  t.hasStrict(JSON.parse(pipe(traffic('stats', '-', '--json'), text).stdout), {
    requests: 2,
    from: '2026-11-21T06:00:00.000Z',
    read: { files: [{ file: 'standard input' }] },
  })
})

t.test('Ctrl-C ends with what was counted, and leaves no part of a file', async t => {
  const folder = t.testdir()
  const out = join(folder, 'out.ndjson')
  const importing = traffic('import', '-', '--window', '1', '--out', out)
  for (const [args, sentence] of [
    [importing, /^Interrupted after [\d,]+ requests: nothing was written\.\n$/],
    [
      traffic('stats', '-', '--window', '1'),
      /^Interrupted: the figures count only the first [\d,]+ requests\.\n$/,
    ],
  ] as const) {
    const { child, said, closed } = spawnProgram(t, [product, ...args])
    child.stdin?.on('error', () => {})
    // Bytes that were taken say that it reads; it goes on with the next ones.
    const line = linesOf(Array.from({ length: 1_000 }, (_, i) => request(i)))
    for (let i = 0; i < 5; i++) await new Promise(resolve => child.stdin?.write(line, resolve))
    if (args.includes('import'))
      await until('the file is begun', () => readdirSync(folder).some(name => name.endsWith('.part')))
    child.kill('SIGINT')
    const feeding = setInterval(() => child.stdin?.write(line), 20)
    t.equal(await closed, 1)
    clearInterval(feeding)
    t.match(said.stderr, sentence)
    if (args.includes('stats')) t.match(said.stdout, /requests from 2026-11-21T06:00:00\.000Z/)
  }
  t.strictSame(readdirSync(folder), [])
})
