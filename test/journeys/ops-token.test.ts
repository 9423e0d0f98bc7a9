// Without it, a route could answer without the token, or the token could appear in a log.

import t, { type Test } from 'tap'
import { singleGatewayEnv } from '../support/gateway-env.ts'
import { manualClock } from '../support/manual-clock.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { requestBytes } from '../support/raw-connection.ts'
import { purgeBytes as purge, refreshBytes as refresh, startOps } from './ops-requests.ts'

const token = 'k3J9-xQ2.mN7_pR4~tW8+yZ1/bD5cF6g=='
const right = `authorization: Bearer ${token}`
const host = 'host: 127.0.0.1'
const question = '/provider/v1/forecast?latitude=23.8&longitude=90.4&current=temperature_2m'
const open = ['/livez', '/readyz', '/metrics']
const cell = '/cache/cell?of=district/3026'
const guarded = [
  ...[cell, '/status', '/cells', '/search?q=a', question],
  '/provider/data/ecmwf_ifs/static/meta.json',
]
const start = async (t: Test, env: Record<string, string> = {}) => {
  const clock = manualClock()
  return { clock, ...(await startOps(t, { clock, env: { ABOHAWA_OPS__TOKEN: token, ...env } })) }
}

const sentenceOf = (given: string) =>
  `the authorization header must be "Bearer TOKEN" with the token in ops.token, got ${given}`
const other = 'another token'
const formless = 'another form'
const wrong: [headers: readonly string[], shown: string][] = [
  ...[token.slice(0, -1), `${token}=`, token.toLowerCase(), 'x'.repeat(10_000), '\xff\xfe'].map(
    (shown): [string[], string] => [[`authorization: Bearer ${shown}`], other],
  ),
  ...['Bearer', '', token, `Bearer ${token} x`, `Basic ${Buffer.from(`:${token}`).toString('base64')}`].map(
    (shown): [string[], string] => [[`authorization: ${shown}`], formless],
  ),
  [[right, right], 'several'],
]

t.test('without the token, or with another, there is health, metrics and an empty page alone', async t => {
  const { provider, gateway, refused, get, send } = await start(t)
  for (const path of [...open, '/', '/dashboard/page/main.js'])
    t.equal((await get(path, [host])).status, 200, path)
  const without = [...guarded, '/dashboard', '/nothing', '/%73tatus', '/provider/v2/nothing']
  for (const path of without) {
    const { status, headers, body } = await get(path, [host])
    t.equal(status, 401, path)
    t.equal(headers['www-authenticate'], 'Bearer realm="abohawa ops"')
    t.strictSame(body, { error: sentenceOf('none') })
  }
  const changing = [purge([host]), refresh([host]), requestBytes('DELETE /cache/cell', [host])]
  for (const bytes of changing) t.equal((await send(bytes)).status, 401)
  t.equal(await refused('token_missing'), without.length + changing.length)

  for (const [headers, shown] of wrong) {
    const answer = await get(cell, [host, ...headers])
    t.equal(answer.status, 401, shown)
    t.equal(answer.headers['www-authenticate'], 'Bearer realm="abohawa ops", error="invalid_token"')
    t.strictSame(answer.body, { error: sentenceOf(shown) })
    t.equal((await get('/metrics', [host, ...headers])).status, 200, 'metrics ask for none')
  }
  for (const path of [`${cell}&token=${token}`, `${question}&access_token=${token}`])
    t.equal((await get(path, [host])).status, 401, 'in the URL it counts for nothing')
  const guess = [host, 'authorization: Bearer x']
  for (const bytes of [purge(guess), refresh(guess)]) t.equal((await send(bytes)).status, 401)
  t.equal(await refused('token_wrong'), wrong.length + 2)
  t.notOk(gateway.logged.some(({ msg }) => msg === 'cache purged'))
  t.strictSame(provider.requests, [])
})

