// Without it equal seeds could give different traffic, or the samples differ from their commands.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { runCommands } from '../../../support/printed.ts'
import { cleanEnv, product, spawnProgram } from '../../../support/process.ts'
import { until } from '../../../support/until.ts'

const root = join(import.meta.dirname, '../../../..')
const samples = join(root, 'samples')
const textOf = (file: string) => gunzipSync(readFileSync(file)).toString()
const generate = (...options: string[]) => ['traffic', 'generate', ...options]

t.test('the samples are what the commands of their page write', async t => {
  const folder = t.testdir()
  const page = readFileSync(join(samples, 'README.md'), 'utf8')
  const lines = [...page.matchAll(/^abohawa (.+)$/gm)]
  const commands = lines.map(([, line = '']) => line.split(' '))
  const names = readdirSync(samples).filter(name => name.endsWith('.gz'))
  const ended = await runCommands(commands.map(words => words.map(word => word.replace(/^samples/, folder))))
  for (const { code, stderr } of ended) t.hasStrict({ code, stderr }, { code: 0, stderr: '' })
  t.strictSame(readdirSync(folder).sort(), names.sort())
  for (const name of names) {
    // The text alone: other versions of zlib may compress it otherwise.
    const [given, made] = [textOf(join(samples, name)), textOf(join(folder, name))]
    t.ok(given === made, `${name} is written again by its command of samples/README.md`)
    t.ok(given.split('\n').length > 20_000, 'some 20,000 requests')
    t.ok(statSync(join(samples, name)).size < 400_000, 'a small file')
  }
})

t.test('a file, its gzip and standard output have the same lines, and the gzip no time', async t => {
  const folder = t.testdir()
  const at = (name: string) => join(folder, name)
  const [plain, packed, again] = [at('a.ndjson'), at('b.ndjson.gz'), at('c.ndjson.gz')]
  const storm = ['--storm', 'upazila/302638@08:00/1m', '--start', '2026-04-14T08:00+06:00']
  const options = ['--rate', '20', '--duration', '1m30s', '--seed', '7', ...storm]
  const [shown, toFile, toGzip, toOther] = await runCommands([
    generate(...options),
    generate(...options, '--out', plain),
    generate(...options, '--out', packed, '--json'),
    generate(...options, '--out', again),
  ])
  const text = readFileSync(plain, 'utf8')
  const said = /a\.ndjson has 1,\d{3} requests\.\n {2}from +2026-04-14 08:00 Asia\/Dhaka, for 90s\n/
  t.match(toFile, { code: 0, stderr: '', stdout: said })
  const ofStorm = /storm +Keraniganj \(upazila\/302638\) from 2026-04-14 08:00 to 2026-04-14 08:01, 10 times/
  t.match(toFile?.stdout, ofStorm)
  t.ok(shown?.stdout === text && textOf(packed) === text)
  t.strictSame(readFileSync(packed), readFileSync(again))
  t.equal(readFileSync(packed).readUInt32LE(4), 0)
  const { catalogue, ...facts } = JSON.parse(toGzip?.stdout ?? '')
  t.match(catalogue, /^[0-9a-f]{64}$/)
  const from = '2026-04-14T02:00:00.000Z'
  const to = '2026-04-14T02:01:00.000Z'
  t.strictSame(facts, {
    ...{ out: packed, requests: text.split('\n').length - 1, from, seconds: 90 },
    ...{ seed: 7, rate: 20, arrivals: 'poisson', shape: 'day' },
    storms: [{ place: 'upazila/302638', from, to, factor: 10 }],
    mix: {
      ...{ weather: 70, forecast: 20, coords: 6, weather_places: 0, forecast_places: 0 },
      ...{ locations: 2, location: 2 },
    },
    ...{ alpha: 1, keys: 1000, keysAlpha: 0.8, english: 0.3, conditional: 0.1, compressed: 0.75, bad: 0.01 },
  })
  t.equal(toOther?.code, 0)
  const sha256 = '1904befd149793b8f3c3b0a6fe20f63136b5a7456adc676c0946837d0be5b019'
  t.equal(createHash('sha256').update(text).digest('hex'), sha256, 'the same bytes on every machine')
})

