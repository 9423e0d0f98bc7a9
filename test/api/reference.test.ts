// Without it the open pages could be in the wrong language, name another address, let other sites in, or be missing.

import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { createReference, languageOf } from '../../src/api/served-reference.ts'
import { sampleOrigin } from '../../src/common/endpoints.ts'
import type { ServiceStatus } from '../../src/telemetry/service-status.ts'
import { goodKey, startApp } from './api-app.ts'

t.test('the language is that of the query, else the preferred one of the browser, else English', t => {
  for (const [query, accepted, language] of [
    ['', undefined, 'en'],
    ['lang=bn', 'en', 'bn'],
    ['lang=en', 'bn', 'en'],
    ['lang=fr', 'bn', 'bn'],
    ['', 'bn-BD,bn;q=0.9,en;q=0.8', 'bn'],
    ['', 'en-GB,bn;q=0.9', 'en'],
    ['', 'fr', 'en'],
    ['', '*', 'en'],
    ['', 'bn,'.padEnd(256, 'x'), 'bn'],
    ['', 'bn,'.padEnd(257, 'x'), 'en'],
  ] as const)
    t.equal(languageOf(query, accepted), language, `${query} ${accepted?.slice(0, 30)}`)
  t.end()
})

t.test('the pages are open, take no unit, and let in nothing from elsewhere', async t => {
  const app = await startApp(t)
  const page = await app.inject('/docs', { 'accept-language': 'bn' })
  t.hasStrict(page.headers, {
    ...{ 'content-language': 'bn', 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' },
    ...{ vary: 'accept-encoding, accept-language', 'referrer-policy': 'no-referrer' },
    'content-security-policy': [
      ...["default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"],
      ...["form-action 'none'; frame-ancestors 'none'; base-uri 'none'"],
    ].join('; '),
    'x-ratelimit-limit': '0',
  })
  t.match(page.bytes.toString(), '<html lang="bn"')
  t.match((await app.inject('/docs?lang=en', {})).bytes.toString(), '<html lang="en"')
  t.hasStrict(app.answered.at(-1), { endpoint: 'reference', status: 200, keyId: undefined })
  const headers = { 'if-none-match': page.headers.etag ?? '', 'accept-language': 'bn' }
  t.equal((await app.inject('/docs', headers)).status, 304)
  const file = await app.inject('/docs/reference.js', {}, 'HEAD')
  t.hasStrict(file, { status: 200, headers: { vary: 'accept-encoding', 'cache-control': 'no-cache' } })
  t.equal(file.bytes.length, 0)
  t.strictSame(app.decisions, [], 'no key is read')
  t.equal((await app.inject('/docs', { 'x-api-key': goodKey }, 'POST')).status, 405)
})

t.test('people who guess where the reference is are led there, also behind the path of a proxy', async t => {
  const { inject } = await startApp(t)
  for (const [path, location] of [
    ['/', 'docs'],
    ['/docs/', '../docs'],
    ['/openapi.json', 'api/v1/openapi.json'],
  ] as const)
    for (const method of ['GET', 'HEAD'])
      t.hasStrict(await inject(`${path}?x`, {}, method), {
        status: 308,
        headers: { location, 'cache-control': 'no-cache', 'content-length': '0' },
      })
})

t.test('the reference names the public address, or else the one that was asked', async t => {
  const own = 'https://weather.example/<x>'
  const [here, there] = [await startApp(t), await startApp(t, {}, { publicUrl: own })]
  const textOf = async ({ inject }: typeof here, path: string) => (await inject(path, {})).bytes.toString()
  t.match(await textOf(here, '/docs'), sampleOrigin)
  t.notMatch(await textOf(there, '/docs'), sampleOrigin)
  t.match(await textOf(there, '/docs'), 'https://weather.example/&lt;x&gt;')
  t.notMatch(await textOf(there, '/api/v1/openapi.json'), sampleOrigin)
  const documentAt = (host: string) =>
    here.inject('/api/v1/openapi.json', { host, 'accept-encoding': 'gzip' })
  const [one, other] = [await documentAt('one.example'), await documentAt('other.example:8080')]
  t.not(one.headers.etag, other.headers.etag)
  t.equal(JSON.parse(gunzipSync(other.bytes).toString()).servers[0].url, 'http://other.example:8080')
  t.equal(
    gunzipSync(one.bytes).toString(),
    (await here.inject('/api/v1/openapi.json', { host: 'one.example' })).bytes.toString(),
  )
  const serve = createReference(null)
  const asked = { path: '/api/v1/openapi.json', query: '', acceptLanguage: undefined, address: undefined }
  const { chunks } = await serve(asked)
  t.equal(JSON.parse(Buffer.concat([...chunks]).toString()).servers[0].url, sampleOrigin)
  await t.rejects(serve({ ...asked, path: '/docs/none' }), { message: 'the reference has no /docs/none' })
})

t.test('the status page is there where it is on, and nowhere else', async t => {
  const status = async (): Promise<ServiceStatus> => ({
    ...{ at: 0, freshShare: null, medianAgeMs: null, oldestAgeMs: null, runAt: null },
    ...{ outSince: { provider: null, store: null }, days: [], incidents: [] },
  })
  const [on, off] = [await startApp(t, { status }), await startApp(t)]
  for (const [path, type] of [
    ['/status', 'text/html; charset=utf-8'],
    ['/status.json', 'application/json; charset=utf-8'],
    ['/status.css', 'text/css; charset=utf-8'],
  ] as const) {
    t.hasStrict(await on.inject(path, {}), { status: 200, headers: { 'content-type': type } })
    t.match(await off.inject(path, {}), { status: 401 })
  }
  const css = async (path: string) => (await on.inject(path, {})).bytes.toString()
  t.not(await css('/status.css'), await css('/docs/reference.css'))
  for (let i = 0; i < 300; i++) await on.inject('/status.json', {})
  for (const [path, name] of [
    ['/status', 'the status page'],
    ['/docs', 'the reference'],
  ] as const) {
    const error = `${name} may be requested 300 times a minute from one address`
    t.hasStrict(await on.inject(path, {}), { status: 429, body: { error } })
  }
})
