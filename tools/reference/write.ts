// Writes the OpenAPI document and its pages (`npm run openapi`). The answers are of a real gateway with a test key, whose
// weather never changes.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createDocUrl, Problem, problemResponse } from 'abohawa/api/problem.ts'
import { failureSentence, failureSentences, type Sentence, sentences } from 'abohawa/api/sentences.ts'
import { catalogueFile, readSnapshot } from 'abohawa/catalogue/snapshot-reader.ts'
import { apiPrefix } from 'abohawa/common/endpoints.ts'
import { openApiDocument } from './document.ts'
import { errors as errorMeanings } from './error-meanings.ts'
import { operationsFor } from './operations.ts'
import { type ReferenceDocument, referencePage } from './page.ts'

const product = fileURLToPath(new URL('../../bin/abohawa', import.meta.url))

const limit = 1_000
const resetAt = '2026-11-21T18:00:00.000Z'
const secondLater = '2026-11-21T06:00:01.000Z'

// By hand: what a gateway answers about a key depends on the clock.
const ofKey = {
  id: 'key_9hK2mPq4XyZa',
  tier: 'free',
  limit,
  used: 7,
  remaining: 993,
  reason: null,
  reset_at: resetAt,
  rates: null,
  restrictions: null,
  created_at: '2026-11-21T06:00:00.000Z',
  expires_at: null,
  days: Array.from({ length: 30 }, (_, ago) => ({
    day: new Date(Date.UTC(2026, 10, 21 - ago)).toISOString().slice(0, 10),
    used: ago === 0 ? 7 : 0,
  })),
}

const bodyOf = (sentence: Sentence, fields = {}): object =>
  JSON.parse(problemResponse(new Problem(400, sentence, {}, { fields }), createDocUrl(null)).body.toString())

// What the key of this file can't meet has the body that its sentence gives.
const untried: readonly object[] = [
  ...[
    sentences.http.plain,
    sentences.http.hostMissing,
    sentences.http.host('a b'),
    sentences.http.version('1.2'),
    sentences.http.transferEncodingInHttp10,
    sentences.http.transferEncoding('gzip'),
    sentences.http.tooLarge,
    sentences.http.notEncoded,
    sentences.http.late,
    sentences.http.invalid,
    sentences.referenceBusy(2 ** 20),
    sentences.key.unknown,
    sentences.key.replaced,
    sentences.key['key-revoked'],
    sentences.key['key-expired'],
    sentences.key['subscriber-revoked'],
    sentences.originNotAllowed('https://app.example.org'),
    sentences.bound.origin(undefined, ['https://app.example.org']),
    sentences.bound.address('127.0.0.1'),
    sentences.bound.endpoint('weather', ['locations', 'location']),
    sentences.path.missing('http://weather.example.org?lang=bn'),
    sentences.path.ambiguous('union', 'durgapur', 14, '55520241, 30333625, 55855849'),
    sentences.path.notEncoded('/api/v1/weather/%zz'),
    sentences.parameter.place('Dhaka'),
    sentences.testErrorUnknown('quota_used_up'),
    sentences.unexpected,
    ...Object.keys(failureSentences).map(failureSentence),
  ].map(sentence => bodyOf(sentence)),
  bodyOf(sentences.quotaExhausted(limit), { limit, reset_at: resetAt }),
  bodyOf(sentences.quotaInsufficient(limit, 2, 1), { limit, reset_at: resetAt, remaining: 1, cost: 2 }),
  bodyOf(sentences.rateLimited('second', 1), { policy: 'second', limit: 1, reset_at: secondLater }),
]

type Options = { readonly key?: string; readonly method?: string }

