// Without it programs that manage keys could get wrong answers, or reach keys without the token.

import t, { type Test } from 'tap'
import { startScriptedProvider } from '../support/scripted-provider.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const token = 'k3J9-xQ2.mN7_pR4~tW8+yZ1/bD5cF6g=='
const provider = await startScriptedProvider(t)

const start = async (t: Test, env: Record<string, string> = { ABOHAWA_OPS__TOKEN: token }) => {
  const gateway = await startGateway(t, { providerUrl: provider.url, env })
  const ask = async (
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = { authorization: `Bearer ${token}` },
  ) => {
    const response = await fetch(`${gateway.opsUrl}${path}`, {
      method,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      // biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
      body: text === '' ? undefined : (JSON.parse(text) as any),
    }
  }
  const statusWith = async (key: string) =>
    (await sendRequest(`${gateway.apiUrl}/api/v1/locations?type=division`, { key })).status
  return { gateway, ask, statusWith }
}

t.test('the life of a key, by another program', async t => {
  const { gateway, ask, statusWith } = await start(t)
  const wanted = { subscriber: 'Padma', tier: 'starter', externalId: 'crm/7', limit: 5, expires: '90d' }
  const created = await ask('POST', '/keys', wanted)
  t.match(created, {
    status: 201,
    body: {
      ...{ id: /^key_/, key: /^svc_live_\w{38}$/, subscriber: 'Padma', tier: 'starter', limit: 5 },
      ...{ externalId: 'crm/7', expiresAt: '2027-02-19T06:00:00.000Z', existed: false },
    },
  })
  t.equal(created.headers.get('cache-control'), 'no-store')
  const { id, key } = created.body
  t.hasStrict(await ask('POST', '/keys', wanted), { status: 200, body: { id, key: null, existed: true } })
  t.equal(await statusWith(key), 200)

  t.hasStrict(await ask('GET', `/keys/${id}`), {
    status: 200,
    body: { id, status: 'active', ownLimit: true, usedToday: 1 },
  })
  t.has(await ask('GET', `/keys/${encodeURIComponent('external:crm/7')}`), { status: 200, body: { id } })
  t.match(await ask('GET', `/keys/${id}/usage?days=2`), { body: { days: [{ used: 1 }, { used: 0 }] } })
  const { keys, next } = (await ask('GET', '/usage?limit=1000')).body
  t.strictSame([keys.length, next], [5, null])
  const own = keys.find((each: { id: string }) => each.id === id)
  t.hasStrict(own, { externalId: 'crm/7', used: 1, days: [{ used: 1 }] })

  t.hasStrict(await ask('POST', `/keys/${id}/tier`, { tier: 'free' }), {
    status: 200,
    body: { tier: 'free', limit: 5 },
  })
  t.match(await ask('POST', `/keys/${id}/limit`, { limit: null }), { body: { limit: 100, ownLimit: false } })
  t.match(await ask('POST', `/keys/${id}/expire`, { expires: 'never' }), { body: { expiresAt: null } })
  const bound = { origins: ['https://a.example'], endpoints: ['locations'] }
  t.hasStrict(await ask('POST', `/keys/${id}/restrictions`, bound), {
    status: 200,
    body: { restrictions: { ...bound, addresses: null } },
  })
  t.hasStrict(await ask('POST', `/keys/${id}/restrictions`, { origins: null }), {
    body: { restrictions: { origins: null, addresses: null, endpoints: ['locations'] } },
  })
  t.match(await ask('POST', `/keys/${id}/restrictions`, { endpoints: null }), {
    body: { restrictions: null },
  })
  const rates = { perSecond: 5, burst: null, perMinute: null }
  t.match(await ask('POST', `/keys/${id}/rates`, { perSecond: 5 }), { body: { rates } })
  t.match(await ask('POST', `/keys/${id}/rates`, { perSecond: null }), { body: { rates: null } })
  const rotated = await ask('POST', `/keys/${id}/rotate`, { overlap: '0s' })
  t.match(rotated, { status: 200, body: { id, key: /^svc_live_/ } })
  t.not(rotated.body.key, key)
  t.hasStrict(await ask('POST', `/keys/${id}/revoke`), { status: 200, body: { status: 'revoked' } })
  await until('it is refused', async () => (await statusWith(rotated.body.key)) === 401)
  t.match(await ask('POST', `/keys/${id}/rotate`), { status: 400, body: { error: /is revoked/ } })
  t.hasStrict(await ask('POST', `/keys/${id}/reinstate`), { body: { status: 'active' } })
  for (const empty of ['', '{}', 'null'])
    t.match(await ask('POST', `/keys/${id}/reinstate`, empty), { status: 200 }, empty)
  t.match(await ask('POST', `/keys/${id}/rotate`, ''), { status: 200, body: { formerKeyUntil: /Z$/ } })

  const { headers, body } = await ask('GET', '/subscribers')
  t.equal(headers.get('content-length'), null, 'a list that may have megabytes is sent in chunks')
  const padma = body.find(({ name }: { name: string }) => name === 'Padma')
  t.hasStrict(padma, { name: 'Padma', keys: 1, status: 'active' })
  t.hasStrict(await ask('POST', `/subscribers/${padma.id}/revoke`), {
    // Their number would take a walk over the keys of all.
    body: { id: padma.id, status: 'revoked', keys: undefined },
  })
  t.hasStrict(await ask('GET', '/subscribers/Padma'), { body: { id: padma.id, status: 'revoked', keys: 1 } })
  t.hasStrict(await ask('GET', `/keys/${id}`), { body: { status: 'subscriber revoked' } })
  t.hasStrict(await ask('POST', `/subscribers/Padma/reinstate`, ''), { body: { status: 'active' } })

  const changes = gateway.logged.filter(({ msg }) => msg === 'keys changed through the ops listener')
  t.hasStrict(changes, [{ action: 'create', id }, { action: 'tier', id }, ...Array(10).fill({ id })])
  t.notMatch(JSON.stringify(gateway.logged), /svc_live_\w/)
})

t.test('lists come in parts, filtered', async t => {
  const { gateway, ask } = await start(t)
  for (let i = 0; i < 6; i++) await gateway.administration.createKey('Padma', i % 2 ? 'free' : 'starter')
  const ids: string[] = []
  let from: number | null = 0
  for (let parts = 0; from !== null; parts += 1) {
    const filter = encodeURIComponent('subscriber=Padma tier=free')
    const { body } = await ask('GET', `/keys?limit=4&from=${from}&filter=${filter}`)
    ids.push(...body.keys.map(({ id }: { id: string }) => id))
    from = body.next
    t.ok(parts < 3)
  }
  const all = await gateway.administration.listKeys()
  const wanted = all
    .filter(({ subscriber, tier }) => subscriber === 'Padma' && tier === 'free')
    .map(({ id }) => id)
  t.strictSame(ids, wanted)
  t.equal(ids.length, 3)
})

t.test('without ops.token nothing of it is answered, on loopback too', async t => {
  const { gateway, ask } = await start(t, {})
  const error = /^ops\.token \(ABOHAWA_OPS__TOKEN\) is required/
  for (const line of [
    ...['GET /keys', 'POST /keys', 'GET /keys/key_1', 'POST /keys/key_1/rotate', 'GET /keys/key_1/usage'],
    ...['GET /usage', 'GET /subscribers', 'POST /subscribers/sub_1/revoke'],
  ]) {
    const [method = '', path = ''] = line.split(' ')
    t.match(await ask(method, path), { status: 403, body: { error } }, line)
  }
  t.equal(await gateway.metric('abohawa_ops_refused_total{reason="token_unset"}'), 8)
})

t.test('other callers and wrong requests get a status and a sentence', async t => {
  const { ask } = await start(t)
  const right = { authorization: `Bearer ${token}` }
  t.match(await ask('POST', '/keys', {}, { authorization: 'Bearer x' }), { status: 401 })
  t.match(await ask('POST', '/keys', {}, { ...right, origin: 'https://evil.example' }), { status: 403 })
  t.match(await ask('PUT', '/keys'), {
    status: 405,
    body: { error: /^the method must be one of GET, HEAD, POST, got PUT$/ },
  })
  t.match(await ask('GET', '/keys/key_1/rotate'), { status: 405 })
  for (const [method, path, body, status, sentence] of [
    ['GET', '/keys/key_9', undefined, 404, 'there is no key "key_9"'],
    ['GET', '/subscribers/Nobody', undefined, 404, 'there is no subscriber "Nobody"'],
    ['GET', '/keys/key_1/secret', undefined, 404, 'there is nothing here'],
    ['POST', '/keys', { subscriber: 'A', tier: 'gold' }, 400, 'tier must be one of free, starter'],
    ['POST', '/keys', { subscriber: 'A', tier: 'free', limitt: 5 }, 400, 'the body must be JSON such as'],
    ['POST', '/keys', { subscriber: 'A', tier: 'free', expires: 'x' }, 400, 'expires must be never, a day'],
    ['POST', '/keys', { subscriber: ' ', tier: 'free' }, 400, "the subscriber's name must be"],
    [
      'POST',
      '/keys',
      { subscriber: 'A', tier: 'free', restrictions: { referers: [] } },
      400,
      'the body must be JSON',
    ],
    ['POST', '/keys/key_1/rates', { perSecond: 0 }, 400, ', got {"perSecond":0}'],
    ['POST', '/keys/key_1/restrictions', { origins: 'x' }, 400, ', got {"origins":"x"}'],
    [
      ...([
        'POST',
        '/keys',
        { subscriber: 'A', tier: 'free', restrictions: { origins: ['x'] } },
        400,
      ] as const),
      'the origin must be an origin as browsers send it',
    ],
    ['POST', '/keys/key_9/limit', { limit: 0 }, 400, ', got {"limit":0}'],
    ['POST', '/keys/key_9/rotate', { overlap: '1 day' }, 400, 'got "1 day"'],
    ['POST', '/keys/key_9/revoke', { at: 1 }, 400, 'the body must be empty, got {"at":1}'],
    ['GET', '/keys?limit=0', undefined, 400, 'limit must be an integer from 1 to 1000, got "0"'],
    ['GET', '/keys?from=-1', undefined, 400, 'from must be an integer from 0'],
    ['GET', '/keys?filter=a', undefined, 400, 'the filter has "a", but a term is a field'],
    ['GET', '/keys/key_9/usage?days=401', undefined, 400, 'days must be an integer from 1'],
  ] as const)
    t.match(
      await ask(method, path, body),
      { status, body: { error: new RegExp(sentence.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')) } },
      `${method} ${path} ${JSON.stringify(body)?.slice(0, 50)}`,
    )
})