t.test('an interrupted command leaves a whole file of what it generated so far', async t => {
  const folder = t.testdir()
  const out = join(folder, 'long.ndjson.gz')
  const args = generate('--rate', '1000', '--duration', '9d', '--out', out)
  const { child, said, closed } = spawnProgram(t, [product, ...args])
  const isWritten = () => readdirSync(folder).some(name => statSync(join(folder, name)).size > 0)
  await until('something is written', isWritten)
  child.kill('SIGINT')
  t.equal(await closed, 1)
  const lines = textOf(out).trimEnd().split('\n')
  t.match(said.stderr, `Interrupted: ${out} has the first ${lines.length.toLocaleString('en-US')} requests.`)
  t.hasStrict(JSON.parse(lines.at(-1) ?? ''), { method: 'GET' })
})

t.test('the commands of the documentation: files, and keys for one that are created once', async t => {
  const folder = t.testdir()
  symlinkSync(samples, join(folder, 'samples'))
  const env = { ABOHAWA_STORE__PATH: join(folder, 'store.db') }
  const page = readFileSync(join(root, 'docs', 'load-testing.md'), 'utf8')
  const section = /^## Generate\n(.*?)^## /ms.exec(page)?.[1] ?? ''
  const commands = [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, text = '']) => text)
  const script = commands
    .join('')
    .replaceAll(/^abohawa /gm, `${product} `)
    .replace('--rate 2000', '--rate 20')
  const options = { cwd: folder, env: cleanEnv(env), encoding: 'utf8' } as const
  const { status, stderr } = spawnSync('bash', ['-euc', script], options)
  t.equal(status, 0, stderr)
  const made = ['ids.csv', 'issued.csv', 'ten-minutes.ndjson.gz', 'weekday.ndjson.gz', 'storm.ndjson.gz']
  for (const name of made) t.ok(existsSync(join(folder, name)), name)
  t.ok(textOf(join(folder, 'storm.ndjson.gz')) === textOf(join(samples, 'storm.ndjson.gz')))

  const ids = readFileSync(join(folder, 'ids.csv'), 'utf8').trimEnd().split('\r\n')
  t.equal(ids.length, 61)
  const first = 'Load test,enterprise,key-0001,1000000000'
  t.strictSame(ids.slice(0, 2), ['subscriber,tier,external_id,limit', first])
  const issued = readFileSync(join(folder, 'issued.csv'), 'utf8')
  t.match(issued, /^key_\w+,svc_live_\w+,key-0001,Load test,enterprise,1000000000,/m)
  const create = `keys create --from ${join(folder, 'ids.csv')} --csv --out ${join(folder, 'again.csv')}`
  const [again, shown] = await runCommands([create, 'keys show external:key-0060 --json'], env)
  t.match(again, { code: 0, stderr: /0 created, 60 existed/ })
  const expected = { tier: 'enterprise', limit: 1_000_000_000, subscriber: 'Load test' }
  t.hasStrict(JSON.parse(shown?.stdout ?? ''), expected)
})

t.test('the keys of files, or of a part of them, as CSV; faulty lines are said', async t => {
  const sample = join(samples, 'weekday.ndjson.gz')
  const line = '{"at":"2026-11-16T00:00:00Z","method":"GET","path":"/x","key":"k"}'
  const faulty = join(t.testdir({ 'a.ndjson': `${line}\nbroken\n` }), 'a.ndjson')
  const keysOf = (...args: string[]) => ['traffic', 'import', ...args, '--as', 'keys']
  const [free, both, part] = await runCommands([
    keysOf(sample, '--tier', 'free'),
    keysOf(faulty, sample),
    keysOf(sample, '--key', 'key-0007,key-0060'),
  ])
  t.match(free, { code: 0, stderr: '', stdout: /^Load test,free,key-0001,1000000000\r$/m })
  t.equal(both?.stdout.trimEnd().split('\r\n').length, 62)
  t.match(both?.stderr, /^\S+a\.ndjson:2: "broken" is not JSON\n$/)
  t.match(part?.stdout, /^subscriber.*\r\n.*key-0007.*\r\n.*key-0060.*\r\n$/)
})
