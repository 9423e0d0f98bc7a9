// Without it, the reference could bypass the limits of strangers, or its forms could fail in a browser.

import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import t from 'tap'
import { request } from 'undici'
import { sampleOrigin } from '../../src/common/endpoints.ts'
import { markup } from '../../src/common/page/html.ts'
import { errors, proxyErrors } from '../../tools/reference/error-meanings.ts'
import { withoutBrowser as skip, startBrowser, untilSeen } from '../support/browser.ts'
import { startProvider } from '../support/provider.ts'
import { openRaw } from '../support/raw-connection.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { accessibilityFaults, colourRules, roomRules } from './accessibility.ts'

const provider = await startProvider(t)
const gateway = await startGateway(t, {
  providerUrl: provider.url,
  env: { ABOHAWA_QUOTA__TIERS__TRIAL: '5' },
})
const open = await startBrowser(t)

const fetchRaw = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
  const response = await request(gateway.apiUrl + path, { method: method as 'GET', headers })
  return {
    status: response.statusCode,
    headers: response.headers,
    bytes: Buffer.from(await response.body.arrayBuffer()),
  }
}

const committed = readFileSync('docs/openapi.json', 'utf8')

t.test('the document is the committed file, without a key, compressed and validated', async t => {
  const path = '/api/v1/openapi.json'
  const plain = await fetchRaw(path)
  t.equal(plain.status, 200)
  t.equal(plain.bytes.toString(), committed.replace(sampleOrigin, gateway.apiUrl))
  t.match(plain.headers, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-cache',
    'x-ratelimit-limit': '0',
    'x-request-id': /./,
  })
  const packed = await fetchRaw(path, { 'accept-encoding': 'gzip' })
  t.equal(packed.headers['content-encoding'], 'gzip')
  t.strictSame(gunzipSync(packed.bytes), plain.bytes)
  t.ok(packed.bytes.length < 60_000)
  const etag = String(plain.headers.etag)
  t.hasStrict(await fetchRaw(path, { 'if-none-match': etag }), { status: 304, bytes: Buffer.alloc(0) })
  const head = await fetchRaw(path, {}, 'HEAD')
  t.hasStrict(head, { status: 200, headers: { 'content-length': String(plain.bytes.length) } })
})

t.test('the document names the scheme and host of each request, and keeps none of them', async t => {
  const path = '/api/v1/openapi.json'
  const proxied = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_SERVER__TRUSTED_PROXIES: '127.0.0.1' },
  })
  const named = async (at: string, headers: Record<string, string>) => {
    const response = await request(at + path, { headers: { 'accept-encoding': 'gzip', ...headers } })
    const bytes = gunzipSync(Buffer.from(await response.body.arrayBuffer()))
    return { etag: response.headers.etag, urls: JSON.parse(bytes.toString()).servers.map(urlOf) }
  }
  const urlOf = ({ url }: { url: string }) => url
  const [one, other] = [
    await named(gateway.apiUrl, { host: 'a.example:81' }),
    await named(gateway.apiUrl, { host: '[::1]:8' }),
  ]
  t.strictSame([...one.urls, ...other.urls], ['http://a.example:81', 'http://[::1]:8'])
  t.not(one.etag, other.etag)
  t.hasStrict(await sendRequest(`${proxied.apiUrl}/docs`), { status: 400, body: { code: 'https_required' } })
  const https = { host: 'b.example', 'x-forwarded-proto': 'https' }
  t.strictSame((await named(proxied.apiUrl, https)).urls, ['https://b.example'])
  const hostBehind = async (given: string, at = proxied) =>
    (await named(at.apiUrl, { ...https, 'x-forwarded-host': given })).urls
  t.strictSame(await hostBehind('c.example:8443'), ['https://c.example:8443'], 'the host that a proxy names')
  t.strictSame(await hostBehind('c.example, b.example'), ['https://c.example'], 'the first of a chain')
  t.strictSame(await hostBehind('c.example/"x'), ['https://b.example'], 'what is no host is not read')
  t.strictSame(await hostBehind('c.example', gateway), ['http://b.example'], 'nor what anyone else names')
  const raw = await openRaw(t, gateway.apiUrl)
  raw.send(`GET ${path} HTTP/1.0\r\n\r\n`)
  const [nameless] = await raw.answersToTheEnd()
  t.match(nameless?.body, `"url": "${sampleOrigin}"`, 'a request that names no host')
})

