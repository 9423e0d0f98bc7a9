// The API reference as it should be: the OpenAPI document with answers of a real gateway over a real provider, whose
// clocks stand still. `npm run openapi` writes it; a test compares it with docs/openapi.json.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { badRequest, createDocUrl, problemResponse } from 'abohawa/api/problem.ts'
import { openApiDocument } from './document.ts'
import { errors as errorMeanings } from 'abohawa/api/error-meanings.ts'
import { operationsFor } from './operations.ts'
import { failureSentence, failureSentences, type Sentence, sentences } from 'abohawa/api/sentences.ts'
import { createCatalogue } from 'abohawa/catalogue/catalogue.ts'
import { readSnapshot } from 'abohawa/catalogue/snapshot-reader.ts'
import { createKey } from 'abohawa/keys/key-form.ts'
import { startProvider } from '../../test/support/provider-process.ts'
import { type RequestOptions, startGateway } from '../../test/support/start-gateway.ts'
import { usualCatalogue } from '../../test/support/usual-catalogue.ts'

export const documentFile = join(import.meta.dirname, '../../docs/openapi.json')

type Teardown = { teardown(fn: () => unknown): void }

// What no request can be made to meet on a healthy gateway has the body that its sentence gives.
const untried: Readonly<Record<string, Sentence>> = {
  https_required: sentences.http.plain,
  host_missing: sentences.http.hostMissing,
  host_invalid: sentences.http.host('a b'),
  http_version_not_supported: sentences.http.version('1.2'),
  transfer_encoding_in_http_1_0: sentences.http.transferEncodingInHttp10,
  transfer_encoding_not_supported: sentences.http.transferEncoding('gzip'),
  head_too_large: sentences.http.tooLarge,
  url_not_encoded: sentences.http.notEncoded,
  request_timeout: sentences.http.late,
  http_invalid: sentences.http.invalid,
  reference_busy: sentences.referenceBusy(2 ** 20),
  key_replaced: sentences.key.replaced,
  key_expired: sentences.key['key-expired'],
  origin_not_allowed: sentences.originNotAllowed('https://app.example.org'),
  place_invalid: sentences.parameter.place('Dhaka'),
  path_missing: sentences.path.missing('http://weather.example.org?lang=bn'),
  place_ambiguous: sentences.path.ambiguous('union', 'durgapur', 14, '55520241, 30333625, 55855849'),
  path_not_encoded: sentences.path.notEncoded('/api/v1/weather/%zz'),
  test_error_unknown: sentences.testErrorUnknown('quota_used_up'),
  internal_error: sentences.unexpected,
}

const bodyOf = (sentence: Sentence): string =>
  problemResponse(badRequest(sentence), createDocUrl(null)).body.toString()

/** The document as text. */
export const documentText = async (t: Teardown): Promise<string> => {
  const provider = await startProvider(t)
  const gateway = await startGateway(t, {
    providerUrl: provider.url,
    env: {
      ABOHAWA_QUOTA__TIERS__TRIAL: '1',
      ABOHAWA_QUOTA__TIERS__SLOW: '100',
      ABOHAWA_QUOTA__RATES__SLOW: '{ perSecond: 1 }',
      ABOHAWA_TEST_PROVIDER__RETRIES: '0',
    },
  })
  const good = gateway.keys.enterprise ?? ''
  // Unlike `gateway.get`, without holding the response against the document that is being renewed.
  const get = async (path: string, { key = good, method = 'GET' }: RequestOptions = {}) => {
    const headers: Record<string, string> = key === null ? {} : { 'x-api-key': key }
    const response = await fetch(`${gateway.apiUrl}/api/v1${path}`, { method, headers })
    return { status: response.status, body: JSON.parse(await response.text()) }
  }
  const catalogue = createCatalogue(await readSnapshot(usualCatalogue))
  const operations = operationsFor(catalogue.bounds, catalogue.title)

  const bodies: Record<string, unknown> = {}
  for (const { name, path, example } of operations) {
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, parameter) => example.path[parameter] ?? '')
    const { status, body } = await get(`${filled}?${new URLSearchParams(example.query)}`)
    if (status !== 200) throw new Error(`${filled} is ${status}`)
    // The id of a key is random.
    bodies[name] = name === 'key' ? { ...body, id: 'key_9hK2mPq4XyZa' } : body
  }

  const revoked = await gateway.administration.createKey('Revoked', 'free')
  await gateway.administration.revokeKey(revoked.id)
  const gone = await gateway.administration.createKey('Gone', 'free')
  await gateway.administration.revokeSubscriber('Gone')
  const { trial = '', slow = '' } = gateway.keys
  await get('/locations?type=division', { key: slow })
  const boundBy = async (restrictions: object) => {
    const { id, key } = await gateway.administration.createKey('Bound', 'free')
    await gateway.administration.setKey(id, { restrictions })
    return key
  }
  const ofPage = await boundBy({ origins: ['https://app.example.org'] })
  const ofOffice = await boundBy({ addresses: ['203.0.113.0/24'] })
  const ofPlaces = await boundBy({ endpoints: ['locations', 'location'] })
  const tries: readonly [string, RequestOptions?][] = [
    ['/weather?places=district/3026,district/2015', { key: trial }],
    ['/locations?type=division', { key: trial }],
    ['/weather/district/3026', { key: ofPage }],
    ['/weather/district/3026', { key: ofOffice }],
    ['/weather/district/3026', { key: ofPlaces }],
    ['/weather/district/3026', { key: null }],
    ['/weather/district/3026', { key: 'sk_live_abc' }],
    ['/weather/district/3026', { key: good.slice(0, -3) }],
    ['/weather/district/3026', { key: createKey() }],
    ['/weather/district/3026', { key: revoked.key }],
    ['/weather/district/3026', { key: gone.key }],
    ['/weather/district/3026', { key: trial }],
    ['/weather/district/3026', { key: slow }],
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
  const errors: Record<string, unknown> = {}
  for (const [path, options] of tries) {
    const { status, body } = await get(path, options)
    if (status === 200) continue
    if (errors[body.code] !== undefined) throw new Error(`${path} is ${body.code} too`)
    errors[body.code] = body
  }
  await provider.steer({ fault: 'internal-error' })
  const failing = await get('/weather/coords/21.0/90.0')
  errors[failing.body.code] = failing.body
  const failures = Object.keys(failureSentences).filter(code => errors[code] === undefined)
  for (const sentence of [...Object.values(untried), ...failures.map(failureSentence)])
    errors[sentence.code] = JSON.parse(bodyOf(sentence))
  const missing = Object.keys(errorMeanings).filter(code => errors[code] === undefined)
  if (missing.length > 0) throw new Error(`no example of ${missing.join(', ')}`)

  const document = openApiDocument({
    bounds: catalogue.bounds,
    area: catalogue.title,
    examples: { bodies, errors },
  })
  return `${JSON.stringify(document, null, 2)}\n`
}

if (import.meta.main) {
  await using started = new AsyncDisposableStack()
  writeFileSync(
    documentFile,
    await documentText({ teardown: fn => started.defer(async () => void (await fn())) }),
  )
}
