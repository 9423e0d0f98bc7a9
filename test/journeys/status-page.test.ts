// Without it, the status page could be open unasked, wrong about outages or days, or reveal what operators know.

import { gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { request } from 'undici'
import { withoutBrowser as skip, startBrowser } from '../support/browser.ts'
import { type ManualClock, manualClock } from '../support/manual-clock.ts'
import { startProviderHere } from '../support/provider.ts'
import { patientRedisEnv, startRedis, testRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { sendRequest, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { accessibilityFaults, colourRules } from './accessibility.ts'

const minute = 60_000
const provider = await startProviderHere(t)
const open = await startBrowser(t)
t.beforeEach(() => provider.steer({ fault: 'none', reset: true }))

const on = { ABOHAWA_SERVER__STATUS_PAGE: 'true' }
const start = (t: Test, clock: ManualClock, env: Record<string, string> = {}) =>
  startGateway(t, { providerUrl: provider.url, clock, env: { ...on, ...env } })

/** What it says now; the page is made anew after some seconds. */
const statusOf = async ({ apiUrl }: TestGateway, clock?: ManualClock) => {
  clock?.advance(5_000)
  return (await sendRequest(`${apiUrl}/status.json`)).body
}
const dhaka = '/weather/district/3026'
const elsewhere = '/weather/district/2015'

t.test('without its setting nothing is there, and a key is asked for as before', async t => {
  const gateway = await startGateway(t, { providerUrl: provider.url })
  for (const path of ['/status', '/status.json', '/status.css'])
    t.has(await sendRequest(gateway.apiUrl + path), { status: 401, body: { code: 'key_missing' } }, path)
  const key = gateway.keys.free ?? ''
  t.match(await sendRequest(`${gateway.apiUrl}/status`, { key }), { status: 404 })
})

t.test('it is open, uncounted, compressed and validated, as the reference is', async t => {
  const env = { ABOHAWA_QUOTA__TIERS__TRIAL: '5', ABOHAWA_SERVER__CORS__ORIGINS: 'https://app.example' }
  const gateway = await start(t, manualClock(), env)
  const get = async (path: string, headers: Record<string, string> = {}) => {
    const response = await request(gateway.apiUrl + path, { headers })
    const bytes = Buffer.from(await response.body.arrayBuffer())
    return { status: response.statusCode, headers: response.headers, bytes }
  }
  const key = gateway.keys.trial ?? ''
  for (let i = 0; i < 8; i++) t.equal((await get('/status', { 'x-api-key': key })).status, 200)
  const { headers: counted } = await gateway.get('/locations?type=division', { key })
  t.equal(counted['x-ratelimit-remaining'], '4')

  const [page, json] = [await get('/status?lang=en'), await get('/status.json')]
  t.match(page.headers, {
    'content-type': 'text/html; charset=utf-8',
    'content-language': 'en',
    'cache-control': 'no-cache',
    refresh: '60',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'content-security-policy': /^default-src 'none'/,
    vary: /accept-language/,
  })
  t.has(json.headers, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-cache' })
  t.match(await get('/status.json', { 'if-none-match': String(json.headers.etag) }), { status: 304 })
  const packed = await get('/status?lang=en', { 'accept-encoding': 'gzip' })
  t.equal(packed.headers['content-encoding'], 'gzip')
  t.strictSame(gunzipSync(packed.bytes), page.bytes)
  t.equal((await get('/status', { 'accept-language': 'bn-BD' })).headers['content-language'], 'bn')
  const { headers: allowed } = await get('/status.json', { origin: 'https://app.example' })
  t.equal(allowed['access-control-allow-origin'], 'https://app.example')
  const links = [...page.bytes.toString().matchAll(/(?:src|href)="([^"#][^"]*)"/g)].map(([, to]) => to ?? '')
  t.ok(links.length >= 6)
  for (const link of links) {
    t.notMatch(link, /^\//, 'relative, for a proxy may serve it under a path')
    t.equal((await get(new URL(link, 'http://x/status').href.slice('http://x'.length))).status, 200, link)
  }
})

t.test('one address may ask for it as often as for the reference, and is told what it asked for', async t => {
  const gateway = await start(t, manualClock())
  const busy = []
  for (let i = 0; i < 310; i++) {
    const { statusCode, body } = await request(`${gateway.apiUrl}/status.json`)
    const text = await body.text()
    if (statusCode === 429) busy.push(JSON.parse(text))
  }
  t.equal(busy.length, 10)
  const error = /^the status page may be requested 300 times a minute/
  t.match(busy[0], { error, code: 'reference_busy' })
})

t.test('it says how fresh the weather in demand is, and nothing that is internal', async t => {
  const clock = manualClock()
  const gateway = await start(t, clock)
  t.hasStrict(await statusOf(gateway), {
    at: '2026-11-21T06:00:00.000Z',
    weather: { fresh_share: null, median_age_seconds: null, oldest_age_seconds: null, model_run: null },
    outages: [],
  })
  await gateway.get(dhaka)
  clock.advance(40 * minute)
  await gateway.get(elsewhere)
  await gateway.get(elsewhere.replace('2015', '3026'))
  t.match(await statusOf(gateway, clock), {
    weather: { fresh_share: 1, median_age_seconds: 0, oldest_age_seconds: 40 * 60 },
  })
  await provider.steer({ fault: 'internal-error' })
  clock.advance(45 * minute)
  await gateway.get(dhaka)
  const later = await statusOf(gateway, clock)
  t.match(later.weather, { fresh_share: 0.5, median_age_seconds: 45 * 60, oldest_age_seconds: 85 * 60 })
  const { text } = await sendRequest(`${gateway.apiUrl}/status?lang=en`)
  const { host, pid } = (await sendRequest(`${gateway.opsUrl}/status`)).body.instances[0]
  for (const secret of [provider.url, gateway.opsUrl, host, String(pid), ...Object.values(gateway.keyIds)])
    t.notOk(text.includes(secret) || JSON.stringify(later).includes(secret), secret)
  t.strictSame(Object.keys(later), ['at', 'weather', 'outages', 'days'])
})

t.test('an outage is shown by each gateway of a fleet, ends, and stays in its day', async t => {
  const clock = manualClock()
  const redis = await testRedis(t)
  const env = {
    ...redis.env,
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER: '200ms',
    ABOHAWA_TEST_PROVIDER__BREAKER__HALF_OPEN_AFTER_AT_MOST: '400ms',
  }
  const [one, other] = [await start(t, clock, env), await start(t, clock, env)]
  for (const gateway of [one, other]) for (let i = 0; i < 3; i++) await gateway.get(dhaka)
  t.match(await statusOf(other, clock), { outages: [], days: [{ availability: 1 }] })

  await provider.steer({ fault: 'internal-error' })
  for (const id of ['3026', '2015', '1006', '4041', '5081', '6075']) await one.get(`/weather/district/${id}`)
  const since = '2026-11-21T06:00:00.000Z'
  t.hasStrict(await statusOf(one, clock), { outages: [{ of: 'weather', since }] })
  await until('the other gateway shows it', async () => {
    const { outages } = await statusOf(other, clock)
    return outages[0]?.of === 'weather' && outages[0]?.since === since
  })
  const rows = async () => (await sendRequest(`${other.opsUrl}/status`)).body.instances
  t.match(
    (await rows()).find(({ isSelf }: { isSelf: boolean }) => !isSelf),
    { circuit: /open/, outages: [{ outage: 'provider' }] },
    'operators see whose it is',
  )
  const began = clock.now()
  clock.advance(12 * minute)
  await one.get('/weather/district/8000')
  const during = await statusOf(one, clock)
  t.match(during.days[0], { outage_minutes: { weather: /^1[2-9]$/, quotas: 0 } })
  t.ok(during.days[0].availability < 1, String(during.days[0].availability))

  await provider.steer({ fault: 'none' })
  await until('it is over', async () => {
    clock.advance(minute)
    await one.get(elsewhere)
    return (await statusOf(one, clock)).outages.length === 0
  })
  await until('for the other one too', async () => (await statusOf(other, clock)).outages.length === 0)
  const atMost = Math.ceil((clock.now() - began) / minute) + 2
  clock.advance(minute)
  await statusOf(one, clock)
  const inDay = await until('the other has read the record', async () => {
    clock.advance(minute)
    const [{ outage_minutes, availability }] = (await statusOf(other, clock)).days
    return outage_minutes.weather >= 12 && { minutes: outage_minutes.weather, availability }
  })
  t.ok(inDay.minutes <= atMost, `${inDay.minutes} minutes, at most ${atMost}`)
  t.ok(inDay.availability < 1)
  await Promise.all([one.close(), other.close()])
  const next = await start(t, clock, env)
  t.has((await statusOf(next)).days, [{ day: '2026-11-21', outage_minutes: { weather: inDay.minutes } }])
})

t.test('the model run is one that was read, also when none can be read for long', async t => {
  const clock = manualClock('2026-11-21T12:40:00Z')
  const own = await startProviderHere(t, { runs: 'ecmwf', seed: 1 }, '2026-11-21T12:40:00Z')
  const gateway = await startGateway(t, {
    providerUrl: own.url,
    clock,
    env: {
      ABOHAWA_SERVER__STATUS_PAGE: 'true',
      ABOHAWA_CACHE__FRESHNESS: 'run',
      // In which the newest run is read.
      ABOHAWA_TEST_CACHE__WARM_FOR: '1m',
    },
  })
  const { weather } = await statusOf(gateway, clock)
  t.type(weather.model_run, 'string')
  await own.steer({ fault: 'reset' })
  clock.advance(20 * 60 * minute)
  t.equal((await statusOf(gateway, clock)).weather.model_run, weather.model_run)
  const { run } = (await sendRequest(`${gateway.opsUrl}/status`)).body
  t.equal(run.initialisedAt, weather.model_run)
})

t.test('an outage of the store is one of keys and quotas', { skip: withoutOwnRedis }, async t => {
  const clock = manualClock()
  const redis = await startRedis(t)
  const gateway = await start(t, clock, { ...patientRedisEnv, ABOHAWA_REDIS__URL: redis.url })
  await gateway.get(dhaka)
  await redis.kill()
  await until('it is shown', async () => (await statusOf(gateway, clock)).outages[0]?.of === 'quotas')
  const pageText = async (lang: string) => (await sendRequest(`${gateway.apiUrl}/status?lang=${lang}`)).text
  t.match(await pageText('bn'), /<h2>এপিআই কী ও কোটায় সমস্যা হচ্ছে<(.|\n)*<p>১২:০০ থেকে \(চলমান\)</)
  clock.advance(7 * minute)
  await redis.start()
  const { days } = await until('it is over', async () => {
    const status = await statusOf(gateway, clock)
    return status.outages.length === 0 && status
  })
  t.match(days[0].outage_minutes, { weather: 0, quotas: /^([7-9]|[1-9]\d)$/ })
  const after = await pageText('en')
  t.match(after, '<h2>All systems operational</h2>')
  t.match(after, /<h3>API keys and quotas affected<\/h3><p>21 Nov 2026, 12:00 to 12:\d\d \(\d+ min\)</)
  t.notMatch(after, 'ongoing')
})

t.test('the page needs no script, and has the other language a link away', { skip }, async t => {
  const gateway = await start(t, manualClock())
  await gateway.get(dhaka)
  const page = await open({ javaScriptEnabled: false, locale: 'en-GB' }, t)
  await page.goto(`${gateway.apiUrl}/status`)
  const main = page.locator('main')
  t.match(await main.innerText(), /^\s*All systems operational(.|\n)*Fresh cells\s+100%/)
  t.match(await main.innerText(), 'No incidents in the last 30 days.')
  t.match(await page.locator('h1').innerText(), 'As of 21 Nov 2026, 12:00. Time zone: Asia/Dhaka')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.waitForURL('**/status?lang=bn')
  t.match(await main.innerText(), /সব সেবা স্বাভাবিকভাবে চলছে(.|\n)*২১ নভে: ১০০% সচল, কোনো বিভ্রাট নেই/)
  const texts = await page.locator('body :not(:has(*)):not([lang=en])').allInnerTexts()
  t.strictSame(
    texts.filter(text => /[A-Za-z0-9]/.test(text)),
    [],
    'nothing in Latin letters but names',
  )
  t.strictSame(page.complaints, [])
  t.ok(page.asked.every(url => url.startsWith(`${gateway.apiUrl}/`)))
})

t.test('the strip has a bar for each day, one Tab stop, and the day in words', { skip }, async t => {
  const gateway = await start(t, manualClock())
  await gateway.get(dhaka)
  const page = await open({ javaScriptEnabled: false }, t)
  await page.goto(`${gateway.apiUrl}/status?lang=en`)
  const days = page.getByRole('radiogroup', { name: 'Last 30 days' }).getByRole('radio')
  t.equal(await days.count(), 30)
  const today = page.getByRole('radio', { name: '21 Nov: 100% available, no outage', checked: true })
  t.equal(await today.count(), 1)
  t.equal(await page.locator('.strip .good').count(), 1)
  t.equal(await page.locator('.strip .none').count(), 29, 'days without data are not good')
  await today.focus()
  await page.keyboard.press('ArrowLeft')
  const before = page.getByRole('radio', { name: '20 Nov: no data', checked: true })
  t.equal(await before.count(), 1)
  t.equal(
    await page.evaluate("getComputedStyle(document.querySelector('.strip :checked + span')).opacity"),
    '1',
  )
  await page.keyboard.press('Tab')
  t.not(await page.evaluate('document.activeElement.type'), 'radio')
})

t.test('axe-core finds nothing, and nothing is wider than the screen', { skip }, async t => {
  const clock = manualClock()
  const gateway = await start(t, clock)
  await gateway.get(dhaka)
  await provider.steer({ fault: 'internal-error' })
  for (const id of ['2015', '1006', '4041']) await gateway.get(`/weather/district/${id}`)
  t.equal((await statusOf(gateway, clock)).outages.length, 1)
  const page = await open({ reducedMotion: 'reduce' }, t)
  for (const [lang, colorScheme, width, rules] of [
    ['en', 'light', 1280, undefined],
    ['bn', 'dark', 390, undefined],
    ['en', 'dark', 1280, colourRules],
    ['bn', 'light', 390, colourRules],
  ] as const) {
    await page.setViewportSize({ width, height: 844 })
    await page.emulateMedia({ colorScheme })
    await page.goto(`${gateway.apiUrl}/status?lang=${lang}`)
    t.strictSame(await accessibilityFaults(page, rules), [], `${lang}, ${colorScheme}, ${width} pixels`)
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'nothing beyond the edge')
  }
})
