// Without this, `keys why` could give a wrong reason for a refusal.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { createCalendar } from '../../src/common/calendar.ts'
import { systemClock } from '../../src/common/clock.ts'
import { coldCache } from '../journeys/dashboard-page.ts'
import { singleGatewayEnv } from '../support/gateway-env.ts'
import { checkMistakes } from '../support/printed.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { startProvider } from '../support/provider.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'

const provider = await startProvider(t, undefined, null)
const folder = t.testdir()
const log = join(folder, 'gateway.log')
const env = await singleGatewayEnv(t, provider.url, { ABOHAWA_STORE__PATH: join(folder, 'store.db') })
const run = (...args: string[]) => runCommand(args, env)
const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout)

const { id, key } = await json(
  ...['keys', 'create', '--create-store', '--subscriber', 'Dhaka Tribune', '--tier', 'free', '--limit', '3'],
)
const { localMinute } = createCalendar('Asia/Dhaka')

t.test('the answer comes first, then the state of the key, its day and the lines of the log', async t => {
  const gateway = await startCommand(t, ['serve'], ['api'], env)
  const get = async (path: string, of = key) =>
    (await sendRequest(`${gateway.urls.api}/api/v1${path}`, { key: of })).status
  // The day of quotas may end meanwhile: the minute is that of the first request, and the next one counts as well.
  const minute = localMinute(Date.now())
  t.strictSame(
    [
      await get('/weather/district/3026'),
      await get('/weather?places=district/3026,district/3015,district/3033'),
      await get('/weather/district/9'),
      await get('/locations?type=division'),
    ],
    [200, 429, 404, 200],
  )
  t.strictSame([await get('/weather/district/3026'), await get('/weather/district/3026')], [429, 429])
  t.equal(await get('/weather/district/3026', `${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`), 401)
  await run('keys', 'revoke', id)
  await until('it is refused', async () => (await get('/locations?type=division')) === 401)
  const isLogged = (word: string) => gateway.lines.some(line => line.includes(word))
  await until('the lines are written', () => isLogged('key-revoked') && isLogged('key quota'))
  writeFileSync(log, gateway.lines.map(line => `${line}\n`).join(''))

  await until('the responses are counted', async () =>
    (await run('keys', 'why', id, '--at', minute)).stdout.includes(' weather 2xx\n'),
  )
  const { stdout, stderr, code } = await run('keys', 'why', id, '--at', minute.slice(11), '--log', log)
  t.equal(code, 0)
  t.match(stderr, /^Store: .*store\.db\n$/)
  const [verdict = '', facts = '', lines = '', rest = ''] = stdout.split('\n\n')
  for (const sentence of [
    /^Refused with 404, 1 request at \d\d:\d\d:\d\d: there is no such place or path\.$/m,
    /^Refused with 429 \(quota_insufficient\), 1 request at \d\d:\d\d:\d\d: less was left of its daily quota than the list of places costs\.$/m,
    /^Refused with 429, \d+ requests (?:at|from) .*: the daily quota of 3 requests of this key is exhausted\.$/m,
    /^Refused with 401 \(key-revoked\), \d+ requests? .*: the API key is invalid: it was revoked\.$/m,
  ])
    t.match(verdict, sentence)
  for (const fact of [
    new RegExp(`^ {2}key +${id} of Dhaka Tribune$`, 'm'),
    /^ {2}around +\d{4}-\d\d-\d\d \d\d:\d\d:00 in Asia\/Dhaka$/m,
    /^ {2}state then +(?:revoked since|valid, created) /m,
    /^ {2}tier now +free with a custom limit, 3 a day$/m,
    /^ {2}used +3 on \d{4}-\d\d-\d\d, the whole day$/m,
    /^ +\d weather 2xx$/m,
    /^ {2}gateway +http:\/\/127\.0\.0\.1:\d+: (?:0 responses of all keys were 500|its last hour does not)/m,
  ])
    t.match(facts, fact)
  t.match(
    lines,
    /^.*gateway\.log, from .* to .*\n {2}minute {2}status {2}reason +count {2}tier {2}what it means\n/,
  )
  t.match(lines, / 404 +1 +free +there is no such place or path: \/api\/v1\/weather\/district\/9$/m)
  t.match(lines, /^ {2}1 request without a known key: 401 malformed$/m)
  t.match(lines, /^ {2}.*key quota (?:running low|exhausted)$/m)
  t.match(
    rest,
    /^Not kept:\n {2}previous tiers, limits, rates, restrictions and expiries, and undone revocations\n$/,
  )
  t.notOk(stdout.includes(key))

  gateway.child.kill('SIGTERM')
  await gateway.exited
  const packed = join(folder, 'gateway.log.gz')
  writeFileSync(packed, gzipSync(readFileSync(log)))
  const why = await json('keys', 'why', id, '--at', minute, '--log', packed)
  t.match(why, {
    verdict: /^Refused with /,
    key: { id, subscriber: 'Dhaka Tribune', limit: 3 },
    day: { used: 3 },
    gateway: null,
    logs: [{ file: packed, share: 1, withoutKey: { malformed: 1 } }],
  })
  const refused = why.logs[0].answers.filter(({ status }: { status: number }) => status === 429)
  t.equal(refused.reduce((sum: number, { count }: { count: number }) => sum + count, 0) >= 2, true)
})

