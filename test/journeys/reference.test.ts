// Without it, the API reference could differ from what a gateway answers, and its sample programs could fail.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Sample } from '../../tools/reference/samples.ts'
import { referenceFiles } from '../../tools/reference/write.ts'
import { deviations } from '../support/conforming.ts'
import { runProgram, spawnProgram } from '../support/process.ts'
import { startProviderHere } from '../support/provider.ts'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const committed = readFileSync('docs/openapi.json', 'utf8')
type Operation = {
  operationId: string
  'x-codeSamples': Sample[]
  responses: Record<string, { content: Record<string, { example: object }> }>
}
const document = JSON.parse(committed) as {
  paths: Record<string, { get: Operation }>
  components: { schemas: Record<string, { properties: Record<string, object> }> }
}
const operations = Object.values(document.paths).map(({ get }) => get)

t.test('document and pages are not stale; `npm run openapi` renews them', async t => {
  for (const [name, text] of Object.entries(await referenceFiles()))
    t.ok(text === readFileSync(`docs/${name}`, 'utf8'), `docs/${name}`)
})

t.test('a linter has nothing against it', async t => {
  const { status, stdout, stderr } = spawnSync('npm', ['run', '-s', 'lint:api'], { encoding: 'utf8' })
  t.equal(status, 0, stdout + stderr)
})

t.test('a response that is not as documented is found', async t => {
  const url = '/api/v1/locations/division/30'
  const figures = { 'x-ratelimit-limit': '1', 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '1' }
  const ofError = { ...figures, 'x-request-id': 'a', 'cache-control': 'no-store' }
  const headers = { ...ofError, etag: '"a"' }
  const body = document.paths['/api/v1/locations/{type}/{id}']?.get.responses[200]?.content[
    'application/json'
  ]?.example as { location: object }
  const given = (status: number, content: unknown, more: Record<string, string> = {}) => {
    const bytes = Buffer.from(JSON.stringify(content))
    const own = { ...(status === 200 ? headers : ofError), ...more }
    return deviations({ method: 'GET', url, status, headers: own, bytes }).join()
  }
  t.equal(given(200, body), '')
  const doc_url = '/docs#error-x'
  t.equal(given(404, { error: 'x', code: 'place_not_found', doc_url }), '')
  for (const [found, wanted] of [
    [given(200, { location: { ...body.location, extra: 1 } }), /additional properties/],
    [given(200, { location: { ...body.location, population: '1' } }), /population must be integer/],
    [given(200, body, { 'x-new': '1' }), /has the header x-new/],
    [given(404, { error: 'x', code: 'place_lost', doc_url }), /the code place_lost, which is not documented/],
    [given(503, { error: 'x', code: 'x_y', doc_url }), /is not documented/],
    [given(401, { error: 'x', code: 'key_missing', doc_url }), /lacks the header www-authenticate/],
  ] as const)
    t.match(found, wanted)
  const head = { method: 'HEAD', url, status: 200, headers: figures, bytes: Buffer.alloc(0) }
  t.match(deviations(head).join(), /lacks the header x-request-id/)
})

t.test('the document allows further fields, and has the ranges of the values', t => {
  t.notMatch(committed, /"additionalProperties"/)
  // Generators such as openapi-zod-client escape slashes themselves.
  t.match(committed, '"pattern": "/docs#error-[a-z0-9_]+$"')
  const { Current, Hourly } = document.components.schemas
  t.hasStrict(Current?.properties.interval, { type: 'integer' })
  t.hasStrict(Current?.properties.temperature_2m, { type: ['number', 'null'], minimum: -100, maximum: 70 })
  t.hasStrict(Hourly?.properties.precipitation_probability, {
    items: { type: ['integer', 'null'], minimum: 0, maximum: 100 },
  })
  t.end()
})

const runs = (command: string) => spawnSync(command, ['--version']).error === undefined
const folder = mkdtempSync(join(tmpdir(), 'abohawa-samples-'))
t.teardown(() => rmSync(folder, { recursive: true }))

/** How a program is run; undefined where this machine can't. */
const languages: Readonly<Record<string, { ending: string; command: string[] } | undefined>> = {
  shell: { ending: 'sh', command: ['bash'] },
  typescript: { ending: 'mts', command: [process.execPath] },
  python: runs('python3') ? { ending: 'py', command: ['python3'] } : undefined,
  go: spawnSync('go', ['version']).error ? undefined : { ending: 'go', command: ['go', 'run'] },
}

const run = async ({ lang, source }: Sample, env: Record<string, string>) => {
  const language = languages[lang]
  if (!language) return undefined
  const file = join(folder, `sample.${language.ending}`)
  writeFileSync(file, source)
  const { PATH, HOME } = process.env
  return runProgram(t, [...language.command, file], { env: { PATH, HOME, ...env } })
}

// What programs are told of the gateway.
const env = { ABOHAWA_URL: '', ABOHAWA_KEY: '' }
const started = startProviderHere(t).then(async provider => {
  const tiers = { ABOHAWA_QUOTA__TIERS__TRIAL: '1' }
  const gateway = await startGateway(t, { providerUrl: provider.url, env: tiers })
  Object.assign(env, { ABOHAWA_URL: gateway.apiUrl, ABOHAWA_KEY: gateway.keys.enterprise })
  return gateway
})

