import t from 'tap'
import { routeOf } from '../../src/edge/routes.ts'

const found: [string, object][] = [
  ['/api/v1/weather/district/3026', { endpoint: 'weather', first: 'district', second: '3026' }],
  ['/api/v1/weather/district/3026?lang=en', { endpoint: 'weather', first: 'district', second: '3026' }],
  ['/api/v1/weather/coords/23.8/90.4', { endpoint: 'coords', first: '23.8', second: '90.4' }],
  ['/api/v1/weather/coords/23.8', { endpoint: 'weather', first: 'coords', second: '23.8' }],
  ['/api/v1/forecast/union/1?days=3', { endpoint: 'forecast', first: 'union', second: '1' }],
  ['/api/v1/locations', { endpoint: 'locations' }],
  ['/api/v1/locations?type=union', { endpoint: 'locations' }],
  ['/api/v1/locations/union/1', { endpoint: 'location', first: 'union', second: '1' }],
  ['http://gateway:80/api/v1/locations?type=union', { endpoint: 'locations' }],
  ['/api/v1/w%65ather/district/30%32%36', { endpoint: 'weather', first: 'district', second: '3026' }],
  ['/api/v1/locations/union/a%2Fb', { endpoint: 'location', first: 'union', second: 'a/b' }],
  ['/api/v1/weather/coords/%2B23.8/90.4', { endpoint: 'coords', first: '+23.8', second: '90.4' }],
]
for (const [url, route] of found)
  t.test(`${url} is an endpoint`, async t => {
    t.match(routeOf(url), route)
  })

const nowhere = [
  '',
  '/',
  '*',
  '/api/v1',
  '/api/v1/',
  '/api/v2/locations',
  '/api/v1/weather',
  '/api/v1/weather/district',
  '/api/v1/weather/district/',
  '/api/v1/weather//3026',
  '/api/v1/weather/district/3026/',
  '/api/v1/weather/district/3026/7',
  '/api/v1/weather/coords/23.8/',
  '/api/v1/weather/coords/23.8/90.4/',
  '/api/v1/weather/coords/23.8/90.4/1',
  '/api/v1/forecast/coords/23.8/90.4',
  '/api/v1/locations/',
  '/api/v1/locations/union',
  '/api/v1/Locations',
  '//api/v1/locations',
  '/api%2Fv1/locations',
  '/x%20y',
]
for (const url of nowhere)
  t.test(`${url} is nowhere, encoded or not`, async t => {
    const path = url.split('?')[0]
    t.match(routeOf(url), { endpoint: 'other', problem: { status: 404 } })
    // An encoded letter goes the other way through the same rules.
    if (url.includes('api/v1')) t.match(routeOf(String(path).replace('v1', '%761')), { endpoint: 'other' })
  })

t.test('what is not percent-encoded UTF-8 is a bad request, wherever it stands', async t => {
  for (const url of ['/%', '/api/v1/weather/district/%E0%A6', '/nothing/%zz?x=1'])
    t.match(routeOf(url), { endpoint: 'other', problem: { status: 400, message: /percent-encoded/ } })
})