t.test('without a log it tells what the store has, and where the rest is', async t => {
  const past = await run('keys', 'why', id, '--at', '2020-01-01T00:00')
  t.match(past.stdout, /^The key did not exist yet\.\n\n/)
  for (const missing of [
    /requests by minute and reason: give the log of each gateway with --log FILE/,
    /beyond two/,
  ])
    t.match(past.stdout, missing)
  const limited = await json(
    ...['keys', 'create', '--subscriber', 'Padma', '--tier', 'free', '--limit', '5', '--expires', '90d'],
  )
  const at = new Date().toISOString()
  t.hasStrict(await json('keys', 'why', limited.id, '--at', at), {
    verdict: 'Nothing shows that it was refused; the log of each gateway has every request.',
    keyThen: { state: 'valid' },
  })
  t.match(await json('keys', 'why', limited.id, '--at', at, '--log', log), {
    verdict: /^Nothing shows/,
  })
  // Logs of a gateway without its requests, with all, and with a share of them, around that minute.
  const now = Date.now()
  const around = (fields: object, endsAt = now + 60_000) =>
    [now - 60_000, endsAt]
      .map(time => JSON.stringify({ level: 'info', time: new Date(time).toISOString(), ...fields }))
      .join('\n')
  for (const [fields, verdict, endsAt] of [
    [{ msg: 'listening' }, /^Nothing shows that it was refused; /],
    [{ msg: 'answered' }, /^Nothing shows that it was refused; /, now + 900],
    [{ msg: 'answered' }, /^No request with this key came to these gateways in these minutes\.$/],
    [{ share: 0.5, msg: 'answered' }, /in these minutes, of the share that the log holds\.$/],
  ] as const) {
    const other = join(folder, 'other.log')
    writeFileSync(other, around(fields, endsAt))
    t.match(await json('keys', 'why', limited.id, '--at', new Date(now).toISOString(), '--log', other), {
      verdict,
    })
  }
  const test = await json('keys', 'create', '--subscriber', 'Padma', '--test')
  t.match(
    (await run('keys', 'why', test.id, '--at', at)).stdout,
    /^ {2}tier now +test_key, 1,000 a day$/m,
    'the tier of test keys is no tier of the configuration',
  )
  await run('keys', 'revoke', limited.id)
  const revoked = await json('keys', 'why', limited.id, '--at', new Date().toISOString())
  t.match(revoked, {
    verdict: /^Every request had 401 then: revoked since 20/,
    keyThen: { state: 'revoked' },
  })
})

t.test('an outage that a running gateway sees is told, and a log that is cut off is named', async t => {
  const path = join(t.testdir(), 'store.db')
  const more = { ...coldCache, ABOHAWA_STORE__PATH: path, ABOHAWA_TEST_PROVIDER__RETRIES: '0' }
  const gateway = await startGateway(t, { providerUrl: provider.url, clock: systemClock, env: more })
  await provider.steer({ fault: 'internal-error' })
  for (const place of ['3026', '2015', '3033', '6091'])
    t.equal((await gateway.get(`/weather/district/${place}`)).status, 500)
  const args = ['keys', 'why', gateway.keyIds.enterprise ?? '', '--at', new Date().toISOString()]
  const asked = [...args, '--gateway', gateway.opsUrl]
  const { stdout, stderr } = await runCommand(asked, { ABOHAWA_STORE__PATH: path })
  t.match(stdout, /^Perhaps with 500: an outage of the provider began before and is not over\.\n/, stderr)
  t.match(stdout, /^ +outage of the provider since 20.* \(provider_failing\), still on$/m)
  await provider.steer({ fault: 'none' })

  const cut = join(folder, 'cut.log.gz')
  writeFileSync(cut, gzipSync(readFileSync(log)).subarray(0, 200))
  const { code, stderr: said } = await run('keys', 'why', id, '--at', '14:05', '--log', cut)
  t.match({ code, said }, { code: 1, said: /cut\.log\.gz: the gzip data end too early or are damaged/ })
})

t.test('what is mistyped gets one sentence', async t => {
  const empty = join(folder, 'empty.log')
  writeFileSync(empty, 'a line of another program\n')
  await checkMistakes(
    t,
    [
      [['keys', 'why', id], 2, /required option '--at <time>' not specified/],
      [
        ['keys', 'why', id, '--at', 'noon'],
        2,
        /at must be a time in Asia\/Dhaka such as 14:05 .*, got "noon"/,
      ],
      [['keys', 'why', id, '--at', '2999-01-01T00:00'], 2, /at must be in the past/],
      [
        ['keys', 'why', 'key_none', '--at', '14:05'],
        1,
        /there is no key "key_none"; .*\(store: .*store\.db\)/,
      ],
      [
        ['keys', 'why', id, '--at', '14:05', '--log', join(folder, 'none')],
        1,
        /none can't be read: there is no such file/,
      ],
      [['keys', 'why', id, '--at', '14:05', '--log', empty], 1, /empty\.log has no line of a gateway's log/],
    ],
    env,
  )
})
