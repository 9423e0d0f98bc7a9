// Without it the traffic of load tests could hold requests that the API refuses, or bad ones that it accepts.

import t from 'tap'
import { endpointNames } from '../../src/common/endpoints.ts'
import { generate } from '../../tools/load/traffic/generate/generate.ts'
import type { TrafficRequest } from '../../tools/load/traffic/traffic-request.ts'
import { forAll } from '../scenarios/set-up.ts'
import { plentyOfQuota } from '../support/gateway-env.ts'
import { startProviderHere } from '../support/provider.ts'
import { startGateway } from '../support/start-gateway.ts'
import { wholeCatalogue } from '../support/usual-catalogue.ts'
import {
  generated,
  noEndpoints,
  productWorld,
  usualSettings,
} from '../tools/load/traffic/generated-traffic.ts'

const provider = await startProviderHere(t)
const env = { ...plentyOfQuota, ABOHAWA_CATALOGUE__PATH: wholeCatalogue, ABOHAWA_LOG__ACCESS: 'false' }
const gateway = await startGateway(t, { providerUrl: provider.url, env })

const prefix = '/api/v1'
const send = ({ path, key }: TrafficRequest, headers: Record<string, string> = {}) =>
  gateway.get(path.slice(prefix.length), { headers, ...(key === undefined ? { key: null } : {}) })
const distinct = (requests: readonly TrafficRequest[]): TrafficRequest[] => [
  ...new Map(requests.map(request => [`${request.path} ${request.key === undefined}`, request])).values(),
]

t.test('every path that is not bad is answered, and with its etag again by 304', async t => {
  for (const endpoint of endpointNames) {
    const mix = { ...noEndpoints, [endpoint]: 1 }
    const requests = distinct(generated({ mix, bad: 0, alpha: 0.3, rate: 0.001 }))
    t.ok(requests.length > 30, `${endpoint}: ${requests.length} paths`)
    const odd: string[] = []
    await forAll(requests, 16, async request => {
      const { status, headers } = await send(request)
      const again = await send(request, { 'if-none-match': headers.etag ?? '' })
      if (status !== 200 || again.status !== 304) odd.push(`${request.path}: ${status}, then ${again.status}`)
    })
    t.strictSame(odd, [])
  }
})

t.test('searches find what they are for', async t => {
  const mix = { ...noEndpoints, locations: 1 }
  const searches = distinct(generated({ mix, bad: 0, rate: 0.004 })).filter(({ path }) => /[?&]q=/.test(path))
  t.ok(searches.length > 30)
  for (const search of searches) t.ok((await send(search)).body.total > 0, search.path)
})

t.test('bad requests are refused: 400, 401 and 404, each code that is meant', async t => {
  const requests = distinct(generated({ bad: 1, rate: 0.01 }))
  const codes = new Map<string, number>()
  await forAll(requests, 16, async request => {
    const { status, body } = await send(request)
    const code = `${status} ${body.code}`
    codes.set(code, (codes.get(code) ?? 0) + 1)
  })
  t.strictSame([...codes.keys()].sort(), [
    '400 degrees_invalid',
    '400 lang_invalid',
    '400 number_invalid',
    '400 point_out_of_bounds',
    '400 type_invalid',
    '401 key_missing',
    '404 path_not_found',
    '404 place_not_found',
  ])
})

t.test('points stay within the bounds of the catalogue', async t => {
  const mix = { ...noEndpoints, coords: 1 }
  const narrow = { south: 23.7, north: 23.8, west: 90.3, east: 90.4 }
  const settings = { ...usualSettings, mix, bad: 0, rate: 0.01 }
  for (const { path } of generate(settings, { ...productWorld, bounds: narrow })) {
    const [, lat = '', lng = ''] = /coords\/([^/]+)\/([^?]+)/.exec(path) ?? []
    if (Number(lat) < 23.7 || Number(lat) > 23.8 || Number(lng) < 90.3 || Number(lng) > 90.4) t.fail(path)
  }
})
