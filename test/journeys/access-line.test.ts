// Without it a line of the access log could lack who asked, what was answered, or why a request was refused.

import t from 'tap'
import { createKey } from '../../src/keys/key-form.ts'
import { manualClock } from '../support/manual-clock.ts'
import { startProvider } from '../support/provider.ts'
import { openRaw } from '../support/raw-connection.ts'
import { type RequestOptions, startGateway, type TestGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t)

const lineOf = (gateway: TestGateway, requestId: string) =>
  until(`the line of ${requestId}`, () =>
    gateway.logged.find(line => line.msg === 'answered' && line.requestId === requestId),
  )

const path = '/weather/district/3026'
const clock = manualClock()
const gateway = await startGateway(t, { providerUrl: provider.url, clock })

t.test('hits by tier, encoding and condition', async t => {
  const get = async (id: string, headers: Record<string, string> = {}, more: RequestOptions = {}) => {
    const answer = await gateway.get(path, { headers: { 'x-request-id': id, ...headers }, ...more })
    return { answer, line: await lineOf(gateway, id) }
  }
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const cold = await get('cold', { traceparent: `00-${traceId}-00f067aa0ba902b7-01` })
  t.match(cold.line, {
    traceId,
    ...{ method: 'GET', url: `/api/v1${path}`, endpoint: 'weather', status: 200, httpVersion: '1.1' },
    ...{ keyId: gateway.keyIds.enterprise, tier: 'enterprise', client: '127.0.0.1' },
    ...{ cell: '23.7,90.4', cache: /^fwd=miss/, bytes: Buffer.byteLength(cold.answer.text) },
    arrivedAt: '2026-11-21T06:00:00.000Z',
  })
  for (const absent of ['encoding', 'notModified', 'reason', 'share']) t.notOk(absent in cold.line, absent)

  clock.advance(1_234)
  const zipped = await get('zipped', { 'accept-encoding': 'br' }, { key: gateway.keys.free ?? '' })
  t.match(zipped.line, {
    tier: 'free',
    encoding: 'br',
    bytes: Number(zipped.answer.headers['content-length']),
    cache: /detail=memory/,
    arrivedAt: '2026-11-21T06:00:01.234Z',
  })
  const etag = cold.answer.headers.etag ?? ''
  const known = await get('known', { 'if-none-match': etag, 'accept-encoding': 'br' })
  t.hasStrict(known.line, { status: 304, bytes: 0, notModified: true, cell: '23.7,90.4' })
  for (const absent of ['encoding', 'traceId']) t.notOk(absent in known.line, absent)
  t.match((await get('other', { 'if-none-match': '"x"' })).line, { status: 200, notModified: false })
  t.hasStrict((await get('head', {}, { method: 'HEAD' })).line, { method: 'HEAD', status: 200, bytes: 0 })
})

t.test('connection, request on it and version of HTTP', async t => {
  const send = async (count: number, version: string) => {
    const raw = await openRaw(t, gateway.apiUrl)
    const key = `x-api-key: ${gateway.keys.free}`
    const ids = Array.from({ length: count }, (_, i) => `${version}-${i + 1}`)
    for (const id of ids) {
      const headers = ['host: x', 'connection: keep-alive', `x-request-id: ${id}`, key]
      raw.send([`GET /api/v1/locations?type=division HTTP/${version}`, ...headers, '', ''].join('\r\n'))
      await raw.answer()
    }
    return Promise.all(ids.map(id => lineOf(gateway, id)))
  }
  const [first = {}, second = {}, third = {}] = await send(3, '1.1')
  t.equal(second.connection, first.connection)
  for (const [i, line] of [first, second, third].entries()) t.equal(line.connectionRequest, i + 1)
  const [old = {}] = await send(1, '1.0')
  t.hasStrict(old, { httpVersion: '1.0', connectionRequest: 1, connection: Number(first.connection) + 1 })
})

t.test('the client behind a trusted proxy, whole, as a network, or not at all', async t => {
  for (const [form, expected] of [
    ['full', '198.51.100.1'],
    ['prefix', '198.51.100.0/24'],
    ['none', undefined],
  ] as const) {
    const behind = await startGateway(t, {
      providerUrl: provider.url,
      env: { ABOHAWA_SERVER__TRUSTED_PROXIES: '127.0.0.1', ABOHAWA_LOG__CLIENT_ADDRESS: form },
    })
    const headers = {
      'x-forwarded-proto': 'https',
      'x-forwarded-for': '8.8.8.8, 198.51.100.1',
      'x-request-id': 'behind',
    }
    t.equal((await behind.get(path, { headers })).status, 200)
    t.equal((await lineOf(behind, 'behind')).client, expected)
  }
  await gateway.get(path, { headers: { 'x-forwarded-for': '198.51.100.1', 'x-request-id': 'bare' } })
  t.equal((await lineOf(gateway, 'bare')).client, '127.0.0.1', 'a client that is no proxy is not believed')
})

t.test('the reason of a refusal and of a failure, and the id of a key that is known', async t => {
  const { administration, keyIds, keys } = gateway
  const [rotated = '', expired = '', revoked = ''] = [keyIds.free, keyIds.business, keyIds.starter]
  const expires = new Date(clock.now() + 60_000).toISOString()
  await administration.rotateKey(rotated, 0)
  await administration.setKey(expired, { expires })
  await administration.revokeKey(revoked)
  const { subscriberId } = await administration.showKey(keyIds.enterprise ?? '')
  clock.advance(120_000)
  let sent = 0
  const lineFor = async (key: string | null) => {
    const id = `refused-${++sent}`
    const { text } = await gateway.get(path, { headers: { 'x-request-id': id }, key })
    const line = await lineOf(gateway, id)
    t.equal(line.bytes, Buffer.byteLength(text))
    return line
  }
  const refused = async (key: string | null | undefined, reason: string, keyId?: string) => {
    const line = await until(`${reason} is refused`, async () => {
      const line = await lineFor(key ?? '')
      return line.status === 401 && line
    })
    t.hasStrict(line, { reason, keyId })
    for (const absent of ['tier', 'cell']) t.notOk(absent in line, absent)
  }
  t.hasStrict(await lineFor(null), { status: 401, reason: 'missing', keyId: undefined })
  await refused('sk_test_1', 'wrong-prefix')
  await refused(`${keys.free}x`, 'malformed')
  await refused(createKey(), 'unknown')
  await refused(keys.starter, 'key-revoked', revoked)
  await refused(keys.free, 'replaced', rotated)
  await refused(keys.business, 'key-expired', expired)
  await administration.revokeSubscriber(subscriberId)
  await refused(keys.enterprise, 'subscriber-revoked', keyIds.enterprise)
  const { today } = await administration.usage(rotated, 1)
  t.notOk(
    today.some(({ statusClass }) => statusClass === '4xx'),
    'a refusal is no usage',
  )

  const alone = await startGateway(t, { providerUrl: 'http://127.0.0.1:1' })
  await alone.get(path, { headers: { 'x-request-id': 'failed' } })
  const failed = await lineOf(alone, 'failed')
  t.match(failed, { status: 500, reason: /^provider_(unreachable|circuit_open)$/, cell: '23.7,90.4' })
})
