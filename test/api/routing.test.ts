// Without it an odd spelling of a URL could reach another endpoint, or an error without a reason.

import t from 'tap'
import { pathOf, routableUrl } from '../../src/api/request.ts'
import type { DecisionCallback } from '../../src/keys/count.ts'
import { startApp } from './api-app.ts'

const found: [string, string][] = [
  ['/api/v1/weather/district/3026', 'weather'],
  ['/api/v1/weather/district/3026?lang=en', 'weather'],
  ['/api/v1/weather/coords/23.8/90.4', 'coords'],
  ['/api/v1/weather/coords/%2B23.8/90.4', 'coords'],
  ['/api/v1/forecast/district/3026?days=3', 'forecast'],
  ['/api/v1/locations?type=union', 'locations'],
  ['/api/v1/locations/district/3026', 'location'],
  ['/api/v1/w%65ather/district/30%32%36', 'weather'],
]
const unlimited = {
  quota: {
    now: () => Date.parse('2026-11-21T06:05:00Z'),
    resetAfter: () => Date.parse('2026-11-21T18:00:00Z'),
    refund: () => 0,
    isExact: () => true,
    consume: (_client: object, _at: number, _units: number, callback: DecisionCallback) =>
      callback(undefined, { allowed: true, remaining: 1 }),
  },
}

t.test('every endpoint is reached under its own name', async t => {
  const app = await startApp(t, unlimited)
  for (const [url, endpoint] of found) {
    const { status } = await app.inject(url)
    t.equal(app.answered.at(-1)?.endpoint, endpoint, url)
    t.equal(app.answered.at(-1)?.url, url, 'the log has the URL as received')
    t.equal(status, 200, url)
  }
})

t.test('parameters are decoded, also a slash', async t => {
  const app = await startApp(t, unlimited)
  const { body } = await app.inject('/api/v1/locations/union/a%2Fb')
  t.equal(body.error, 'the union "a/b" was not found or is not published')
})

const nowhere = `
  // /api/v1 /api/v1/ /api/v2/locations /api/v1/weather /api/v1/weather/district /api/v1/weather/district/
  /api/v1/weather//3026 /api/v1/weather/district/3026/ /api/v1/weather/district/3026/7
  /api/v1/weather/coords/23.8/ /api/v1/weather/coords//90.4 /api/v1/weather/coords/23.8/90.4/
  /api/v1/weather/coords/23.8/90.4/1 /api/v1/forecast/coords/23.8/90.4 /api/v1/locations/
  /api/v1/locations/union /api/v1/Locations /api%2Fv1/locations /x%20y
`
t.test('everything else is 404, encoded or not, and lists the endpoints', async t => {
  const app = await startApp(t, unlimited)
  for (const url of nowhere.trim().split(/\s+/))
    for (const form of [url, url.replace('v1', '%761')]) {
      const { status, body } = await app.inject(form)
      t.equal(status, 404, form)
      t.equal(
        body.error,
        `there is nothing at "${form}"; the endpoints are /api/v1/weather/{type}/{id}, /weather/coords/{lat}/{lng}, /forecast/{type}/{id}, /weather?places=, /forecast?places=, /locations, /locations/{type}/{id} and /key`,
      )
      t.equal(app.answered.at(-1)?.endpoint, 'other')
    }
})

t.test('anything but percent-encoded UTF-8 is 400, wherever it is', async t => {
  const app = await startApp(t, unlimited)
  for (const url of ['/%', '/api/v1/weather/district/%E0%A6', '/nothing/%zz?x=1']) {
    const path = url.split('?')[0]
    t.hasStrict(await app.inject(url), {
      status: 400,
      body: { error: `the path must be percent-encoded UTF-8, got "${path}"` },
    })
  }
})

t.test('the router is given paths that it can look up, and one that no route has for all else', async t => {
  const urls: [string, string][] = [
    ['/api/v1/locations?type=union', '/api/v1/locations?type=union'],
    ['http://gateway:80/api/v1/locations?type=union', '/api/v1/locations?type=union'],
    ['HTTPS://gateway/x', '/x'],
    ['http://gateway/', '/'],
    ['/docs/?lang=bn', '/docs/?lang=bn'],
    ['/docs//', '//'],
    ['http://gateway', '//'],
    ['http://gateway?x=/api/v1/locations', '//'],
    ['http://gateway#/api/v1/locations', '//'],
    ['/a%20b?q=%zz#y', '/a%20b?q=%zz#y'],
    ['/a%zz', '//'],
    ['/a#b', '//'],
    ['*', '//'],
    ['', '//'],
    ['//api/v1/locations', '//'],
  ]
  for (const [url, routed] of urls) t.equal(routableUrl(url), routed, url)
  t.equal(pathOf('http://gateway:80/api/v1/locations?type=union'), '/api/v1/locations')
  t.equal(pathOf('/a#b?c'), '/a#b')
})