t.test('with the token there is everything, also for a client that calls itself a browser', async t => {
  const { provider, get, send } = await start(t)
  const callers: (readonly string[])[] = [
    [right],
    [`authorization: bearer  ${token}`],
    // PowerShell, and a page of this listener where browsers do not tell which page asks.
    [right, 'user-agent: Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1'],
    [right, 'user-agent: Mozilla/5.0', 'sec-fetch-site: same-origin'],
  ]
  for (const headers of callers)
    for (const path of guarded) t.equal((await get(path, [host, ...headers])).status, 200, path)
  t.equal(provider.requests.length, 2 * callers.length)
  t.hasStrict(await send(purge([host, right])), { status: 200, body: { kind: 'soft' } })
  t.equal((await send(refresh([host, right]))).status, 200)
  t.equal((await get('/nothing', [host, right])).status, 404)
})

t.test('the token does not let a page or a foreign name in', async t => {
  const { provider, get, send } = await start(t)
  for (const headers of [
    ['host: evil.example'],
    [host, 'origin: http://evil.example'],
    [host, 'sec-fetch-site: same-site'],
  ]) {
    for (const path of [...guarded, ...open])
      t.equal((await get(path, [...headers, right])).status, 403, path)
    t.equal((await send(refresh([...headers, right]))).status, 403)
  }
  t.strictSame(provider.requests, [])
})

t.test('who shows a wrong token is logged once a minute, and no token is written anywhere', async t => {
  const { clock, gateway, get } = await start(t)
  const guess = 'a-wrong-guess-of-the-operators-token'
  const texts: string[] = []
  const guessing = async (times: number) => {
    for (let n = 0; n < times; n += 1) {
      const { text } = await get(cell, [host, `authorization: Bearer ${guess}${n}`])
      texts.push(text)
    }
  }
  await guessing(5)
  clock.advance(60_000)
  await guessing(3)
  await get(cell, [host])
  const lines = gateway.logged.filter(({ msg }) => msg === 'ops request with a wrong token')
  t.hasStrict(lines, [
    { level: 'warn', from: '127.0.0.1' },
    { level: 'warn', from: '127.0.0.1', leftOut: 4 },
  ])
  t.equal(lines.length, 2)
  texts.push((await get('/metrics', [host])).text, (await get('/readyz', [host])).text)
  texts.push((await get(cell, [host, right])).text)
  const written = JSON.stringify([gateway.logged, texts])
  t.notMatch(written, guess)
  t.notOk(written.includes(token.slice(0, 12)))
})

t.test('beyond loopback the listener works with a token, and does not start without one', async t => {
  const { gateway, get } = await start(t, { ABOHAWA_OPS__HOST: '0.0.0.0' })
  t.match(gateway.opsUrl, /^http:\/\/0\.0\.0\.0:/)
  t.equal((await get(cell, [host])).status, 401)
  t.equal((await get(cell, [host, right])).status, 200)

  const refused = await runCommand(['serve'], { ABOHAWA_OPS__HOST: '0.0.0.0' })
  t.match(refused, { code: 1, stdout: '', stderr: /^abohawa: .*ops\.host is "0\.0\.0\.0".*: set ops\.token/ })
})

t.test('commands show the token of the configuration to the gateway they ask', async t => {
  const env = await singleGatewayEnv(t, 'http://127.0.0.1:9')
  const { urls, lines } = await startCommand(t, ['serve'], ['ops'], { ...env, ABOHAWA_OPS__TOKEN: token })
  const show = ['cache', 'show', 'district/3026', '--gateway', urls.ops ?? '', '--json']
  const known = await runCommand(show, { ...env, ABOHAWA_OPS__TOKEN: token })
  t.hasStrict(known, { code: 0, stderr: '' })
  t.equal(JSON.parse(known.stdout).opsUrl, urls.ops)

  const stderr = `abohawa: the gateway at ${urls.ops} refused: ${sentenceOf('none')}; set ops.token (ABOHAWA_OPS__TOKEN) to the token that this gateway runs with\n`
  // The second finds the gateway by the configuration.
  for (const args of [show, ['status']])
    t.strictSame(await runCommand(args, env), { code: 1, stdout: '', stderr })
  t.notOk(lines.join('').includes(token.slice(0, 12)))
})