t.test('the programs of the reference print what a real gateway answers', async t => {
  const gateway = await started
  const expected: Record<string, RegExp> = {
    getWeather: /^-?\d+(\.\d)?\n$/,
    getPointWeather: /^-?\d+(\.\d)?\n$/,
    getForecast: /^\[ ?-?[\d.]+, -?[\d.]+, -?[\d.]+ ?\]\n$/,
    getWeatherOfPlaces: /^-?\d+(\.\d)?\n$/,
    getForecastOfPlaces: /^\[ ?-?[\d.]+, -?[\d.]+, -?[\d.]+ ?\]\n$/,
    listLocations: /^3026\n$/,
    getLocation: /^\d{8}\n$/,
    getKey: /^99\d{3}\n$/,
  }
  const trial = gateway.keys.trial ?? ''
  await gateway.get('/locations?type=division', { key: trial })
  for (const [at, { operationId, 'x-codeSamples': samples }] of operations.entries())
    for (const sample of samples) {
      const title = `${operationId} in ${sample.label}`
      const ended = await run(sample, env)
      if (!ended) {
        t.pass(title, { skip: `needs ${sample.lang}` })
        continue
      }
      t.strictSame([ended.code, ended.stderr], [0, ''], title)
      if (sample.lang === 'shell' || sample.lang === 'go') t.type(JSON.parse(ended.stdout), 'object', title)
      else t.match(ended.stdout, expected[operationId], title)
      if (at > 0) continue
      const refused = await run(sample, { ...env, ABOHAWA_KEY: trial })
      t.not(refused?.code, 0, 'a used-up day ends the program at once')
      t.match(`${refused?.stdout}${refused?.stderr}`, /quota_exhausted/)
    }
})

t.test('every program on docs/api.md runs', async t => {
  await started
  const page = readFileSync('docs/api.md', 'utf8')
  const programs = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, source = '']) => ({
    lang: 'shell',
    label: 'sh',
    source,
  }))
  t.equal(programs.length, 3)
  const printed: string[] = []
  for (const program of programs) {
    const ended = await run(program, env)
    if (!ended) continue
    t.strictSame([ended.code, ended.stderr], [0, ''], program.source)
    printed.push(ended.stdout)
  }
  const [list = '', forecast = '', near = ''] = printed
  t.equal(JSON.parse(list).results[0].id, '3026')
  t.match(JSON.parse(forecast), { location: { id: '3026' }, daily: { weather_text: [/^[A-Z]/, /./, /./] } })
  // As the page shows it.
  const [, shown = ''] = /^ {2}("place": \{\n[^`]*?\n {2}\})\n/ms.exec(page) ?? []
  t.strictSame(JSON.parse(near).place, JSON.parse(`{${shown}}`).place)
})

t.test(
  'the program for many places asks five times for 500 of them',
  { skip: !languages.python && 'needs python3' },
  async t => {
    const gateway = await started
    const [, source = ''] = /^```python\n(.*?)^```$/ms.exec(readFileSync('docs/api.md', 'utf8')) ?? []
    const points = Array.from(
      { length: 500 },
      (_, i) => `coords/${21 + Math.floor(i / 25) / 5}/${88 + (i % 25) / 5}`,
    )
    const cwd = mkdtempSync(join(folder, 'places-'))
    writeFileSync(join(cwd, 'places.txt'), points.join('\n'))
    const limit = Number((await gateway.get('/locations/division/30')).headers['x-ratelimit-remaining'])
    const options = { cwd, env: { PATH: process.env.PATH, ...env } }
    const { said } = spawnProgram(t, ['python3', '-c', source], options)
    await until('all are there', () => said.stdout.split('\n').length > 5 || said.stderr)
    const lines = [1, 2, 3, 4, 5].map(list => `200 100 places, ${limit - 100 * list} units left\n`)
    t.strictSame(said, { stdout: lines.join(''), stderr: '' })
    const left = (await gateway.get('/locations/division/30')).headers['x-ratelimit-remaining']
    t.equal(left, String(limit - 501))
  },
)

t.test(
  'the program for many places asks once a minute while an answer is stale',
  { skip: !languages.python && 'needs python3' },
  async t => {
    const { url } = await startScriptedProvider(t, (_, response) => {
      response.writeHead(200, { 'cache-control': 'private, max-age=0', etag: 'W/"a"' }).end('[{}]')
    })
    const [, source = ''] = /^```python\n(.*?)^while /ms.exec(readFileSync('docs/api.md', 'utf8')) ?? []
    const cwd = mkdtempSync(join(folder, 'stale-'))
    writeFileSync(join(cwd, 'places.txt'), 'district/3026')
    const last = 'refresh(lists[0])\nprint(round(lists[0]["due"] - time.time()))'
    const own = { ...env, PATH: process.env.PATH, ABOHAWA_URL: url }
    const { stdout } = await runProgram(t, ['python3', '-c', `${source}${last}`], { cwd, env: own })
    t.equal(stdout.split('\n').at(-2), '60')
  },
)

t.test('programs in Go are sound', { skip: !languages.go && 'needs go' }, async t => {
  for (const { operationId, 'x-codeSamples': samples } of operations) {
    const file = join(folder, 'main.go')
    writeFileSync(file, samples.find(({ lang }) => lang === 'go')?.source ?? '')
    t.equal(spawnSync('gofmt', ['-l', file], { encoding: 'utf8' }).stdout, '', operationId)
    t.equal(spawnSync('go', ['vet', file], { encoding: 'utf8' }).stderr, '', operationId)
  }
})