const tries: readonly [path: string, options?: Options][] = [
  ['/weather/district/3026', { key: '' }],
  ['/weather/district/3026', { key: 'sk_live_abc' }],
  ['/weather/district/3026', { key: 'svc_live_abc' }],
  ['/weather/district/3026', { method: 'POST' }],
  ['/weather/country/50'],
  ['/weather/coords/23.81'],
  ['/weather/district/3026?lang=fr'],
  ['/weather/district/3026?lang=bn&lang=en'],
  ['/weather/coords/23.81/90.41?include=places'],
  ['/weather?places[]=district/3026'],
  ['/weather/coords/23,81/90.41'],
  ['/weather/coords/19.9/90.41'],
  ['/forecast/district/3026?days=8'],
  [`/locations?type=union&q=${'x'.repeat(101)}`],
  ['/locations?type=union&q=%E0%A6'],
  ['/weather?places='],
  [`/weather?places=${'x'.repeat(5_001)}`],
  [`/forecast?places=${Array.from({ length: 101 }, (_, i) => `district/${i}`)}`],
  ['/weather/district/9999'],
  ['/weather/union/10040939'],
  ['/alerts'],
]

type Ask = (path: string, options?: Options) => Promise<{ status: number; body: object }>

/** Calls back with a gateway that is asked with a test key, and ends it. */
const withGateway = async <Result>(use: (ask: Ask) => Promise<Result>): Promise<Result> => {
  await using opened = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'abohawa-reference-'))
  opened.defer(() => rm(folder, { recursive: true }))
  const config = join(folder, 'config.yaml')
  const listening = { host: '127.0.0.1', port: 0 }
  await writeFile(
    config,
    JSON.stringify({
      server: { ...listening, drainFor: '0s' },
      ops: listening,
      store: { path: join(folder, 'store.db') },
      // Test keys have no weather of it.
      provider: { baseUrl: 'http://127.0.0.1:9' },
    }),
  )
  const create = ['keys', 'create', '--subscriber', 'Reference', '--test']
  const { stdout } = await promisify(execFile)(product, [
    ...create,
    '--create-store',
    '--json',
    '--config',
    config,
  ])
  const { key: own } = JSON.parse(stdout) as { key: string }
  const child = spawn(product, ['serve', '--config', config], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  opened.defer(async () => {
    child.kill()
    await ended
  })
  for await (const line of createInterface({ input: child.stdout })) {
    const { listener, url } = JSON.parse(line) as { listener?: string; url?: string }
    if (listener !== 'api') continue
    return await use(async (path, { key = own, method = 'GET' } = {}) => {
      const headers: Record<string, string> = key === '' ? {} : { 'x-api-key': key }
      const response = await fetch(`${url}${apiPrefix}${path}`, { method, headers })
      return { status: response.status, body: (await response.json()) as object }
    })
  }
  throw new Error('the gateway ended before it served')
}

/** The texts of all files, by their names in docs/. */
export const referenceFiles = (): Promise<Readonly<Record<string, string>>> =>
  withGateway(async ask => {
    const { provenance } = await readSnapshot(catalogueFile(null))
    const { bounds, title: area } = provenance
    const bodies: Record<string, unknown> = { key: ofKey }
    for (const { name, path, example } of operationsFor(bounds, area)) {
      if (name === 'key') continue
      const filled = path.replaceAll(/\{(\w+)\}/g, (_, parameter) => example.path[parameter] ?? '')
      const { status, body } = await ask(`${filled}?${new URLSearchParams(example.query)}`)
      if (status !== 200) throw new Error(`${filled} is ${status}`)
      bodies[name] = body
    }
    const errors: Record<string, unknown> = {}
    const bodiesOfErrors = [...untried]
    for (const [path, options] of tries) bodiesOfErrors.push((await ask(path, options)).body)
    for (const body of bodiesOfErrors) {
      const { code } = body as { code: string }
      if (errors[code] !== undefined) throw new Error(`${code} has two examples`)
      errors[code] = body
    }
    const missing = Object.keys(errorMeanings).filter(code => errors[code] === undefined)
    if (missing.length > 0) throw new Error(`no example of ${missing.join(', ')}`)

    const text = JSON.stringify(openApiDocument({ bounds, area, examples: { bodies, errors } }), null, 2)
    const document: ReferenceDocument = JSON.parse(text)
    return {
      'openapi.json': `${text}\n`,
      'reference.en.html': referencePage(document, 'en'),
      'reference.bn.html': referencePage(document, 'bn'),
    }
  })

if (import.meta.main)
  for (const [name, text] of Object.entries(await referenceFiles()))
    await writeFile(new URL(`../../docs/${name}`, import.meta.url), text)