t.test('the page has a row with cause and remedy for each code, in both languages', async t => {
  for (const [at, language] of ['en', 'bn'].entries()) {
    const page = (await fetchRaw(`/docs?lang=${language}`)).bytes.toString()
    for (const [code, { meaning }] of Object.entries({ ...errors, ...proxyErrors })) {
      const [, rest = ''] = page.split(`<tr><th scope="row"><a id="error-${code}" href="#error-${code}">`)
      const [row = ''] = rest.replaceAll(/<code[^>]*>|<\/code>/g, '`').split('</tr>')
      t.ok(row.includes(`<td>${markup(meaning[at] ?? '')}`), code)
    }
  }
  t.match((await gateway.get('/nothing')).body.doc_url, /\/docs#error-path_not_found$/)
})

t.test('server.publicUrl is named instead, with its path, by document, page and programs', async t => {
  const { apiUrl } = await startGateway(t, {
    providerUrl: provider.url,
    env: { ABOHAWA_SERVER__PUBLIC_URL: 'https://example.org/weather/' },
  })
  const textOf = async (path: string) =>
    (await (await request(apiUrl + path)).body.text()).replace(/ data-origin="[^"]*"/, '')
  const url = 'https://example.org/weather'
  const refused = await sendRequest(`${apiUrl}/api/v1/locations`)
  t.equal(refused.body.doc_url, `${url}/docs#error-key_missing`)
  t.equal(await textOf('/api/v1/openapi.json'), committed.replaceAll(sampleOrigin, url))
  const page = await textOf('/docs?lang=en')
  t.match(page, `ABOHAWA_URL:-${url}}/api/v1/weather/district/3026`)
  t.notMatch(page, sampleOrigin)
})

t.test('the page and its files are open and strict; what lies beside them needs a key as before', async t => {
  const page = await fetchRaw('/docs?lang=en')
  t.hasStrict(page.headers, {
    'content-type': 'text/html; charset=utf-8',
    'content-language': 'en',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
  })
  const files = [...page.bytes.toString().matchAll(/(?:src|href)="([^"#][^"]*)"/g)].map(
    ([, path]) => path ?? '',
  )
  t.ok(files.length >= 4)
  for (const file of files) {
    t.notMatch(file, /^\//, 'relative, for a proxy may serve it under a path')
    t.equal((await fetchRaw(new URL(file, 'http://x/docs').href.slice('http://x'.length))).status, 200, file)
  }
  for (const [language, lang] of [
    ['bn-BD,bn;q=0.9,en;q=0.8', 'bn'],
    ['fr', 'en'],
    // Longer than what is read.
    ['bn,'.padEnd(257, 'x'), 'en'],
  ] as const)
    t.equal((await fetchRaw('/docs', { 'accept-language': language })).headers['content-language'], lang)
  const repeated = await fetchRaw('/docs?lang=xx&lang=bn', { 'accept-language': 'bn' })
  t.equal(repeated.headers['content-language'], 'bn')

  for (const [path, location] of Object.entries({
    '/': 'docs',
    '/docs/': '../docs',
    '/docs/?lang=bn': '../docs',
    '/openapi.json': 'api/v1/openapi.json',
  })) {
    const { status, headers, bytes } = await fetchRaw(path)
    t.strictSame([status, headers.location, bytes.length], [308, location, 0], path)
  }
  for (const path of ['/docs//', '/docs/page.ts', '/docs/../locations', '/api/v1/openapi', '//', '/api/v1'])
    t.equal((await fetchRaw(path)).status, 401, path)
  for (const path of ['/docs', '/api/v1/openapi.json', '/', '/docs/'])
    for (const method of ['POST', 'OPTIONS']) t.equal((await fetchRaw(path, {}, method)).status, 401)
})

t.test('no request for the reference counts, with a key or without', async t => {
  const key = gateway.keys.trial ?? ''
  for (let i = 0; i < 8; i++) t.equal((await fetchRaw('/docs', { 'x-api-key': key })).status, 200)
  const { headers } = await gateway.get('/locations?type=division', { key })
  t.equal(headers['x-ratelimit-remaining'], '4')
  const series = (status: number) =>
    `http_server_request_duration_seconds_count{endpoint="reference",status="${status}"}`
  t.ok(((await gateway.metric(series(200))) ?? 0) > 8)
  t.equal(await gateway.metric(series(429)), 0, 'a series that nothing has met yet')
})

t.test('a request is sent with the typed key, and nothing keeps the key', { skip }, async t => {
  const page = await open({}, t)
  await page.goto(`${gateway.apiUrl}/docs?lang=en`)
  const form = page.locator('#getWeather form')
  const status = form.locator('.status')
  await form.getByRole('button', { name: 'Send' }).click()
  await untilSeen('it is refused', async () => /^Status 401/.test(await status.innerText()))
  t.match(await form.locator('.answer').innerText(), /"code": "key_missing"/)
  const key = gateway.keys.enterprise ?? ''
  // By keyboard alone.
  await page.getByLabel('Your API key').focus()
  // The last key is enough to show that each one is heard: the page writes all its programs anew at each.
  await page.keyboard.insertText(key.slice(0, -1))
  await page.keyboard.press(key.slice(-1))
  await form.getByLabel('id').focus()
  await page.keyboard.press('Enter')
  await untilSeen('it is answered', async () => /^Status 200/.test(await status.innerText()))
  t.match(await form.locator('.headers').innerText(), /^x-ratelimit-remaining: \d+$/m)
  t.hasStrict(JSON.parse(await form.locator('.answer').innerText()), { location: { name: 'Dhaka' } })
  t.equal(await form.locator('.url').innerText(), 'GET /api/v1/weather/district/3026?lang=en')

  const results = await page.evaluate(
    `[...document.querySelectorAll('#getWeather .result > *')].map(each => each.className)`,
  )
  t.strictSame(results, ['url', 'status', 'answer', 'headers'], 'status and body come first')

  const list = page.locator('#listLocations form')
  t.equal(await list.getByLabel('API key').inputValue(), key, 'what was typed is in reach at each form')
  const programs = (await page.locator('.program').allTextContents()).join()
  t.ok(programs.includes(gateway.apiUrl), 'programs name the origin of the page')
  t.notMatch(programs, /127\.0\.0\.1:8080/)
  await list.getByLabel('q', { exact: true }).fill('ঢাকা &')
  await list.getByRole('button').click()
  await untilSeen('the list is there', async () =>
    /^Status 200/.test(await list.locator('.status').innerText()),
  )
  t.match(await list.locator('.url').innerText(), /q=%E0%A6%A2%E0%A6%BE%E0%A6%95%E0%A6%BE\+%26/)

  const kept = await page.evaluate(
    `JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, history.state])`,
  )
  t.equal(kept, JSON.stringify([{}, {}, '', `${gateway.apiUrl}/docs?lang=en`, null]))
  await page.reload()
  t.equal(await page.getByLabel('Your API key').inputValue(), '', 'gone with the page')
  t.notOk(page.asked.some(url => url.includes(key)))
  t.ok(
    page.asked.every(url => url.startsWith(`${gateway.apiUrl}/`)),
    'nothing from elsewhere',
  )
  t.ok(page.complaints.every(each => /401 \(Unauthorized\)/.test(each)))
})

t.test('each language is a link away, and in Bengali nothing but names is English', { skip }, async t => {
  // The page is whole without a script too.
  const bare = await open({ javaScriptEnabled: false }, t)
  await bare.goto(`${gateway.apiUrl}/docs?lang=en`)
  const text = await bare.locator('main').innerText()
  for (const word of ['temperature_2m', 'quota_exhausted', 'retry-after']) t.ok(text.includes(word), word)

  const page = await open({ locale: 'bn-BD' }, t)
  await page.goto(`${gateway.apiUrl}/docs`)
  const english = await page.evaluate(`(() => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const found = []
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      if (/[A-Za-z]{3}/.test(node.textContent) && !node.parentElement.closest('[lang=en], noscript, script, option, summary')) found.push(node.textContent)
    return found
  })()`)
  const names =
    /API|OpenAPI|Open-Meteo|CC BY|HTTPS?|HEAD|GET|OPTIONS|URL|UTF|BBS|WMO|IANA|IETF|RFC|WGS|HTTP|KiB|UTC|Unix|null|CONNECT|svc_live_|bn|en|chunked|host|transfer-encoding|lang|type|division|district|upazila|union|retry-after|x-request-id|x-api-key|if-none-match|accept-encoding|x-api|lat|lng|id|q/g
  t.strictSame(
    (english as string[]).filter(text => /[A-Za-z]{3}/.test(text.replaceAll(names, ''))),
    [],
  )
  await page.getByRole('link', { name: 'English' }).click()
  t.equal(await page.evaluate('document.documentElement.lang'), 'en')
})

// One page, whose language, theme and size change.
let opened: ReturnType<typeof open> | undefined
// All rules on either width and in either language; in the other pairs of these what only the pair or its theme can break.
for (const [lang, colorScheme, width, rules] of [
  ['en', 'light', 1280, undefined],
  ['bn', 'dark', 1280, [...colourRules, ...roomRules]],
  ['en', 'dark', 390, [...colourRules, ...roomRules]],
  ['bn', 'light', 390, undefined],
] as const)
  t.test(`axe-core finds nothing: ${lang}, ${colorScheme}, ${width} pixels`, { skip }, async t => {
    opened ??= open({ reducedMotion: 'reduce' })
    const page = await opened
    await page.setViewportSize({ width, height: 844 })
    await page.emulateMedia({ colorScheme })
    await page.goto(`${gateway.apiUrl}/docs?lang=${lang}`)
    await page.locator('#getLocation form button').click()
    await untilSeen('it is answered', () => page.locator('#getLocation .answer').innerText())
    await page.evaluate(
      `for (const each of document.querySelectorAll('details:not([name])')) each.open = true`,
    )
    t.strictSame(await accessibilityFaults(page, rules), [])
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'nothing beyond the edge')
    t.ok(
      await page.evaluate(`(() => {
        const answer = document.querySelector('#getLocation .answer')
        return answer.scrollWidth <= answer.clientWidth
      })()`),
      'the sentence is whole',
    )
  })
